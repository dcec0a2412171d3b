"""
Settings: from the environment and a `.env` file, every name beginning with `COUNTERFOIL_`.

Wrong settings are one line that names the variable and never its value: a URL may hold a password.
"""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict
from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import SettingsConfigDict

from checkpointing.budget import LARGEST, Caps
from checkpointing.errors import Refused
from service.approval_settings import ApprovalSettings
from service.notice_settings import NoticeSettings
from service.people_settings import PeopleSettings
from service.setting_names import PREFIX, unknown_names

SCHEMA_NAME = re.compile("[a-z_][a-z0-9_]{0,62}")
TOKEN_DIGEST = re.compile("[0-9a-f]{64}")


class SettingsInvalid(Refused, ValueError):
    """A setting cannot be used; the message names the variable and what is wanted."""


class Settings(ApprovalSettings, PeopleSettings, NoticeSettings):
    """
    Where everything is, and who may come in. Secrets are never printed.

    Attributes:
        url: The journal: `sqlite:///claims.db` or `postgresql://…`.
        schema_name: On Postgres, the schema the journal's tables are in; by default the role's own.
        connections: On Postgres, how many connections a process has to the journal at most.
        artefacts: The folder for documents; by default beside the journal.
        lease_seconds: How long a worker that died keeps others from its thread.
        cap_supersteps, cap_money, cap_tokens, cap_days: The most a claim may take; empty for no cap. Money in minor units.
        stripe_url, mail_url, claims_url: The systems outside; by default those of a sandbox on this machine.
        agent_server_tokens: Who may use the claims graph on an Agent Server: `name:sha256` of each one's bearer token, with commas between.
        model: A chat model's name as LangChain's `init_chat_model` takes it; without one the embedded assessor works.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_file=".env", extra="ignore", frozen=True, hide_input_in_errors=True
    )

    url: SecretStr = SecretStr("sqlite:///counterfoil.db")
    # Pydantic's models have a `schema` already.
    schema_name: str | None = Field(default=None, validation_alias=f"{PREFIX}SCHEMA")
    connections: int = Field(default=16, ge=2, le=1000)
    artefacts: str | None = None
    lease_seconds: float = Field(default=30, ge=0.1, allow_inf_nan=False)
    cap_supersteps: int | None = Field(default=100, ge=1)
    cap_money: int | None = Field(default=None, ge=0, le=LARGEST)
    cap_tokens: int | None = Field(default=200_000, ge=0, le=LARGEST)
    cap_days: float | None = Field(default=90, gt=0, le=36_600)
    stripe_key: SecretStr = SecretStr("sk_test_sandbox")
    stripe_url: str = "http://127.0.0.1:8042"
    mail_key: SecretStr = SecretStr("re_sandbox")
    mail_url: str = "http://127.0.0.1:8042"
    mail_sender: str = "Claims <claims@carrier.example>"
    claims_url: str = "http://127.0.0.1:8042"
    timeout_seconds: float = Field(default=10, gt=0, allow_inf_nan=False)
    model: str | None = None
    agent_server_tokens: SecretStr = SecretStr("")

    @field_validator("url")
    @classmethod
    def _readable(cls, url: SecretStr) -> SecretStr:
        """Refuse a URL that cannot be taken apart: the parsers' own messages repeat the part they could not read."""
        if _names_a_file(url.get_secret_value()):
            raise ValueError(
                f"{url.get_secret_value()!r} is not a URL; did you mean sqlite:///{url.get_secret_value()}?"
            )
        try:
            if urlsplit(url.get_secret_value()).scheme in ("postgres", "postgresql"):
                conninfo_to_dict(url.get_secret_value())
        except (ValueError, ProgrammingError):
            raise ValueError(
                "not a readable URL; as in sqlite:///claims.db or postgresql://user:password@host:5432/database, "
                "with %, @, / and : of a password percent-encoded"
            ) from None
        return url

    @field_validator("cap_supersteps", "cap_money", "cap_tokens", "cap_days", mode="before")
    @classmethod
    def _or_no_cap(cls, given: object) -> object:
        """Take an empty value for no cap."""
        return None if given == "" else given

    @model_validator(mode="after")
    def _time_to_decide(self) -> Self:
        """Refuse a ladder without an end, and a cap on age that ends a claim before its adjusters' time is over."""
        hours = self.hours_to_decide()
        if self.cap_days is not None and self.cap_days * 24 <= hours:
            raise ValueError(
                f"{PREFIX}CAP_DAYS ends a claim before {PREFIX}{'APPROVAL_TIERS' if self.approval_tiers else 'APPROVAL_HOURS'} are over; "
                "make it longer, or empty for no cap"
            )
        return self

    @field_validator("artefacts", "model", "schema_name", "base_url")
    @classmethod
    def _or_none(cls, given: str | None) -> str | None:
        """Take an empty value for none, as `.env.example` has it."""
        return given or None

    @field_validator("schema_name")
    @classmethod
    def _plain_name(cls, given: str | None) -> str | None:
        """Refuse a name that would have to be quoted."""
        if given is not None and not SCHEMA_NAME.fullmatch(given):
            raise ValueError(
                "a name of lower-case letters, digits and _, that begins with no digit, of at most 63 characters"
            )
        return given

    @field_validator("stripe_url", "mail_url", "claims_url", "base_url")
    @classmethod
    def _without_secrets(cls, url: str | None) -> str | None:
        """Refuse a URL that holds a secret, or that nobody can call; none of it is repeated."""
        if url is None:
            return None
        try:
            parts = urlsplit(url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        except ValueError:
            usable = False
        # Looked for in the whole text: a password that is not percent-encoded may stand where the path does.
        if any(mark in url for mark in "@?#"):
            raise ValueError("a URL without user, password, query and fragment, as in http://127.0.0.1:8042")
        if not usable:
            raise ValueError("not a URL that can be called; as in http://127.0.0.1:8042")
        return url

    @field_validator("agent_server_tokens")
    @classmethod
    def _users(cls, tokens: SecretStr) -> SecretStr:
        """Refuse what would let nobody in, or two people by one token."""
        entries = _entries(tokens)
        names, digests = ({one[part] for one in entries} for part in (0, 1))
        if not all(name and TOKEN_DIGEST.fullmatch(digest) for name, digest in entries):
            raise ValueError(
                "name:sha256 of each token with commas between, as in ada:9f86d081…; printf TOKEN | sha256sum"
            )
        if not len(names) == len(digests) == len(entries):
            raise ValueError("a name or a token stands there twice")
        return tokens

    @property
    def agent_server_users(self) -> dict[str, str]:
        """The SHA-256 of each user's token, by name."""
        return dict(_entries(self.agent_server_tokens))

    @property
    def lease(self) -> timedelta:
        """The lease as a duration."""
        return timedelta(seconds=self.lease_seconds)

    @property
    def caps(self) -> Caps:
        """What a claim may take."""
        age = None if self.cap_days is None else timedelta(days=self.cap_days)
        return Caps(self.cap_supersteps, self.cap_money, self.cap_tokens, age)

    @property
    def place(self) -> str:
        """The journal for people: the file, or the host and database, without user and password."""
        parts = urlsplit(self.url.get_secret_value())
        if parts.scheme == "sqlite":
            return parts.path.removeprefix("/")
        host = parts.netloc.rpartition("@")[2] or "localhost"
        return f"{host}{parts.path}"


def load_settings(url: str | None = None) -> Settings:
    """
    Read the settings; *url* takes the place of `COUNTERFOIL_URL`.

    Raises:
        SettingsInvalid: a variable, or the `.env` file, cannot be read as what it must be, or a name is none of ours.
    """
    try:
        if wrong := unknown_names(names().values()):
            raise SettingsInvalid("; ".join(wrong))
        return Settings() if url is None else Settings(url=SecretStr(url))
    except ValidationError as error:
        raise SettingsInvalid(_wanted(error)) from None
    except UnicodeDecodeError:
        raise SettingsInvalid("the file .env is not UTF-8 text") from None


def names() -> dict[str, str]:
    """Return what each field is called in the environment."""
    return {
        field: str(info.validation_alias or f"{PREFIX}{field.upper()}") for field, info in Settings.model_fields.items()
    }


def _entries(tokens: SecretStr) -> list[tuple[str, str]]:
    """Take `name:sha256,name:sha256` apart; the last colon counts."""
    texts = filter(None, map(str.strip, tokens.get_secret_value().split(",")))
    return [(name.strip(), digest.strip().lower()) for name, _, digest in (text.rpartition(":") for text in texts)]


def _names_a_file(url: str) -> bool:
    """Tell whether a file's name was given in place of a URL; a text that may be a secret is not taken for one."""
    return "://" not in url and "@" not in url and Path(url).suffix in (".db", ".sqlite", ".sqlite3")


def _wanted(error: ValidationError) -> str:
    """Say every variable that is wrong, without its value; what is wrong with several together names them itself."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    said = [(one["loc"], one["msg"].removeprefix("Value error, ")) for one in found]
    return "; ".join(
        f"{PREFIX}{str(loc[0]).upper().removeprefix(PREFIX)}: {msg}{_within(loc)}" if loc else msg for loc, msg in said
    )


def _within(loc: tuple[int | str, ...]) -> str:
    """Return the place inside a setting that is JSON, as ` (at 0.quorum)`; nothing where it is the setting as a whole."""
    return f" (at {'.'.join(map(str, loc[1:]))})" if loc[1:] else ""
