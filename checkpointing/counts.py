"""
Counts: how much there is of what somebody watches, for a dashboard and an alarm; no thread, no person and no payload in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from checkpointing.store import Store

RUNS = "select state, graph, count(*) as how_many from runs group by state, graph order by state, graph"
PENDING = """
select name, count(*) as how_many, sum(case when expires_ms <= :until then 1 else 0 end) as overdue from approvals
where state = 'pending' group by name order by name
"""
DEAD = """
select coalesce(reason, '') as reason, count(*) as how_many from runs where state = 'dead' and discarded_ms is null
group by coalesce(reason, '') order by 1
"""
IN_DOUBT = "select effect, count(*) as how_many from effects where state = 'in_doubt' group by effect order by effect"
WAITING = """
select runs.graph as graph, count(*) as how_many, min(runs.due_ms) as since_ms
from runs left join leases on leases.name = 'thread:' || runs.thread_id
where runs.state in ('admitted', 'running') and runs.due_ms <= :until and (leases.owner is null or leases.expires_ms <= :until)
group by runs.graph order by runs.graph
"""
UNTOLD = "select count(*) as how_many from notices"


@dataclass(frozen=True, slots=True)
class Counts:
    """
    What the journal has at one moment, roughly: each is read for itself.

    Attributes:
        runs: By state and graph.
        pending: Approvals that wait, by name.
        overdue: Those of them whose time is over and on which nobody has applied it yet, by name.
        dead: Dead letters that nobody gave up, by reason.
        in_doubt: Effects that wait for somebody to say what happened, by effect.
        ready: Runs that a worker could take up now and that nobody holds, by graph.
        lag: How long the first of them has been ready.
        untold: Notices that are to be told.
    """

    runs: dict[tuple[str, str], int]
    pending: dict[str, int]
    overdue: dict[str, int]
    dead: dict[str, int]
    in_doubt: dict[str, int]
    ready: dict[str, int]
    lag: dict[str, timedelta]
    untold: int


def counts(store: Store) -> Counts:
    """Count."""
    with store.reading() as tx:
        now = tx.now_ms()
        pending, waiting = tx.all(PENDING, until=now), tx.all(WAITING, until=now)
        untold = tx.one(UNTOLD)
        return Counts(
            runs={(str(row["state"]), str(row["graph"])): int(row["how_many"]) for row in tx.all(RUNS)},
            pending={str(row["name"]): int(row["how_many"]) for row in pending},
            overdue={str(row["name"]): int(row["overdue"]) for row in pending},
            dead={str(row["reason"]): int(row["how_many"]) for row in tx.all(DEAD)},
            in_doubt={str(row["effect"]): int(row["how_many"]) for row in tx.all(IN_DOUBT)},
            ready={str(row["graph"]): int(row["how_many"]) for row in waiting},
            lag={str(row["graph"]): timedelta(milliseconds=now - int(row["since_ms"])) for row in waiting},
            untold=int(untold["how_many"]) if untold else 0,
        )
