"""
Listing: pages of runs, approvals, effects and entries of the audit, each beginning after the last row of the one before.

A page is found by its place in an order (a keyset) and by an index, so the thousandth costs what the first does, and what is added, decided or
ended meanwhile moves nothing to a page where it would be seen twice. What changes its place in the order may be missed by whoever is on the
way; asking again from the start shows it.

    runs        newest first
    approvals   pending: what expires first in front; others, and those of one thread: asked last in front
    effects     in the order they were claimed
    entries     of a thread's audit, oldest first
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from checkpointing.admissions import Run, RunState, run_from
from checkpointing.asking import newest_round
from checkpointing.audit import Entry, entry_from
from checkpointing.clock import to_ms
from checkpointing.effects import EffectRecord, EffectState, record_from
from checkpointing.questions import Approval, ApprovalState, approval_from
from checkpointing.store import Row, Store, Tx

T = TypeVar("T")

LAST = 2**63 - 1
"""After every instant; where a question waits for ever it stands in the queue's order too."""
SCANNED = 2000
"""How many rows are looked at for one page, where not all of them are wanted."""
AT_A_TIME = 200

RUNS = """
select * from runs where {seen} (created_ms, thread_id) < (:at, :after)
    and (cast(:graph as text) is null or graph = :graph) and (cast(:reason as text) is null or reason = :reason)
order by created_ms desc, thread_id desc limit :limit
"""
RUNS_IN_STATE = RUNS.replace("where", "where state = :state and")
OWN = "submitted_by = :principal and"
ASKING = "exists (select 1 from approvals where approvals.thread_id = runs.thread_id) and"
OWN_OR_ASKING = """
(submitted_by = :principal or (select 1 from approvals where approvals.thread_id = runs.thread_id limit 1) = 1) and
"""
"""Not `exists`: beside an `or`, Postgres reads the whole of the other table for that first."""

APPROVALS = """
select approvals.*, runs.submitted_by as submitted_by from approvals left join runs on runs.thread_id = approvals.thread_id
where {which}
    and (cast(:name as text) is null or approvals.name = :name)
    and (cast(:least as bigint) is null or approvals.amount >= :least)
    and (cast(:most as bigint) is null or approvals.amount <= :most)
"""
QUEUED_AT = "coalesce(approvals.expires_ms, 9223372036854775807)"
QUEUE = f"""
{APPROVALS.format(which="approvals.state = 'pending'")}
    and {QUEUED_AT} >= :at and ({QUEUED_AT}, approvals.id) > (:at, :after)
order by {QUEUED_AT}, approvals.id limit :limit
"""
BACKWARDS = """
    and (approvals.opened_ms, approvals.id) < (:at, :after)
order by approvals.opened_ms desc, approvals.id desc limit :limit
"""
IN_STATE = APPROVALS.format(which="approvals.state = :state and approvals.state <> 'pending'") + BACKWARDS
OF_THREAD = APPROVALS.format(which="approvals.thread_id = :thread_id") + BACKWARDS
OF_THREAD_IN_STATE = APPROVALS.format(which="approvals.thread_id = :thread_id and approvals.state = :state") + BACKWARDS
SIMILAR = """
select * from approvals where name = :name and state = 'decided' and id <> :id and (decided_ms, id) < (:at, :after)
order by decided_ms desc, id desc limit :limit
"""

ENTRIES = "select * from audit where thread_id = :thread_id and seq > :at order by seq limit :limit"
HAS_ASKED = "select 1 as asked from approvals where thread_id = :thread_id limit 1"

EFFECTS = """
select * from effects where (claimed_ms, slot) > (:at, :after) order by claimed_ms, slot limit :limit
"""
EFFECTS_IN_STATE = EFFECTS.replace("where", "where state = :state and")
EFFECTS_OF_THREAD = EFFECTS.replace("where", "where thread_id = :thread_id and")
EFFECTS_OF_THREAD_IN_STATE = EFFECTS_OF_THREAD.replace("where", "where state = :state and")


@dataclass(frozen=True, slots=True)
class Mark:
    """
    A place in an order: after the row with this instant and this id.

    Attributes:
        at: In milliseconds; which instant, the order says.
        after: The row's id, which settles who is first of one instant.
    """

    at: int
    after: str


@dataclass(frozen=True, slots=True)
class Sight:
    """
    Which runs somebody may see.

    Attributes:
        principal: Only those they submitted; `None` for all of them.
        asking: Those too that ever asked for an approval.
    """

    principal: str | None = None
    asking: bool = False

    def covers(self, run: Run, *, has_asked: Callable[[], bool]) -> bool:
        """Tell whether they may see *run*."""
        if self == EVERYTHING or (self.principal is not None and self.principal == run.submitted_by):
            return True
        return self.asking and has_asked()

    @property
    def condition(self) -> str:
        """What the query of runs says of it."""
        if self.principal is None:
            return ASKING if self.asking else ""
        return OWN_OR_ASKING if self.asking else OWN


EVERYTHING = Sight()
NOTHING = Sight(principal="")
"""What nobody submitted, as nobody has an empty name: whoever has no role sees this."""


@dataclass(frozen=True, slots=True)
class Asked:
    """
    Which approvals are wanted.

    Attributes:
        state: `None`, for those of one thread only, is any.
        least: The smallest amount, in minor units; those without an amount are left out then.
        most: The largest.
    """

    state: ApprovalState | None = "pending"
    thread_id: str | None = None
    name: str | None = None
    least: int | None = None
    most: int | None = None

    @property
    def sql(self) -> str:
        """The query for it."""
        if self.thread_id is not None:
            return OF_THREAD_IN_STATE if self.state else OF_THREAD
        return QUEUE if self.state == "pending" else IN_STATE

    @property
    def is_queue(self) -> bool:
        """Whether they come in the order in which they expire."""
        return self.thread_id is None and self.state == "pending"


