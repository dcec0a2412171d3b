"""
Idempotency keys: a request that is made twice under one key is carried out once, and answered twice the same.

    nothing ──begin──▶ being answered ──finish──▶ answered: the same again gets the same answer, until the key's life is over
                          │     ▲
        no answer to keep │     │ begun again: its server is gone, or stands still
               forget ◀───┴─────┘

A row without an answer may be of a request that is under way, or of one whose server died; nobody can tell. So it locks its key for `PATIENCE`
only, and then the next request under it begins again. That is harmless because what is done under a key is safe to do twice by itself: a submission
is the same run by its thread and input, and a decision is the first one recorded. The key adds that the answer is the same too.

A request that stood still for longer than `PATIENCE` and then goes on writes no answer over its successor's: `finish` holds the key only by
the instant at which it began. A crash at any point leaves either no row, or one that is taken over, or the answer.

Source: draft-ietf-httpapi-idempotency-key-header-07.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from checkpointing.clock import duration_ms
from checkpointing.errors import KeyBusy, KeyReused
from checkpointing.store import Store

PATIENCE = timedelta(seconds=30)
"""How long a request under way keeps its key; longer than any request takes that is not stuck."""
LIFE = timedelta(days=7)
"""How long an answer is kept."""

BEGIN = """
insert into idempotency_keys (principal, key, fingerprint, started_ms) values (:principal, :key, :fingerprint, :now)
on conflict (principal, key) do nothing
returning started_ms
"""
FIND = (
    "select fingerprint, status, answer, started_ms from idempotency_keys where principal = :principal and key = :key"
)
BEGIN_AGAIN = """
update idempotency_keys set started_ms = :now
where principal = :principal and key = :key and status is null and started_ms <= :now - :patience_ms
returning started_ms
"""
FINISH = """
update idempotency_keys set status = :status, answer = :answer
where principal = :principal and key = :key and status is null and started_ms = :started_ms
"""
FORGET = """
delete from idempotency_keys where principal = :principal and key = :key and status is null and started_ms = :started_ms
"""
EXPIRE = "delete from idempotency_keys where started_ms < :now - :life_ms"


@dataclass(frozen=True, slots=True)
class Answer:
    """
    What a request was answered.

    Attributes:
        status: As in HTTP.
        body: The answer's JSON, as it was sent.
        headers: Those that belong to it.
    """

    status: int
    body: str
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Begun:
    """
    A request that is to be answered now.

    Attributes:
        again: Another one began it, and left no answer: what it is about may have been done.
        started_ms: Since when, which nobody else's is.
    """

    principal: str
    key: str
    started_ms: int
    again: bool


class Idempotency:
    """The `idempotency_keys` table and its transitions."""

    def __init__(self, store: Store) -> None:
        """Use *store*."""
        self.store = store

    def begin(self, principal: str, key: str, fingerprint: str) -> Begun | Answer:
        """
        Begin the request under its key, or return what it was answered; *fingerprint* says which request it is.

        A crash before the commit leaves nothing, one after it a key that the same request may begin again after `PATIENCE`.

        Raises:
            KeyReused: the key is another request's.
            KeyBusy: it is being answered.
        """
        names = {"principal": principal, "key": key}
        with self.store.transaction("key.begin") as tx:
            tx.all(EXPIRE, life_ms=duration_ms(LIFE))
            if row := tx.one(BEGIN, fingerprint=fingerprint, **names):
                return Begun(principal, key, row["started_ms"], again=False)
            found = tx.one(FIND, **names)
            if found is None:
                raise KeyBusy(f"the request under idempotency key {key!r} ended just now without an answer")
            if found["fingerprint"] != fingerprint:
                raise KeyReused(
                    f"idempotency key {key!r} was used for another request; take a new key for a new request"
                )
            if found["status"] is not None:
                return Answer(found["status"], **json.loads(found["answer"]))
            if row := tx.one(BEGIN_AGAIN, patience_ms=duration_ms(PATIENCE), **names):
                return Begun(principal, key, row["started_ms"], again=True)
            raise KeyBusy(f"the request under idempotency key {key!r} is still being answered")

    def finish(self, begun: Begun, answer: Answer) -> None:
        """Keep what the request was answered, unless somebody else has begun it again; a crash before it is as one before the request was answered."""
        with self.store.transaction("key.finish") as tx:
            kept = json.dumps({"body": answer.body, "headers": answer.headers})
            tx.all(FINISH, status=answer.status, answer=kept, **_mine(begun))

    def forget(self, begun: Begun) -> None:
        """Free the key: the request came to nothing that is to be answered again, and may be made again at once."""
        with self.store.transaction("key.forget") as tx:
            tx.all(FORGET, **_mine(begun))


def _mine(begun: Begun) -> dict[str, Any]:
    return {"principal": begun.principal, "key": begun.key, "started_ms": begun.started_ms}
