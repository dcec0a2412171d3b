"""
The settings of who may come in: an identity provider, a reverse proxy's header, which claims say what, and how long a session lasts.

Half of a means is an error that names what is missing: a door that somebody believes to be locked must not stand open, nor the other way round.
"""

from __future__ import annotations

import re
from datetime import timedelta
from ipaddress import ip_address
from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings

from service.setting_names import PREFIX

HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
"""A header's name (RFC 9110, 5.6.2)."""
TAKEN = ("authorization", "cookie", "host", "x-csrf-token", "idempotency-key")
"""Headers that mean something else."""
SHORTEST_SECRET_BYTES = 32
"""RFC 7518, 3.2: a key for HS256 is at least as long as the hash."""


class PeopleSettings(BaseSettings):
    """
    By what people may come in, beside tokens.

    Attributes:
        oidc_issuer, oidc_jwks_url, oidc_audience: The identity provider as its tokens name it, where its keys are, and what its tokens for us are
            made out to; all three or none.
        proxy_header: In which header a reverse proxy hands on who came in, as a signed JWT.
        proxy_secret: What it is signed with (HS256); without one the identity provider's keys count.
        proxy_audience: What the proxy's own tokens are made out to.
        name_claim, roles_claim, groups_claim, limit_claim: Which claims say who somebody is; without a limit claim nobody has a limit.
        session_hours: How long somebody who logged in stays so.
    """

    oidc_issuer: str | None = None
    oidc_jwks_url: str | None = None
    oidc_audience: str | None = None
    proxy_header: str | None = None
    proxy_secret: SecretStr = SecretStr("")
    proxy_audience: str = "counterfoil"
    name_claim: str = "sub"
    roles_claim: str = "roles"
    groups_claim: str = "groups"
    limit_claim: str | None = None
    session_hours: float = Field(default=12, gt=0, le=24 * 366, allow_inf_nan=False)

    @field_validator("oidc_issuer", "oidc_jwks_url", "oidc_audience", "proxy_header", "limit_claim")
    @classmethod
    def _given_or_none(cls, given: str | None) -> str | None:
        """Take an empty value for none, as `.env.example` has it."""
        return given or None

    @field_validator("name_claim", "roles_claim", "groups_claim", "proxy_audience")
    @classmethod
    def _not_empty(cls, given: str) -> str:
        if not given.strip():
            raise ValueError("empty: leave it out for its default")
        return given

    @field_validator("oidc_jwks_url")
    @classmethod
    def _not_forged_on_the_way(cls, url: str | None) -> str | None:
        """Refuse a URL whose answer somebody on the way could forge: who gives the keys decides who everybody is."""
        if url is not None and not _safe(url):
            raise ValueError(
                "an https URL without user and password; http only on this machine, as in http://127.0.0.1:8080/keys"
            )
        return url

    @field_validator("proxy_header")
    @classmethod
    def _a_header_of_its_own(cls, name: str | None) -> str | None:
        if name is not None and (not HEADER.fullmatch(name) or name.lower() in TAKEN):
            raise ValueError(
                f"the name of a header that means nothing else (not {', '.join(TAKEN)}), as in X-Signed-In-As"
            )
        return name

    @field_validator("proxy_secret")
    @classmethod
    def _long_enough(cls, secret: SecretStr) -> SecretStr:
        if 0 < len(secret.get_secret_value().encode()) < SHORTEST_SECRET_BYTES:
            raise ValueError(f"at least {SHORTEST_SECRET_BYTES} bytes, as `openssl rand -hex 32` makes")
        return secret

    @model_validator(mode="after")
    def _whole(self) -> Self:
        """Refuse half of a means."""
        provider = {
            f"{PREFIX}OIDC_ISSUER": self.oidc_issuer,
            f"{PREFIX}OIDC_JWKS_URL": self.oidc_jwks_url,
            f"{PREFIX}OIDC_AUDIENCE": self.oidc_audience,
        }
        missing = [name for name, value in provider.items() if value is None]
        if 0 < len(missing) < len(provider):
            raise ValueError(f"{' and '.join(missing)} is missing: an identity provider takes {', '.join(provider)}")
        secret = self.proxy_secret.get_secret_value()
        if secret and not self.proxy_header:
            raise ValueError(f"{PREFIX}PROXY_HEADER is missing: {PREFIX}PROXY_SECRET is for the header it names")
        if self.proxy_header and not secret and missing:
            raise ValueError(
                f"{PREFIX}PROXY_SECRET is missing: what {PREFIX}PROXY_HEADER brings is signed with it, or by the identity provider of "
                f"{', '.join(provider)}"
            )
        return self

    @property
    def session(self) -> timedelta:
        """How long a session lasts."""
        return timedelta(hours=self.session_hours)


def _safe(url: str) -> bool:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        named = bool(host) and (parts.port or 1) > 0 and "@" not in parts.netloc and not parts.fragment
        return named and (parts.scheme == "https" or (parts.scheme == "http" and _on_this_machine(host)))
    except ValueError:
        return False


def _on_this_machine(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
