"""
Sessions: who is logged in to the pages, by a cookie of which only the digest is kept.

    begun ──▶ good ──▶ ended       by a logout
                ├────▶ overdue     by the store's clock
                └────▶ void        its token was revoked, or has expired

A session says who came in when it began. It is looked up at every request together with the token it began with, so a token that is revoked
ends its sessions at once, in every process. Every login begins a session of its own, under a secret nobody has had before it.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from checkpointing.clock import duration_ms, from_ms
from checkpointing.hashed import digest_of, new_secret
from checkpointing.principals import Person
from checkpointing.store import Row, Store

LASTING = timedelta(hours=12)
"""How long a session lasts by default: a working day, and no night."""

BEGIN = """
insert into sessions (digest, principal, roles, groups, spend_limit, token_digest, created_ms, expires_ms)
values (:digest, :principal, :roles, :groups, :spend_limit, :token_digest, :now, :now + cast(:lasting_ms as bigint))
"""
FIND = """
select sessions.* from sessions left join tokens on tokens.digest = sessions.token_digest
where sessions.digest = :digest and sessions.expires_ms > :now and (sessions.token_digest is null
    or (tokens.revoked_ms is null and tokens.digest is not null and (tokens.expires_ms is null or tokens.expires_ms > :now)))
"""
END = "delete from sessions where digest = :digest"
OVERDUE = "select digest from sessions where expires_ms <= :now order by expires_ms limit 100 for update skip locked"


@dataclass(frozen=True, slots=True)
class Session:
    """
    A session that is good.

    Attributes:
        person: Who logged in.
        roles: In which roles, sorted.
        began_at: When they logged in.
        expires_at: When they have to log in again.
    """

    person: Person
    roles: tuple[str, ...]
    began_at: datetime
    expires_at: datetime


class Sessions:
    """The `sessions` table."""

    def __init__(self, store: Store) -> None:
        """Use *store*."""
        self.store = store

    def begin(
        self,
        person: Person,
        roles: Collection[str],
        *,
        token_digest: str | None = None,
        lasting: timedelta = LASTING,
    ) -> str:
        """
        Begin a session and return the secret for its cookie; what is overdue of other sessions is forgotten.

        Args:
            person: who was authenticated.
            roles: what they may do.
            token_digest: `digest_of` the token's secret they came in by, which ends the session when it is revoked; `None` for another means.
            lasting: how long, whatever they do.
        """
        secret = new_secret()
        with self.store.transaction("session.begin") as tx:
            for row in tx.all(OVERDUE):
                tx.all(END, digest=row["digest"])
            tx.all(
                BEGIN,
                digest=digest_of(secret),
                principal=person.name,
                roles=json.dumps(sorted(set(roles))),
                groups=json.dumps(sorted(person.groups)),
                spend_limit=person.limit,
                token_digest=token_digest,
                lasting_ms=duration_ms(lasting),
            )
        return secret

    def find(self, secret: str) -> Session | None:
        """Return the session whose secret this is; `None` if it ended, is overdue, or its token is revoked or expired."""
        with self.store.reading() as tx:
            row = tx.one(FIND, digest=digest_of(secret))
        return None if row is None else _session(row)

    def end(self, secret: str) -> None:
        """Let nobody in by this secret any more; nothing happens if nobody came in by it."""
        with self.store.transaction("session.end") as tx:
            tx.all(END, digest=digest_of(secret))


def _session(row: Row) -> Session:
    return Session(
        person=Person(row["principal"], frozenset(json.loads(row["groups"])), row["spend_limit"]),
        roles=tuple(json.loads(row["roles"])),
        began_at=from_ms(row["created_ms"]),
        expires_at=from_ms(row["expires_ms"]),
    )
