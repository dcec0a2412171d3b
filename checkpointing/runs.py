"""
Runs: one row a thread, from its admission to its end.

    admit ──▶ admitted ──start──▶ running ──park──▶ parked
                 ▲  ▲                │  │              │
                 │  └──── stand_by ──┘  ├──finish──▶ done ──(a new turn)──▶ admitted
                 │                      └───die───▶ dead ──redrive──▶ admitted
                 └──────────────── wake ───────────────┘

A dead letter is left by people only: `dead_letters.py`.

*admitted* means: there is something to do and nobody is doing it. A decision wakes a parked run in the transaction that records the
decision, so a decided approval never leaves its run parked. A killed worker leaves `running` and a lease that expires; whoever takes
the lease starts again from the last checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, get_args

from checkpointing import dead_letters, due
from checkpointing.admissions import Admission, Run, RunState, Standpoint, existing, run_from
from checkpointing.audit import append
from checkpointing.budget import Taken, taken
from checkpointing.clock import duration_ms, to_ms
from checkpointing.dispatch import BEGUN, enqueue, enqueue_due, forget
from checkpointing.due import NEXT_END
from checkpointing.errors import InputChanged, InputRefused, RunDead
from checkpointing.leases import Lease, check_fence, give_back
from checkpointing.principals import named
from checkpointing.store import Store, Tx

ADMIT = """
insert into runs (thread_id, state, input_type, input, input_digest, submission, turn, attempts, resumes, submitted_by,
    graph, created_ms, updated_ms, admitted_ms, due_ms)
values (:thread_id, 'admitted', :input_type, :input, :input_digest, :submission, 1, 0, 0, :submitted_by, :graph, :now, :now,
    :now, :now + :delay_ms)
on conflict (thread_id) do nothing
returning *
"""
NEXT_TURN = """
update runs set state = 'admitted', input_type = :input_type, input = :input, input_digest = :input_digest,
    submission = :submission, turn = turn + 1, attempts = 0, tries = 0, steps = 0, submitted_by = :submitted_by, updated_ms = :now,
    admitted_ms = :now, due_ms = :now + :delay_ms
where thread_id = :thread_id and state = 'done'
returning *
"""
SUBMITTED = """
insert into submissions (thread_id, submission, turn, input_digest) values (:thread_id, :submission, :turn, :input_digest)
"""
SUBMISSION = "select turn, input_digest from submissions where thread_id = :thread_id and submission = :submission"
GET = "select * from runs where thread_id = :thread_id"
LOCK = "select * from runs where thread_id = :thread_id for update"
ALL = "select * from runs where thread_id > :after order by thread_id limit :limit"
IN_STATE = ALL.replace("where", "where state = :state and")
START = """
update runs set state = 'running', reason = null, waits_for = null, updated_ms = :now, head = :head, due_ms = :now,
    attempts = case when coalesce(head, '') = :head then attempts + :first else 1 end,
    tries = case when coalesce(head, '') = :head then tries + :first else 1 end,
    resumes = resumes + case when state = 'running' then :first else 0 end
where thread_id = :thread_id and state in ('admitted', 'running', 'parked')
returning *
"""
PARK = """
update runs set state = 'parked', reason = :reason, waits_for = :waits_for, error = null, attempts = attempts - 1, updated_ms = :now,
    due_ms = {next_end}
where thread_id = :thread_id and state = 'running' returning *
""".replace("{next_end}", NEXT_END)
FINISH = """
update runs set state = 'done', reason = null, error = null, attempts = 0, tries = 0, updated_ms = :now, due_ms = null
where thread_id = :thread_id and state = 'running' returning *
"""
DIE = """
update runs set state = 'dead', reason = :reason, error = :error, updated_ms = :now, due_ms = null,
    attempts = case when coalesce(:head, head) = head then attempts - :refund else 1 end,
    head = coalesce(:head, head), dead_step = :step, dead_nodes = :nodes
