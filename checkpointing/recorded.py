"""
What the ledger has recorded in a slot, read without claiming anything, and the note that a request was refused because of it.
"""

from __future__ import annotations

from checkpointing.audit import append
from checkpointing.effects import EffectRecord, Request, record_from
from checkpointing.leases import check_fence
from checkpointing.slots import Slot
from checkpointing.store import Store

IN_SLOT = "select * from effects where slot = :slot"
AT_STEP = "select * from effects where thread_id = :thread_id and step = :step order by claimed_ms, slot limit 1"


def recorded(store: Store, slot: Slot) -> EffectRecord | None:
    """Return the record of *slot*, in whatever state it is, or `None` if it was never claimed."""
    with store.reading() as tx:
        row = tx.one(IN_SLOT, slot=slot.id)
    return record_from(row) if row else None


def recorded_at(store: Store, thread_id: str, step: str) -> EffectRecord | None:
    """Return the record that the thread claimed first at *step*, under whatever identity, or `None`."""
    with store.reading() as tx:
        row = tx.one(AT_STEP, thread_id=thread_id, step=step)
    return record_from(row) if row else None


def note_conflict(store: Store, asked: Request, found: EffectRecord) -> None:
    """
    Write into the asking thread's audit that it was refused what *found* is recorded for with other arguments.

    Raises:
        LeaseLost: stop.
    """
    with store.transaction("effect.conflict") as tx:
        check_fence(tx, asked.place.held)
        append(
            tx,
            asked.slot.thread_id,
            "effect.conflict",
            actor=asked.place.held.owner,
            subject=found.key,
            effect=asked.effect,
            recorded=found.digest,
            asked=asked.digest,
        )
