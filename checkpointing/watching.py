"""
Watching: which runs are stuck, held and parked, for whoever looks after them. Only read, and each list by an index up to its limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from checkpointing.admissions import Run, run_from
from checkpointing.clock import duration_ms
from checkpointing.questions import Approval, approval_from
from checkpointing.store import Store

STUCK = """
select runs.* from runs left join leases on leases.name = 'thread:' || runs.thread_id
where runs.due_ms <= :until and (leases.owner is null or leases.expires_ms <= :now_ms)
order by runs.due_ms, runs.thread_id limit :limit
"""
HELD = """
select runs.*, leases.owner as holder from runs join leases on leases.name = 'thread:' || runs.thread_id
where runs.state in ('admitted', 'running') and runs.graph <> :quiet and leases.owner is not null and leases.expires_ms > :now_ms
order by runs.thread_id limit :limit
"""
PARKED = "select * from runs where state = 'parked' and graph <> :quiet order by thread_id limit :limit"
ASKED = """
select * from approvals where state = 'pending'
    and thread_id in (select thread_id from runs where state = 'parked' and graph <> :quiet order by thread_id limit :limit)
order by thread_id, coalesce(expires_ms, 9223372036854775807) desc, id desc
"""


@dataclass(frozen=True, slots=True)
class Watched:
    """
    How the runs stand that are not at rest.

    Attributes:
        stuck: Due for longer than was asked about, and held by nobody; the longest first.
        held: Runs that a worker has now, with its name.
        parked: Runs that wait, and what for where that is a decision: of several the one that ends first.
    """

    stuck: tuple[Run, ...]
    held: tuple[tuple[Run, str], ...]
    parked: tuple[tuple[Run, Approval | None], ...]


def watched(store: Store, *, patience: timedelta, quiet: str, limit: int) -> Watched:
    """Look once; up to *limit* of each, stuck ones due for longer than *patience*. Runs of the graph *quiet* are no news but where they are stuck."""
    with store.reading() as tx:
        now = tx.now_ms()
        stuck = tx.all(STUCK, until=now - duration_ms(patience), now_ms=now, limit=limit)
        held = tx.all(HELD, now_ms=now, quiet=quiet, limit=limit)
        parked = [run_from(row) for row in tx.all(PARKED, quiet=quiet, limit=limit)]
        asked = {str(row["thread_id"]): approval_from(row) for row in tx.all(ASKED, quiet=quiet, limit=limit)}
    return Watched(
        stuck=tuple(map(run_from, stuck)),
        held=tuple((run_from(row), str(row["holder"])) for row in held),
        parked=tuple((run, asked.get(run.thread_id)) for run in parked),
    )
