"""
What other transitions do to a run as part of their own transaction: make a parked one ready again; and who submitted it.

A decision, a resolution and an expiry wake whoever waits for them, so that nothing decided ever leaves its run parked.
"""

from __future__ import annotations

from checkpointing.dispatch import WOKEN, enqueue
from checkpointing.store import Row, Tx

WAKE = """
update runs set state = 'admitted', reason = null, waits_for = null, updated_ms = :now, due_ms = :now
where thread_id = :thread_id and state = 'parked' returning thread_id, graph
"""
WAKE_WAITING = """
update runs set state = 'admitted', reason = null, waits_for = null, updated_ms = :now, due_ms = :now
where waits_for = :key and state = 'parked' returning thread_id, graph
"""
SUBMITTERS = """
select submitted_by as principal from runs where thread_id = :thread_id and submitted_by is not null
union
select actor as principal from audit where thread_id = :thread_id and event = 'server.submit'
"""


def wake(tx: Tx, thread_id: str) -> None:
    """Make a parked run ready again as part of *tx*; a run in any other state notices by itself."""
    _enqueue(tx, tx.all(WAKE, thread_id=thread_id))


def wake_waiting(tx: Tx, key: str) -> set[str]:
    """Make every run that is parked for this effect ready again as part of *tx*, and return their threads, for the audit."""
    return _enqueue(tx, tx.all(WAKE_WAITING, key=key))


def submitters(tx: Tx, thread_id: str) -> set[str]:
    """Return who submitted the thread: its current turn where it has a run, and whoever an Agent Server noted; nobody if nobody was named."""
    return {str(row["principal"]) for row in tx.all(SUBMITTERS, thread_id=thread_id)}


def _enqueue(tx: Tx, woken: list[Row]) -> set[str]:
    """Have workers carry the woken runs on, and return their threads."""
    for row in sorted(woken, key=lambda row: str(row["thread_id"])):
        enqueue(tx, row["thread_id"], graph=row["graph"], priority=WOKEN)
    return {str(row["thread_id"]) for row in woken}