where thread_id = :thread_id and state = 'running' returning *
"""
STAND_BY = """
update runs set state = 'admitted', error = :error, updated_ms = :now, due_ms = :now + :delay_ms,
    attempts = case when coalesce(:head, head) = head then attempts - :refund else 1 end,
    tries = case when coalesce(:head, head) = head then tries else 1 end, head = coalesce(:head, head)
where thread_id = :thread_id and state = 'running' and exists
    (select 1 from audit where audit.thread_id = runs.thread_id and audit.event = 'run.start' and audit.actor = :owner)
returning *
"""
OWN_MS = 5_000
"""How long workers leave a run alone that was admitted by a caller who means to run it, in milliseconds."""


class Runs:
    """The `runs` table and all its transitions."""

    def __init__(self, store: Store) -> None:
        """Use *store*."""
        self.store = store

    def admit(self, wanted: Admission, *, queued: bool = False) -> Run:
        """
        Make sure the thread has a run for this input, and return it in whatever state it is.

        A run that is *queued* is the workers' at once; else whoever admits it means to run it, and workers leave it alone for `OWN_MS`.
        A crash after the commit leaves an admitted run that anybody may advance; admitting the same input again changes nothing.

        Raises:
            InputChanged: the thread, or this very submission of it, has other input.
            InputRefused: a new turn was asked for while the thread is not done.
        """
        if wanted.submitted_by is not None:
            named(wanted.submitted_by, f"thread {wanted.thread_id!r} cannot be submitted by a name without letters")
        with self.store.transaction("run.admit") as tx:
            values = {
                "thread_id": wanted.thread_id,
                "input_type": wanted.input_type,
                "input": wanted.input,
                "input_digest": wanted.digest,
                "submission": wanted.submission,
                "submitted_by": wanted.submitted_by,
                "graph": wanted.graph,
                "delay_ms": 0 if queued else OWN_MS,
            }
            row = tx.one(ADMIT, **values)
            if row is None:
                current = run_from(existing(tx, LOCK, wanted.thread_id))
                if not _is_new_turn(tx, current, wanted):
                    return current
                row = tx.one(NEXT_TURN, **{name: value for name, value in values.items() if name != "graph"})
                if row is None:
                    raise InputRefused(
                        f"thread {wanted.thread_id!r} is {current.state} with submission {current.submission!r}; "
                        "a new turn begins when it is done"
                    )
            run = run_from(row)
            if queued:
                enqueue(tx, run.thread_id, graph=run.graph)
            tx.all(
                SUBMITTED,
                thread_id=run.thread_id,
                submission=run.submission,
                turn=run.turn,
                input_digest=run.input_digest,
            )
            _audit(
                tx,
                run,
                "run.admit",
                actor=wanted.submitted_by or "",
                turn=run.turn,
                input=run.input_digest,
            )
            return run

    def get(self, thread_id: str) -> Run:
        """
        Return the thread's run.

        Raises:
            UnknownThread: no run was ever admitted for it.
        """
        with self.store.reading() as tx:
            return run_from(existing(tx, GET, thread_id))

    def find(self, thread_id: str) -> Run | None:
        """Return the thread's run, or `None`."""
        with self.store.reading() as tx:
            row = tx.one(GET, thread_id=thread_id)
        return run_from(row) if row else None

    def taken(self, thread_id: str) -> Taken:
        """Return what the run has taken of what caps allow; nothing for a thread without a run or effects."""
        with self.store.reading() as tx:
            return taken(tx, thread_id)

    def list(self, *, state: RunState | None = None, after: str = "", limit: int = 1000) -> list[Run]:
        """Return up to *limit* runs in order of their thread ids, from the one after *after*."""
        if state is not None and state not in get_args(RunState):
            raise InputRefused(f"there is no run state {state!r}; there are {', '.join(get_args(RunState))}")
        with self.store.reading() as tx:
            return [run_from(row) for row in tx.all(IN_STATE if state else ALL, state=state, after=after, limit=limit)]

    def input_of(self, thread_id: str) -> tuple[str, bytes]:
        """Return the admitted input of the current turn as LangGraph's serialiser wrote it."""
        with self.store.reading() as tx:
            row = existing(tx, GET, thread_id)
        return str(row["input_type"]), bytes(row["input"])

    def start(self, lease: Lease, thread_id: str, *, head: str, first: bool = True) -> Run:
        """
        Book an attempt; the run is running afterwards. A pass that is not the *first* under its lease is no attempt of its own.

        It is booked before the work, so that a worker that dies of the work is counted too. A *head* (the newest checkpoint's id,
        empty if there is none) other than at the last start is progress and gives the earlier attempts back.

        A run that is done, because somebody else was faster, is returned as it is.

        Raises:
            LeaseLost: stop.
            RunDead: the run is a dead letter.
        """
        with self.store.transaction("run.start") as tx:
            check_fence(tx, lease)
            row = tx.one(START, thread_id=thread_id, head=head, first=int(first))
            if row is None:
                run = run_from(existing(tx, GET, thread_id))
                if run.state == "done":
                    return run
                raise RunDead(f"thread {thread_id!r} is {run.state}{f' ({run.reason})' if run.reason else ''}")
            run = run_from(row)
            _audit(tx, run, "run.start", actor=lease.owner, attempt=run.attempts, head=head, first=first)
            return run

    def park(
        self,
        lease: Lease,
        thread_id: str,
        *,
        reason: str,
        still_waiting: Callable[[Tx], bool],
        waits_for: str | None = None,
        until: datetime | None = None,
    ) -> bool:
        """
        Park the run and give the lease back, unless what it waits for has come meanwhile; *until* is when its own time is over.

        *still_waiting* looks, under a lock on the rows waited for, in the same transaction; if it says no, nothing is changed,
        `False` is returned and the caller advances the run once more. So a decision is either seen here or finds the run parked.
        """
        until_ms = None if until is None else to_ms(until)
        with self.store.transaction("run.park") as tx:
            check_fence(tx, lease, to_end=True)
            if not still_waiting(tx):
                return False
            if row := tx.one(PARK, thread_id=thread_id, reason=reason, waits_for=waits_for, until_ms=until_ms):
                _audit(tx, run_from(row), "run.park", actor=lease.owner, reason=reason)
            give_back(tx, lease)
            return True

    def finish(self, lease: Lease, thread_id: str) -> None:
        """End the run as done and give the lease back."""
        self._end("run.finish", lease, thread_id, FINISH)

    def die(
        self,
        lease: Lease,
        thread_id: str,
        *,
        reason: str,
        error: str,
        at: Standpoint | None = None,
        refund: bool = False,
    ) -> None:
        """
        End the run as a dead letter and give the lease back; `redrive` takes it up again.

        *at* is where it stands now, `None` where that cannot be read; *refund* gives an attempt back that began nothing.
        """
        where = {"head": at.head if at else None, "step": at.step if at else None, "nodes": at.nodes if at else None}
        self._end("run.die", lease, thread_id, DIE, reason=reason, error=error, refund=int(refund), **where)

    def stand_by(
        self,
        lease: Lease,
        thread_id: str,
        *,
        error: str | None,
        refund: bool,
        wait: timedelta | None = timedelta(0),
        head: str | None = None,
    ) -> None:
        """
        Leave the run to whoever advances it next and give the lease back; *refund* gives the attempt back too.

        A *head* other than at the start is a checkpoint that this attempt got to, and it is the first one there. Workers leave the run alone
        until *wait* is over, or for good where there is none: then only a caller carries it on. A run that this lease did not start is left as
        it is: the answer to the start may have been lost, or the start itself.
        """
        delay_ms = None if wait is None else duration_ms(wait)
        with self.store.transaction("run.stand_by") as tx:
            check_fence(tx, lease, to_end=True)
            values = {"error": error, "refund": int(refund), "delay_ms": delay_ms, "head": head}
            if row := tx.one(STAND_BY, thread_id=thread_id, owner=lease.owner, **values):
                run = run_from(row)
                if delay_ms is not None:
                    enqueue(tx, thread_id, graph=run.graph, delay_ms=delay_ms, priority=BEGUN)
                kept = {name: value for name, value in values.items() if value is not None}
                _audit(tx, run, "run.stand_by", actor=lease.owner, **kept)
            give_back(tx, lease)

    def due(self, graph: str, *, limit: int) -> tuple[str, ...]:
        """Return up to *limit* threads that somebody is to look at now, and whom nobody holds; see `due.due`."""
        return due.due(self.store, graph, limit=limit)

    def enqueue_due(self, graph: str, *, limit: int = 1000) -> int:
        """Have the queue's workers carry on what is due and has no job, and return how many runs that were; see `due`."""
        with self.store.transaction("queue.sweep") as tx:
            return enqueue_due(tx, graph=graph, limit=limit)

    def postpone(self, seen: Run, *, wait: timedelta, error: str | None = None) -> None:
        """Have workers leave a run alone that they could do nothing for; see `due.postpone`."""
        due.postpone(self.store, seen, wait=wait, error=error)

    def wait_on(self, thread_id: str, *, until: datetime | None) -> None:
        """Have a parked run that was due for nothing looked at when something on it ends; see `due.wait_on`."""
        due.wait_on(self.store, thread_id, until=until)

    def hasten(self, graph: str, *, age: timedelta) -> int:
        """Have every parked run of the graph looked at no later than when it reaches *age*; see `due.hasten`."""
        return due.hasten(self.store, graph, age=age)

    def nudge(self, thread_id: str, *, principal: str) -> Run:
        """Have a worker carry the run on now, if it would wait before its next attempt; see `due.nudge`."""
        return due.nudge(self.store, thread_id, principal=principal)

    def dead(self, *, reason: str | None = None, after: str = "", limit: int = 1000) -> tuple[Run, ...]:
        """Return up to *limit* dead letters that nobody gave up, of one *reason* or of all, in order of their thread ids, from the one after *after*."""
        return dead_letters.listed(self.store, reason=reason, after=after, limit=limit)

    def redrive(self, thread_id: str, *, principal: str, reason: str = "") -> Run:
        """Take a dead letter up again from its last checkpoint, with all its attempts; see `dead_letters.redrive`."""
        return dead_letters.redrive(self.store, thread_id, principal=principal, reason=reason)

    def discard(self, thread_id: str, *, principal: str, reason: str = "") -> Run:
        """Give a dead letter up for good, and take back what it still asks; see `dead_letters.discard`."""
        return dead_letters.discard(self.store, thread_id, principal=principal, reason=reason)

    def _end(self, name: str, lease: Lease, thread_id: str, sql: str, **values: Any) -> None:
        with self.store.transaction(name) as tx:
            check_fence(tx, lease, to_end=True)
            if row := tx.one(sql, thread_id=thread_id, owner=lease.owner, **values):
                forget(tx, thread_id)
                _audit(
                    tx,
                    run_from(row),
                    name,
                    actor=lease.owner,
                    **{k: v for k, v in values.items() if v is not None},
                )
            give_back(tx, lease)


def _is_new_turn(tx: Tx, current: Run, wanted: Admission) -> bool:
    """Tell a repeat of a known submission from a new one, or refuse."""
    if wanted.submission:
        known = tx.one(SUBMISSION, thread_id=wanted.thread_id, submission=wanted.submission)
        if known and known["input_digest"] == wanted.digest:
            return False
        if known is None and wanted.takes_turns:
            return True
        if known is None and current.input_digest == wanted.digest:
            return False
    elif current.input_digest == wanted.digest:
        return False
    turn = "" if wanted.takes_turns else ", and durable(..., turns=True)"
    raise InputChanged(
        f"thread {wanted.thread_id!r} was admitted with other input (state {current.state}); nothing was changed. "
        f"Use another thread id for another job; for another turn give this input a name of its own, thread(id, submission=...){turn}"
    )


def _audit(tx: Tx, run: Run, event: str, *, actor: str, **body: Any) -> None:
    append(tx, run.thread_id, event, actor=actor, subject=run.thread_id, **body)
