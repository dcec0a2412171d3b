"""
Telling the workers that a thread is to be advanced, in the transaction that made it so.

`runs.due_ms` says when somebody is to look at a run; that is the truth, and on SQLite it is all there is: workers ask for what is due. On Postgres
a job of Procrastinate goes with it, which wakes a worker at once. The job says "advance thread T" and nothing more, so it may come twice, late or
never: twice meets the lease, and one that never comes is made up for by the sweep, which looks at `due_ms`.

Jobs are locked after runs and before heads of the audit, and several of them in the order of their threads.

One thread has one job waiting (`queueing_lock`): another one for the same thread only brings it forward. It never has Procrastinate's `lock`, which
a dead worker's job would hold for ever.
"""

from __future__ import annotations

import hashlib
import json
import re

from checkpointing.store import Tx

TASK = "counterfoil.advance"
SHORT_NAME = re.compile(r"[A-Za-z0-9_.-]{1,32}")

WOKEN, BEGUN, SUBMITTED = 10, 5, 0
"""Priorities: what a person has just decided, then what was begun and given back or failed, and then what was just submitted."""

ENQUEUE = """
insert into procrastinate_jobs (queue_name, task_name, priority, queueing_lock, args, scheduled_at)
values (:queue, :task, :priority, :thread_id, cast(:arguments as jsonb),
    case when :delay_ms > 0 then clock_timestamp() + (:delay_ms + 1) * interval '1 millisecond' end)
on conflict (queueing_lock) where status = 'todo' do update set
    scheduled_at = case when procrastinate_jobs.scheduled_at > coalesce(excluded.scheduled_at, now()) then excluded.scheduled_at
        else procrastinate_jobs.scheduled_at end,
    priority = greatest(procrastinate_jobs.priority, excluded.priority)
where procrastinate_jobs.scheduled_at > coalesce(excluded.scheduled_at, now()) or procrastinate_jobs.priority < excluded.priority
"""
"""A job for later comes a millisecond later: `due_ms` is rounded, and one that fires before its run is due is for nothing."""

ENQUEUE_DUE = """
insert into procrastinate_jobs (queue_name, task_name, priority, queueing_lock, args)
select :queue, :task, :priority, thread_id, jsonb_build_object('thread_id', thread_id) from (
    select runs.thread_id from runs left join leases on leases.name = 'thread:' || runs.thread_id
    where runs.graph = :graph and runs.due_ms <= :until and (leases.owner is null or leases.expires_ms <= :until)
        and not exists (select 1 from procrastinate_jobs job
            where job.queueing_lock = runs.thread_id and job.status = 'todo' and coalesce(job.scheduled_at, now()) <= now())
    order by runs.due_ms limit :limit) as due
order by thread_id
on conflict (queueing_lock) where status = 'todo' do update set scheduled_at = null
returning id
"""
FORGET = "delete from procrastinate_jobs where queueing_lock = :thread_id and status = 'todo'"


def forget(tx: Tx, thread_id: str) -> None:
    """Take the thread's waiting job out of the queue as part of *tx*, which ends the run: where there are no workers they would pile up."""
    if tx.dialect.dispatches:
        tx.all(FORGET, thread_id=thread_id)


def enqueue_due(tx: Tx, *, graph: str, limit: int) -> int:
    """Give each due run of the graph that nobody holds and that has no job one, up to *limit*, as part of *tx*; return how many."""
    # The time is a value here: Postgres looks nothing up in an index by its own clock, which moves while it reads.
    values = {"graph": graph, "until": tx.now_ms(), "limit": limit}
    return len(tx.all(ENQUEUE_DUE, queue=queue_of(graph), task=TASK, priority=BEGUN, **values))


def enqueue(tx: Tx, thread_id: str, *, graph: str, delay_ms: int = 0, priority: int = SUBMITTED) -> None:
    """
    Have a worker advance the thread after *delay_ms*, as part of *tx*.

    A statement of our own, and not Procrastinate's function: a job that is queued already is an error there, which would abort *tx*.
    """
    if tx.dialect.dispatches:
        tx.all(
            ENQUEUE,
            queue=queue_of(graph),
            task=TASK,
            priority=priority,
            thread_id=thread_id,
            arguments=json.dumps({"thread_id": thread_id}),
            delay_ms=delay_ms,
        )


def queue_of(graph: str) -> str:
    """
    Return the queue of the runs of the graph of this name, at most 40 characters long.

    A queue's name is part of a channel's, and Postgres takes no channel of more than 63 bytes.
    """
    if not graph:
        return "counterfoil"
    return (
        f"graph:{graph}" if SHORT_NAME.fullmatch(graph) else f"graph#{hashlib.sha256(graph.encode()).hexdigest()[:32]}"
    )
