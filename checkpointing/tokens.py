"""
Tokens: who may come in by a bearer token, in which roles, in which groups and up to which amount.

    added ──▶ good ──▶ revoked     by somebody, who is on record
                └────▶ expired     by the store's clock

A token is shown once, when it is added; kept is its digest (`checkpointing/hashed.py`). Its id is no secret: people name it by that. What a
token may do never changes: another role takes another token. Who added and who revoked it stands in the audit, in the chain `ACCESS`.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from checkpointing.audit import ACCESS, append
from checkpointing.budget import LARGEST
from checkpointing.clock import duration_ms, from_ms
from checkpointing.digest import sha256
from checkpointing.errors import InputRefused, UnknownToken
from checkpointing.hashed import digest_of, new_secret
from checkpointing.principals import Person, named
from checkpointing.store import Row, Store
from checkpointing.text import storable

PREFIX = "cft_"
"""How a token's secret begins, so that whoever finds one knows what it is."""

LONGEST = timedelta(days=36_600)

ADD = """
insert into tokens (digest, id, principal, roles, groups, spend_limit, note, created_by, created_ms, expires_ms)
values (:digest, :id, :principal, :roles, :groups, :spend_limit, :note, :created_by, :now, :now + cast(:lasting_ms as bigint))
returning *
"""
REVOKE = (
    "update tokens set revoked_by = :revoked_by, revoked_ms = :now where id = :id and revoked_ms is null returning *"
)
GET = "select * from tokens where id = :id"
FIND = """
select * from tokens where digest = :digest and revoked_ms is null and (expires_ms is null or expires_ms > :now)
"""
LIST = "select * from tokens order by created_ms, id"


@dataclass(frozen=True, slots=True)
class Token:
    """
    A token as everybody may see it: nothing here lets anybody in.

    Attributes:
        id: `tok_` and 16 hex digits.
        principal: Who comes in by it.
        roles, groups: Sorted.
        limit: The largest amount they may approve, in minor units; `None` for any.
        note: What it is for.
        expires_at: From when on it is of no use; `None`: it never expires.
    """

    id: str
    principal: str
    roles: tuple[str, ...]
    groups: tuple[str, ...]
    limit: int | None
    note: str
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    revoked_by: str | None
    revoked_at: datetime | None

    @property
    def person(self) -> Person:
        """Whoever comes in by it."""
        return Person(self.principal, frozenset(self.groups), self.limit)


class Tokens:
    """The `tokens` table."""

    def __init__(self, store: Store) -> None:
        """Use *store*."""
        self.store = store

    def add(
        self,
        *,
        principal: str,
        roles: Collection[str],
        groups: Collection[str] = (),
        limit: int | None = None,
        expires_in: timedelta | None = None,
        note: str = "",
        by: str,
    ) -> tuple[Token, str]:
        """
        Add a token and return it with its secret, which nobody can be told again.

        A crash before the commit leaves nothing; after it, a token whose secret nobody has heard: revoke it by its id.

        Raises:
            InputRefused: a role, a group, the limit, the time or the note cannot be kept.
            NotAllowed: *principal* or *by* is no name.
        """
        who = named(principal, "a token is somebody's: name the principal")
        if not who.isprintable():
            raise InputRefused(f"a principal is text without control characters, not {who!r:.80}")
        adder = named(by, "adding a token takes a name: who adds it?")
        _check(roles, groups, limit, expires_in, note)
        secret = new_secret(PREFIX)
        with self.store.transaction("token.add") as tx:
            row = tx.one(
                ADD,
                digest=digest_of(secret),
                id="tok_" + secrets.token_hex(8),
                principal=who,
                roles=_stored(roles),
                groups=_stored(groups),
                spend_limit=limit,
                note=note,
                created_by=adder,
                lasting_ms=None if expires_in is None else duration_ms(expires_in),
            )
            assert row is not None
            token = _token(row)
            append(
                tx,
                ACCESS,
                "token.add",
                actor=adder,
                subject=token.id,
                principal=who,
                roles=list(token.roles),
                terms=terms_of(row),
            )
        return token, secret

    def find(self, secret: str) -> Token | None:
        """Return the token whose secret this is; `None` if there is none, or it is revoked or expired."""
        with self.store.reading() as tx:
            row = tx.one(FIND, digest=digest_of(secret))
        return None if row is None else _token(row)

    def get(self, token_id: str) -> Token:
        """
        Return the token with this id, whatever became of it.

        Raises:
            UnknownToken: there is none.
        """
        with self.store.reading() as tx:
            row = tx.one(GET, id=storable(token_id))
        if row is None:
            raise UnknownToken(f"there is no token {token_id!r:.80}; counterfoil token list shows them by id")
        return _token(row)

    def list(self) -> list[Token]:
        """Return every token, the oldest first, revoked and expired ones too."""
        with self.store.reading() as tx:
            return [_token(row) for row in tx.all(LIST)]

    def revoke(self, token_id: str, *, by: str) -> Token:
        """
        Let nobody in by this token any more, nor by a session that began with it; the first who revokes it stays on record.

        Raises:
            NotAllowed: *by* is no name.
            UnknownToken: there is none.
        """
        who = named(by, "revoking a token takes a name: who revokes it?")
        with self.store.transaction("token.revoke") as tx:
            row = tx.one(REVOKE, id=storable(token_id), revoked_by=who)
            if row is not None:
                append(
                    tx,
                    ACCESS,
                    "token.revoke",
                    actor=who,
                    subject=str(row["id"]),
                    principal=row["principal"],
                    at_ms=row["revoked_ms"],
                )
        return self.get(token_id)

    def rows(self) -> Sequence[Row]:
        """Return the rows as they are stored, for the audit to compare."""
        with self.store.reading() as tx:
            return tx.all(LIST)


def terms_of(row: Row) -> str:
    """Bind what a token is: its secret's digest, and who may do what until when."""
    return sha256([row[column] for column in ("digest", "principal", "roles", "groups", "spend_limit", "expires_ms")])


def _check(
    roles: Collection[str],
    groups: Collection[str],
    limit: int | None,
    expires_in: timedelta | None,
    note: str,
) -> None:
    if not roles:
        raise InputRefused("a token without a role lets its principal do nothing; name at least one")
    for what, given in (("role", roles), ("group", groups)):
        if bad := next((one for one in given if not one.strip() or not one.isprintable()), None):
            raise InputRefused(f"a {what} is text without control characters, not {bad!r:.80}")
    if not note.isprintable():
        raise InputRefused("a note is one line of text without control characters")
    if limit is not None and not 0 <= limit < LARGEST:
        raise InputRefused(f"a limit is an amount in minor units, from 0 and below 2^53, not {limit}")
    if expires_in is not None and not timedelta() < expires_in <= LONGEST:
        raise InputRefused(f"a token may last from now on up to {LONGEST.days} days, not {expires_in}")


def _stored(texts: Iterable[str]) -> str:
    return json.dumps(sorted(set(texts)))


def _token(row: Row) -> Token:
    return Token(
        id=row["id"],
        principal=row["principal"],
        roles=tuple(json.loads(row["roles"])),
        groups=tuple(json.loads(row["groups"])),
        limit=row["spend_limit"],
        note=row["note"],
        created_by=row["created_by"],
        created_at=from_ms(row["created_ms"]),
        expires_at=None if row["expires_ms"] is None else from_ms(row["expires_ms"]),
        revoked_by=row["revoked_by"],
        revoked_at=None if row["revoked_ms"] is None else from_ms(row["revoked_ms"]),
    )
