"""
What waits to be carried on: how many runs are due and for how long the longest has been, who works, and what the queue's jobs say.

The runs' rows are the truth on both engines; on Postgres the jobs of Procrastinate are told too, because a worker that died shows there first.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from checkpointing.store import Store, Tx

READY = """
select runs.graph, count(*) as ready, :until - min(runs.due_ms) as lag_ms
from runs left join leases on leases.name = 'thread:' || runs.thread_id
where runs.due_ms <= :until and (leases.owner is null or leases.expires_ms <= :until)
group by runs.graph order by runs.graph
"""
LATER = "select count(*) as later from runs where state = 'admitted' and due_ms > :now"
HELD = "select count(*) as held from leases where owner is not null and expires_ms > :now and name like 'thread:%'"
JOBS = "select cast(status as text) as status, count(*) as jobs from procrastinate_jobs group by status order by status"
WORKERS = "select count(*) as workers from procrastinate_workers where last_heartbeat > now() - interval '30 seconds'"


@dataclass(frozen=True, slots=True)
class GraphQueue:
    """
    What waits for one graph's workers.

    Attributes:
        graph: Its name; empty for one without.
        ready: Runs that are due and that nobody holds.
        lag: How long the first of them has been due.
    """

    graph: str
    ready: int
    lag: timedelta


@dataclass(frozen=True, slots=True)
class Queue:
    """
    What waits to be carried on.

    Attributes:
        graphs: Those for which something is ready, by name.
        later: Runs that workers leave alone for a while: they failed, or their caller runs them.
        held: Threads that somebody holds now.
        jobs: The queue's jobs by status; empty on SQLite, which has none.
        workers: Workers that were alive within the last half minute; `None` on SQLite, where nobody is counted.
    """

    graphs: tuple[GraphQueue, ...]
    later: int
    held: int
    jobs: dict[str, int]
    workers: int | None

    @property
    def ready(self) -> int:
        """How many runs are due and held by nobody."""
        return sum(one.ready for one in self.graphs)

    @property
    def lag(self) -> timedelta:
        """How long the longest of them has been due; zero if there is none."""
        return max((one.lag for one in self.graphs), default=timedelta(0))


def queue(store: Store) -> Queue:
    """Look at what waits to be carried on."""
    with store.reading() as tx:
        graphs = tuple(
            GraphQueue(str(row["graph"]), int(row["ready"]), timedelta(milliseconds=int(row["lag_ms"])))
            for row in tx.all(READY, until=tx.now_ms())
        )
        jobs = {str(row["status"]): int(row["jobs"]) for row in tx.all(JOBS)} if tx.dialect.dispatches else {}
        return Queue(
            graphs,
            later=_count(tx, LATER, "later"),
            held=_count(tx, HELD, "held"),
            jobs=jobs,
            workers=_count(tx, WORKERS, "workers") if tx.dialect.dispatches else None,
        )


def _count(tx: Tx, sql: str, column: str) -> int:
    row = tx.one(sql)
    assert row is not None
    return int(row[column])
