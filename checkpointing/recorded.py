"""
What the ledger has recorded, read without claiming anything: by key, by slot, by thread and state.
"""

from __future__ import annotations

from checkpointing.effects import EffectRecord, EffectState, record_from
from checkpointing.resolving import GET, existing
from checkpointing.slots import Slot
from checkpointing.store import Store

PAST = "select * from effect_generations where key = :key"
PAST_OF_THREAD = "select * from effect_generations where thread_id = :thread_id order by claimed_ms, slot, generation"
ALL = """
select * from effects where (claimed_ms, slot) > (:after_ms, :after) order by claimed_ms, slot limit :limit
"""
OF_THREAD = ALL.replace("where", "where thread_id = :thread_id and")
IN_STATE = ALL.replace("where", "where state = :state and")
OF_THREAD_IN_STATE = IN_STATE.replace("where", "where thread_id = :thread_id and")
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


def get(store: Store, key: str) -> EffectRecord:
    """
    Return the effect with this key, or the earlier generation that had it.

    Raises:
        UnknownEffect: no effect has or had this key.
    """
    with store.reading() as tx:
        return record_from(tx.one(GET, key=key) or existing(tx, key, sql=PAST))


def past(store: Store, thread_id: str) -> list[EffectRecord]:
    """Return the earlier generations of the thread's effects, in the order they were claimed."""
    with store.reading() as tx:
        return [record_from(row) for row in tx.all(PAST_OF_THREAD, thread_id=thread_id)]


def page(
    store: Store, *, thread_id: str | None, state: EffectState | None, after: EffectRecord | None, limit: int
) -> list[EffectRecord]:
    """Return up to *limit* effects in the order they were claimed, from the one after *after*."""
    # One text a question, not one with empty conditions: neither engine uses an index under those.
    sql = (OF_THREAD_IN_STATE if state else OF_THREAD) if thread_id else IN_STATE if state else ALL
    after_ms = int(after.claimed_at.timestamp() * 1000) if after else -1
    with store.reading() as tx:
        rows = tx.all(
            sql, thread_id=thread_id, state=state, after_ms=after_ms, after=after.slot if after else "", limit=limit
        )
    return [record_from(row) for row in rows]
