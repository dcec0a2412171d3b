"""
The doors: by what somebody may come in, and who they are once they are in.

    Authorization: Bearer cft_…     a token of ours                                ─┐
    Authorization: Bearer eyJ…      a JSON Web Token of the identity provider       │
    the proxy's header              one that the proxy, or the provider, signed     ├─▶ one visitor, or nobody, or a refusal
    the cookie                      a session that began with a token              ─┘

Whatever is shown counts, and one that does not hold refuses the request, whatever else is shown; so do two that name different people. Only a
cookie that is over is as good as none: browsers send it until they are told otherwise. A header that says who somebody is without a signature
is never looked at, and nothing in a body or a query is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

from checkpointing import Journal
from checkpointing.hashed import digest_of
from checkpointing.sessions import LASTING
from checkpointing.tokens import PREFIX
from service.who.assertions import Verifies
from service.who.claims import ClaimNames, known_roles, visitor_of
from service.who.refusals import NotAuthenticated, TooManyLogins
from service.who.visitor import Visitor

AUTHORIZATION = "authorization"


class Doors:
    """Everything by which somebody may come in."""

    def __init__(
        self,
        journal: Journal,
        *,
        provider: Verifies | None = None,
        proxy: tuple[str, Verifies] | None = None,
        names: ClaimNames | None = None,
        lasting: timedelta = LASTING,
    ) -> None:
        """
        Let in by the tokens and sessions of *journal*, and by what else is given.

        Args:
            journal: where tokens, sessions and failed logins are.
            provider: verifies bearer tokens that are none of ours.
            proxy: the header in which a reverse proxy says who came in, and what verifies it.
            names: which claims say what.
            lasting: how long a session lasts.
        """
        self.journal = journal
        self.provider = provider
        self.proxy = proxy
        self.names = names or ClaimNames()
        self.lasting = lasting

    def visitor(self, headers: Mapping[str, str], *, session: str | None = None) -> Visitor | None:
        """
        Return who sent a request; `None` if it shows nothing that names anybody.

        Args:
            headers: the request's; names in any case, a name that stands there twice as `items()` yields it.
            session: the cookie's value, `None` if there was none.

        Raises:
            NotAuthenticated: what it shows does not hold, or names two people.
            KeysUnreachable, StoreUnreachable: nobody can tell just now.
        """
        shown = [_shown(headers, AUTHORIZATION, self._bearer)]
        if self.proxy is not None:
            shown.append(_shown(headers, self.proxy[0], self._handed_on))
        if session is not None:
            shown.append(self._session(session))
        return _agreed([one for one in shown if one is not None])

    def log_in(self, secret: str, *, place: str, session: str | None = None) -> tuple[Visitor, str]:
        """
        Begin a session with a token of ours; return who came in, and the secret for their cookie.

        Args:
            secret: the token, as somebody typed it.
            place: where they are, by `place_of`; after some failures in a row from there each further one waits longer.
            session: the cookie they came with, whose session ends.

        A crash on the way lets nobody in: before the token was looked at the attempt stays counted, after it a session may be left of which nobody
        has the secret.

        Raises:
            NotAuthenticated: the token lets nobody in; it is not told why.
            TooManyLogins: nothing was looked at.
        """
        if wait := self.journal.logins.attempt(place):
            raise TooManyLogins(wait)
        came = self._by_token(secret.strip())
        self.journal.logins.succeeded(place)
        if session is not None:
            self.journal.sessions.end(session)
        begun = self.journal.sessions.begin(
            came.person, came.roles, token_digest=digest_of(secret.strip()), lasting=self.lasting
        )
        return came, begun

    def log_out(self, session: str | None) -> None:
        """End the session of a cookie, if there is one."""
        if session is not None:
            self.journal.sessions.end(session)

    def _bearer(self, authorization: str) -> Visitor:
        scheme, _, text = authorization.strip().partition(" ")
        secret = text.strip()
        if scheme.lower() != "bearer" or not secret:
            raise NotAuthenticated(
                "the header Authorization holds no bearer token; it is `Bearer`, a blank and the token"
            )
        if self.provider is None or secret.startswith(PREFIX):
            return self._by_token(secret)
        return visitor_of(self.provider.claims(secret), self.names, "oidc")

    def _by_token(self, secret: str) -> Visitor:
        token = self.journal.tokens.find(secret)
        if token is None:
            raise NotAuthenticated("this token is unknown, revoked or expired; counterfoil token add makes another")
        return Visitor(token.person, known_roles(token.roles), "token")

    def _handed_on(self, text: str) -> Visitor:
        assert self.proxy is not None
        return visitor_of(self.proxy[1].claims(text.strip()), self.names, "proxy")

    def _session(self, secret: str) -> Visitor | None:
        session = self.journal.sessions.find(secret)
        return None if session is None else Visitor(session.person, known_roles(session.roles), "session")


def _shown(headers: Mapping[str, str], name: str, by: Callable[[str], Visitor]) -> Visitor | None:
    """Return whom a header names, if it is there; where it stands twice, one of them may be somebody else's."""
    values = [value for key, value in headers.items() if key.lower() == name.lower()]
    if len(values) > 1:
        raise NotAuthenticated(f"the header {name} stands there twice")
    return by(values[0]) if values else None


def _agreed(shown: list[Visitor]) -> Visitor | None:
    """Return the first, which is what was shown for this one request; all of them have to be the same person."""
    if len({one.name for one in shown}) > 1:
        raise NotAuthenticated(
            f"the request shows two different people, by {' and by '.join(one.how for one in shown)}"
        )
    return shown[0] if shown else None
