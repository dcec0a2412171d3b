"""
What the journal says of runs beyond their rows: which questions wait, and who holds which thread. Two queries, for one run or for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from math import ceil
from shlex import quote

from checkpointing import Approval, Journal
from checkpointing.errors import RunBusy
from checkpointing.leases import holder_of, thread_lease
from checkpointing.store import Row, Tx

EVERY = 2**31 - 1
HELD = "select name, owner, expires_ms - :now as left_ms from leases where owner is not null and expires_ms > :now"
SHORTEST_WAIT_S = 10


@dataclass(frozen=True, slots=True)
class Holder:
    """
    Who holds a thread.

    Attributes:
        owner: The worker as its lease names it.
        left: How long the lease lasts if its worker is gone.
    """

    owner: str
    left: timedelta


@dataclass(frozen=True, slots=True)
class Situation:
    """
    How things are around runs.

    Attributes:
        pending: What waits for a decision, by thread, what expires first in front.
        holders: Who holds a thread now, by the name of its lease.
        now_ms: The store's time.
    """

    pending: Mapping[str, list[Approval]]
    holders: Mapping[str, Holder]
    now_ms: int

    def holder(self, thread_id: str) -> Holder | None:
        """Return who holds the thread, or `None`."""
        return self.holders.get(thread_lease(thread_id))


def situation(journal: Journal, thread_id: str | None = None) -> Situation:
    """Read the situation of one thread, or of all of them."""
    pending: dict[str, list[Approval]] = {}
    for one in journal.approvals.pending(thread_id=thread_id, limit=EVERY):
        pending.setdefault(one.thread_id, []).append(one)
    with journal.store.reading() as tx:
        return Situation(pending, _holders(tx, thread_id), tx.now_ms())


def busy(journal: Journal, thread_id: str, how: str) -> RunBusy:
    """Return the error that says that somebody holds the thread, *how* (up to the name), how long, and how to wait for it."""
    holder = situation(journal, thread_id).holder(thread_id)
    if holder is None:
        return RunBusy(f"thread {thread_id!r} was held a moment ago; counterfoil resume {quote(thread_id)}")
    left_s = holder.left.total_seconds()
    return RunBusy(
        f"thread {thread_id!r} {how.format(left=f'{left_s:.1f} s', owner=holder.owner)}; "
        f"counterfoil resume {quote(thread_id)} --wait {max(SHORTEST_WAIT_S, ceil(left_s) + 5)}"
    )


def _holders(tx: Tx, thread_id: str | None) -> dict[str, Holder]:
    if thread_id is None:
        return {str(row["name"]): _holder(row) for row in tx.all(HELD)}
    row = holder_of(tx, thread_lease(thread_id))
    return {thread_lease(thread_id): _holder(row)} if row and int(row["left_ms"]) > 0 else {}


def _holder(row: Row) -> Holder:
    return Holder(str(row["owner"]), timedelta(milliseconds=int(row["left_ms"])))