@dataclass(frozen=True, slots=True)
class Found:
    """
    An approval, and who submitted what it is about.

    Attributes:
        submitted_by: The run's submitter; `None` where there is no run, or nobody was named.
    """

    approval: Approval
    submitted_by: str | None


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """
    Some rows of a list.

    Attributes:
        next: Where the next page begins; `None` where this one is the last.
    """

    items: list[T]
    next: Mark | None


class Listing:
    """Pages of what the journal has."""

    def __init__(self, store: Store) -> None:
        """Read from *store*."""
        self.store = store

    def runs(
        self,
        *,
        sight: Sight = EVERYTHING,
        state: RunState | None = None,
        graph: str | None = None,
        reason: str | None = None,
        after: Mark | None = None,
        limit: int,
    ) -> Page[Run]:
        """Return up to *limit* runs, newest first."""
        sql = (RUNS_IN_STATE if state else RUNS).replace("{seen}", sight.condition)
        values = {"state": state, "graph": graph, "reason": reason, "principal": sight.principal}
        rows = self._page(sql, after or Mark(LAST, ""), limit, **values)
        return _paged([run_from(row) for row in rows], limit, lambda run: Mark(to_ms(run.created_at), run.thread_id))

    def approvals(
        self,
        asked: Asked,
        *,
        after: Mark | None = None,
        limit: int,
        wanted: Callable[[Found], bool] = lambda _: True,
    ) -> Page[Found]:
        """
        Return up to *limit* approvals, of those that are *wanted*.

        At most some `SCANNED` rows are looked at, so that a page may be short, or empty, and not the last.
        """
        found: list[Found] = []
        mark = after or (Mark(-1, "") if asked.is_queue else Mark(LAST, ""))
        looked, size = 0, limit + 1
        with self.store.reading() as tx:
            while True:
                rows = _approvals(tx, asked, mark, size)
                for one in rows:
                    if len(found) == limit:
                        return Page(found, mark)
                    mark = _mark_of(one.approval, queue=asked.is_queue)
                    if wanted(one):
                        found.append(one)
                looked += len(rows)
                if len(rows) < size or looked >= SCANNED:
                    return Page(found, mark if len(rows) == size else None)
                size = AT_A_TIME

    def similar(self, approval: Approval, *, after: Mark | None = None, limit: int) -> Page[Approval]:
        """Return up to *limit* other approvals of the same name that somebody decided, last decided first."""
        rows = self._page(SIMILAR, after or Mark(LAST, ""), limit, name=approval.name, id=approval.id)
        return _paged([approval_from(row) for row in rows], limit, lambda one: Mark(_ms(one.decided_at), one.id))

    def effects(
        self,
        *,
        thread_id: str | None = None,
        state: EffectState | None = None,
        after: Mark | None = None,
        limit: int,
    ) -> Page[EffectRecord]:
        """Return up to *limit* effects in the order they were claimed."""
        # One text a question: neither engine uses an index under a condition that may be empty.
        of_thread = EFFECTS_OF_THREAD_IN_STATE if state else EFFECTS_OF_THREAD
        sql = of_thread if thread_id is not None else EFFECTS_IN_STATE if state else EFFECTS
        rows = self._page(sql, after or Mark(-1, ""), limit, thread_id=thread_id, state=state)
        return _paged([record_from(row) for row in rows], limit, lambda one: Mark(to_ms(one.claimed_at), one.slot))

    def entries(self, thread_id: str, *, after: Mark | None = None, limit: int) -> Page[Entry]:
        """Return up to *limit* entries of the thread's audit, oldest first."""
        rows = self._page(ENTRIES, after or Mark(0, ""), limit, thread_id=thread_id)
        return _paged([entry_from(row) for row in rows], limit, lambda one: Mark(one.seq, ""))

    def has_asked(self, thread_id: str) -> bool:
        """Tell whether the thread ever asked for an approval."""
        with self.store.reading() as tx:
            return tx.one(HAS_ASKED, thread_id=thread_id) is not None

    def newest_round(self, approval: Approval) -> str:
        """Return the id of the approval that asks now what *approval* asked; its own where no other does."""
        with self.store.reading() as tx:
            return newest_round(tx, approval) or approval.id

    def _page(self, sql: str, mark: Mark, limit: int, **values: Any) -> list[Row]:
        with self.store.reading() as tx:
            return tx.all(sql, at=mark.at, after=mark.after, limit=limit + 1, **values)


def _approvals(tx: Tx, asked: Asked, mark: Mark, limit: int) -> list[Found]:
    values = {"state": asked.state, "thread_id": asked.thread_id, "name": asked.name}
    amounts = {"least": asked.least, "most": asked.most}
    rows = tx.all(asked.sql, at=mark.at, after=mark.after, limit=limit, **values, **amounts)
    return [Found(approval_from(row), row["submitted_by"]) for row in rows]


def _paged(rows: list[T], limit: int, mark: Callable[[T], Mark]) -> Page[T]:
    """Return a page of what was read, one row more than was asked for where there is one."""
    return Page(rows[:limit], mark(rows[limit - 1]) if len(rows) > limit else None)


def _mark_of(approval: Approval, *, queue: bool) -> Mark:
    at = approval.expires_at if queue else approval.opened_at
    return Mark(_ms(at), approval.id)


def _ms(instant: datetime | None) -> int:
    return LAST if instant is None else to_ms(instant)
