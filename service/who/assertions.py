"""
Signed assertions of who somebody is: JSON Web Tokens (RFC 7519), of an identity provider or of a reverse proxy.

An assertion counts if its signature is right by an algorithm of ours, it is made out to us, it has an end and that is not over, and, of a
provider, it names the provider. Which key and which algorithms are tried is said by the settings, never by the assertion (RFC 8725): its
header only names one of the provider's keys. Nothing of an assertion stands in an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Protocol

import jwt
from pydantic import SecretStr

from service.who.keys import ALGORITHMS, PublishedKeys
from service.who.refusals import NotAuthenticated

LONGEST = 16_384
"""Characters; a server's headers are hardly longer."""
LEEWAY = timedelta(seconds=10)
"""By how much the clocks of two hosts may differ."""

SAID: dict[type[jwt.PyJWTError], str] = {
    jwt.ExpiredSignatureError: "it has expired",
    jwt.ImmatureSignatureError: "it is not good yet",
    jwt.InvalidAudienceError: "it is made out to somebody else",
    jwt.InvalidIssuerError: "it is another issuer's",
    jwt.MissingRequiredClaimError: "it has no exp, no aud or no iss",
    jwt.InvalidSignatureError: "its signature is wrong",
    jwt.InvalidAlgorithmError: "it is signed by an algorithm that does not count here",
}
MALFORMED = "it is no signed JSON Web Token"


class Verifies(Protocol):
    """Whatever can tell whether an assertion counts."""

    def claims(self, text: str) -> Mapping[str, Any]:
        """
        Return what the assertion says.

        Raises:
            NotAuthenticated: it does not count.
            KeysUnreachable: nobody can tell just now.
        """
        ...


class ByProvider:
    """Verifies what an identity provider signed."""

    def __init__(self, keys: PublishedKeys, *, issuer: str, audience: str) -> None:
        """Let assertions of *issuer* count that are made out to *audience* and signed with one of *keys*."""
        self.keys = keys
        self.issuer = issuer
        self.audience = audience

    def claims(self, text: str) -> Mapping[str, Any]:
        """Return what it says; errors as `Verifies`."""
        header = _header(text)
        key_id, algorithm = header.get("kid"), header.get("alg")
        if algorithm not in ALGORITHMS:
            raise _refused(SAID[jwt.InvalidAlgorithmError])
        key = self.keys.find(key_id, str(algorithm)) if isinstance(key_id, str) else None
        if key is None:
            raise _refused("it is signed with a key that the identity provider does not publish")
        return _decoded(text, key, ALGORITHMS, audience=self.audience, issuer=self.issuer)


class BySecret:
    """Verifies what a reverse proxy signed with the secret it shares with us."""

    def __init__(self, secret: SecretStr, *, audience: str) -> None:
        """Let assertions count that are made out to *audience* and signed with *secret*."""
        self.secret = secret
        self.audience = audience

    def claims(self, text: str) -> Mapping[str, Any]:
        """Return what it says; errors as `Verifies`."""
        _header(text)
        return _decoded(text, self.secret.get_secret_value(), ("HS256",), audience=self.audience, issuer=None)


def _header(text: str) -> Mapping[str, Any]:
    """Return the header, which nothing vouches for yet."""
    if len(text) > LONGEST or not text.isascii():
        raise _refused(MALFORMED)
    try:
        return jwt.get_unverified_header(text)
    except (jwt.PyJWTError, ValueError, TypeError):
        raise _refused(MALFORMED) from None


def _decoded(
    text: str, key: jwt.PyJWK | str, algorithms: tuple[str, ...], *, audience: str, issuer: str | None
) -> Mapping[str, Any]:
    required = ["exp", "aud"] if issuer is None else ["exp", "aud", "iss"]
    try:
        return jwt.decode(
            text,
            key,
            algorithms=list(algorithms),
            audience=audience,
            issuer=issuer,
            leeway=LEEWAY,
            options={"require": required, "verify_iss": issuer is not None},
        )
    except jwt.PyJWTError as error:
        said = next((words for kind, words in SAID.items() if isinstance(error, kind)), MALFORMED)
    except (ValueError, TypeError):
        said = MALFORMED
    raise _refused(said)


def _refused(why: str) -> NotAuthenticated:
    return NotAuthenticated(f"this assertion lets nobody in: {why}")
