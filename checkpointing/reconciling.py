"""
What a comparison with a receiver asks of the ledger, and the one thing it changes there.

    claimed (its owner gone) ──┐
    in doubt ──────────────────┼── adopt ──▶ settled, with what the receiver executed
    released ──────────────────┘

Adopting is resolving by the receiver's own word: a principal answers for it, the runs that wait are woken, and the entry of the audit is that of a
resolution, with the receiver's id. What is released may be adopted too: somebody said that nothing happened, or a refusal was taken for one, and
the receiver says otherwise. A claim whose owner is at work is never touched, and an outcome is never replaced.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from checkpointing.digest import sha256
from checkpointing.effects import EffectRecord, record_from
from checkpointing.errors import AlreadySettled, EffectBusy, UnknownEffect
from checkpointing.leases import is_live
from checkpointing.ledger import Ledger
from checkpointing.resolving import GET_LOCKED, existing, wake_and_audit
from checkpointing.slots import Slot
from checkpointing.store import Row, Store, Tx

KEYS = 100
"""How many keys one query takes: a fixed number, so that its text is one, with a parameter for each."""

ROWS = 500
"""How many rows of the ledger are held at a time."""

KNOWN = """
select effects.*, exists (select 1 from leases where leases.name = effects.lease and leases.fence = effects.fence
    and leases.owner is not null and leases.expires_ms > :now) as live
from effects
"""
OF_KEYS = f"{KNOWN} where key in ({', '.join(f':key_{n}' for n in range(KEYS))})"
AT_SLOT = f"{KNOWN} where slot = :slot"
LAST_CLAIM = """
select thread_id, body from audit where subject = :key and event = 'effect.claim' order by at_ms desc, seq desc limit 1
"""
SETTLED_SINCE = """
select * from effects where state = 'settled' and effect = :effect and settled_ms >= :since_ms
    and (claimed_ms, slot) > (:after_ms, :after) order by claimed_ms, slot limit :limit
"""
ADOPT = """
update effects set state = 'settled', outcome = :outcome, settled_ms = :now
where key = :key and state in ('claimed', 'in_doubt', 'released') returning *
"""


@dataclass(frozen=True, slots=True)
class Known:
    """
    What the ledger knows of an execution.

    Attributes:
        live: The holding it was claimed under goes on.
    """

    record: EffectRecord
    live: bool

    @property
    def in_progress(self) -> bool:
        """Whether a worker is executing it now."""
        return self.live and self.record.state == "claimed"


@dataclass(frozen=True, slots=True)
class Adopted:
    """An effect that was settled with what its receiver executed, and the threads that were woken, sorted."""

    record: EffectRecord
    woken: tuple[str, ...]


def known(ledger: Ledger, keys: Sequence[str]) -> dict[str, Known]:
    """Return what the ledger knows of these *keys*, at most `KEYS` of them; a key that is not in it is not in the answer."""
    given = {f"key_{n}": keys[n] if n < len(keys) else "" for n in range(KEYS)}
    with ledger.store.reading() as tx:
        found = {str(row["key"]): _known(row) for row in tx.all(OF_KEYS, **given)}
    for key in set(keys) - found.keys():
        if (record := _by_key(ledger, key)) is not None:
            found[key] = Known(record, live=False)
    return found


def at_slot_of(ledger: Ledger, effect: str, *, key: str | None, identity: str | None) -> Known | None:
    """
    Return what the ledger has in the slot that an execution with an unknown *key* belongs to, or `None`.

    The slot is that of its business *identity*; without one it is that of the claim which the audit has of this key: the slot was freed and
    claimed again with another request.
    """
    with ledger.store.reading() as tx:
        slot = Slot("", "", effect, identity).id if identity is not None else _slot_once_claimed(tx, effect, key)
        row = tx.one(AT_SLOT, slot=slot) if slot else None
    return _known(row) if row else None


def settled_since(store: Store, effect: str, since_ms: int) -> Iterator[EffectRecord]:
    """Yield the effects of this name that were settled since then, in the order they were claimed, holding one page of them."""
    after_ms, after = -1, ""
    while True:
        with store.reading() as tx:
            rows = tx.all(SETTLED_SINCE, effect=effect, since_ms=since_ms, after_ms=after_ms, after=after, limit=ROWS)
        yield from map(record_from, rows)
        if len(rows) < ROWS:
            return
        after_ms, after = int(rows[-1]["claimed_ms"]), str(rows[-1]["slot"])


def adopt(store: Store, key: str, outcome: dict[str, Any], *, executed_id: str, principal: str) -> Adopted:
    """
    Settle the effect with what its receiver executed, and wake the runs that wait for it.

    A crash before the commit leaves everything as it was; one after it leaves nothing to do.

    Raises:
        UnknownEffect: no effect has this key.
        EffectBusy: its owner is at work on it, and will settle it.
        AlreadySettled: it has its outcome; somebody was faster.
    """
    with store.transaction("effect.adopt") as tx:
        row = existing(tx, key, sql=GET_LOCKED)
        if row["state"] == "claimed" and is_live(tx, name=row["lease"], fence=row["fence"]):
            raise EffectBusy(f"effect {key!r} is being executed; its worker settles it")
        settled = tx.one(ADOPT, key=key, outcome=json.dumps(outcome))
        if settled is None:
            raise AlreadySettled(f"effect {key!r} is {row['state']}; an outcome is never replaced")
        record = record_from(settled)
        body = {"happened": True, "outcome": sha256(outcome), "executed": executed_id, "was": row["state"]}
        woken = wake_and_audit(tx, record, "effect.resolve", actor=principal, **body)
        return Adopted(record, tuple(sorted(woken)))


def _known(row: Row) -> Known:
    return Known(record_from(row), live=bool(row["live"]))


def _by_key(ledger: Ledger, key: str) -> EffectRecord | None:
    """Ask the ledger itself, which may know a key that no row has any more."""
    try:
        return ledger.get(key)
    except UnknownEffect:
        return None


def _slot_once_claimed(tx: Tx, effect: str, key: str | None) -> str | None:
    claim = tx.one(LAST_CLAIM, key=key) if key else None
    if claim is None:
        return None
    head, tail = f"{claim['thread_id']}:", f":{effect}:{json.loads(claim['body']).get('digest')}"
    if key is None or not (key.startswith(head) and key.endswith(tail)):
        return None  # the short form of a key does not say its step
    return Slot(str(claim["thread_id"]), key.removeprefix(head).removesuffix(tail), effect).id
