"""
When somebody is to look at a run: the column `runs.due_ms`, apart from the transitions that set it as part of their own.

    ready           since the moment it became so
    being done      since its start; its lease keeps others away, so it is found once the lease is over
    failed          when its wait is over
    parked          at its first reminder or expiry, or when its cap on age is reached
    done, dead      never

What is due is looked up by its index and by nothing else, so what is parked costs a look nothing. A crash around any of these leaves the run due as
it was, or as it is to be; neither is harmful, because whoever looks at a run applies what is the case.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from checkpointing.admissions import Run, existing, run_from
from checkpointing.audit import append
from checkpointing.clock import duration_ms, to_ms
from checkpointing.dispatch import WOKEN, enqueue
from checkpointing.principals import named
from checkpointing.store import Store

DUE = """
select thread_id, due_ms from runs left join leases on leases.name = 'thread:' || runs.thread_id
where runs.graph = :graph and runs.due_ms <= :until and (leases.owner is null or leases.expires_ms <= :until)
order by runs.due_ms limit :limit
"""
POSTPONE = """
update runs set error = coalesce(:error, error), due_ms = :now + :delay_ms
where thread_id = :thread_id and state = :state and due_ms = :seen_ms and due_ms <= :now
"""
NEXT_END = """
(select min(at_ms) from (select coalesce(remind_ms, expires_ms) as at_ms from approvals where thread_id = :thread_id and state = 'pending'
    union all select cast(:until_ms as bigint)) as ends)
"""
"""When something on a parked run ends: its first reminder or expiry, or its own end, whichever is earlier."""

WAIT_ON = """
update runs set due_ms = {next_end} where thread_id = :thread_id and state = 'parked' and due_ms <= :now
""".replace("{next_end}", NEXT_END)
NUDGE = """
update runs set due_ms = :now where thread_id = :thread_id and state = 'admitted' and (due_ms is null or due_ms > :now) returning *
"""
GET = "select * from runs where thread_id = :thread_id"
HASTEN = """
update runs set due_ms = admitted_ms + :age_ms
where state = 'parked' and graph = :graph and coalesce(due_ms, admitted_ms + :age_ms + 1) > admitted_ms + :age_ms
returning thread_id
"""


def due(store: Store, graph: str, *, limit: int) -> tuple[str, ...]:
    """
    Return up to *limit* threads of the graph of this name that somebody is to look at now, and whom nobody holds; the longest due first.

    They are ready, or their worker is gone, or something on them is overdue.
    """
    with store.reading() as tx:
        # The time is a value here: Postgres looks nothing up in an index by its own clock, which moves while it reads.
        found = tx.all(DUE, graph=graph, until=tx.now_ms(), limit=limit)
    return tuple(str(row["thread_id"]) for row in found)


def postpone(store: Store, seen: Run, *, wait: timedelta, error: str | None) -> None:
    """
    Have workers leave a run alone that is due and that they could do nothing for; *error* says why, where there is one.

    A run that is due since another moment than when it was *seen* is left as it is: something was done for it, or came for it meanwhile.
    """
    if seen.due_at is None:
        return
    values = {"state": seen.state, "seen_ms": to_ms(seen.due_at), "error": error, "delay_ms": duration_ms(wait)}
    with store.transaction("run.postpone") as tx:
        tx.all(POSTPONE, thread_id=seen.thread_id, **values)


def wait_on(store: Store, thread_id: str, *, until: datetime | None) -> None:
    """
    Have a parked run that was due for nothing looked at when something on it ends: *until* is its own end.

    Its time was prolonged meanwhile, say.
    """
    with store.transaction("run.postpone") as tx:
        tx.all(WAIT_ON, thread_id=thread_id, until_ms=None if until is None else to_ms(until))


def hasten(store: Store, graph: str, *, age: timedelta) -> int:
    """
    Have every parked run of the graph looked at no later than when it reaches *age*, and return for how many that is news.

    A run that parked under code with another cap, or none, knows nothing of this one.
    """
    with store.transaction("run.postpone") as tx:
        return len(tx.all(HASTEN, graph=graph, age_ms=duration_ms(age)))


def nudge(store: Store, thread_id: str, *, principal: str) -> Run:
    """
    Have a worker carry an admitted run on now that would wait before its next attempt, and return the run; any other is returned as it is.

    Raises:
        UnknownThread: no such run.
        NotAllowed: no principal was named.
    """
    principal = named(principal, f"nudging thread {thread_id!r} needs a principal: who asks for it?")
    with store.transaction("run.nudge") as tx:
        row = tx.one(NUDGE, thread_id=thread_id)
        if row is None:
            return run_from(existing(tx, GET, thread_id))
        run = run_from(row)
        enqueue(tx, thread_id, graph=run.graph, priority=WOKEN)
        append(tx, thread_id, "run.nudge", actor=principal, subject=thread_id)
        return run
