"""
One run's life: accept what a call asks, hold the thread's lease, run passes until the run rests.

    accept ── take the lease ── start ── pass ── rest: done | parked | dead letter | left to the next call
                                  ▲                │
                                  └── a decision came while parking

`Advance.passes` is a generator: it yields each `Pass` for its caller to run through LangGraph, sync or async, invoke or stream, and is thrown what
that raised. What happens when the process dies:

    before the lease     an admission or a decision that was committed stands; any later call carries on
    after `start`        the run is `running` under a lease that expires; the next call takes over at the last checkpoint, one attempt poorer
    inside a pass        the same; effects answer from the ledger
    before the rest      the same; the next call finds nothing to do and writes the end down
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphDrained, GraphRecursionError, InvalidUpdateError
from langgraph.types import Command

from checkpointing import Approval, Journal, Lease, Run
from checkpointing.admissions import Standpoint
from checkpointing.approvals import all_pending
from checkpointing.budget import Caps, over
from checkpointing.clock import from_ms
from checkpointing.doubts import in_doubt, still_in_doubt, unsettled
from checkpointing.errors import (
    Bug,
    CapReached,
    CounterfoilError,
    EffectInDoubt,
    GraphRefused,
    InputRefused,
    NotRetryable,
    Rejected,
    RunBusy,
    RunDead,
    Stop,
    StoreUnreachable,
    TryAgain,
)
from checkpointing.leases import Heartbeat
from checkpointing.steps import is_ctrl_c
from checkpointing.text import storable
from graph.accepting import Accepting, Compiled
from graph.asks import Decide, Nudge, read_ask, read_config
from graph.backoff import Backoff
from graph.caps import Stopper, drained_by, why_dead, within
from graph.holding import Holding
from graph.questions import open_foreign
from graph.snapshots import standing, standpoint

DEAD_AT_ONCE = (Bug, Rejected, GraphRefused, NotRetryable, GraphRecursionError, InvalidUpdateError)
"""Errors that another attempt would only meet again; the last two are LangGraph's."""

LEFT = (GraphDrained, GeneratorExit, asyncio.CancelledError)
"""What leaves the run to the next call. `SystemExit` does not: it is a node that would end the process it runs in."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One call into LangGraph: its input, its config with the lease, and the heartbeat that keeps the lease meanwhile."""

    input: Any
    config: RunnableConfig
    heartbeat: Heartbeat


@dataclass(frozen=True, slots=True)
class Advance:
    """
    How the runs of one graph are advanced.

    Attributes:
        accepting: What a call brings is made durable by it.
        attempts: Starts without a new checkpoint before a run is a dead letter.
        backoff: How long workers leave a run alone after one of them.
        caps: What a run may take over its life.
    """

    compiled: Compiled
    journal: Journal
    attempts: int
    accepting: Accepting
    backoff: Backoff
    caps: Caps

    def passes(self, given: object, config: RunnableConfig, stop: Stopper) -> Generator[Pass, None, None]:
        """
        Accept *given* and yield passes until the run rests; none if there is nothing to do.

        *stop* is called during a pass where a cap is reached: whoever runs it is to end it at the checkpoint just written.

        Raises:
            Refused: the call is wrong; nothing was changed.
            RunBusy: another call holds the thread. With a decision that was recorded it is not raised: the holder carries on.
            RunDead: the run is a dead letter; `CapReached` where this call has found that it took all that a cap allows.
            EffectInDoubt: the run is parked for a person to say what happened.
            Exception: what a pass raised, after the run's row says what becomes of it.
        """
        ask = read_ask(given)
        thread_id, principal, submission = read_config(config)
        if not self.accepting.accept(ask, config, thread_id, principal, submission) or not self._is_due(thread_id):
            return
        try:
            holding = Holding(self.journal, thread_id)
        except RunBusy:
            if isinstance(ask, Decide):
                return
            raise
        try:
            yield from self._passes(holding, thread_id, config, stop)
        except BaseException:
            holding.give_back()
            raise
        holding.stop()

    def submit(self, given: object, config: RunnableConfig) -> Run:
        """
        Make what *given* asks durable and leave the rest to the workers.

        A crash before the commit leaves nothing, one after it a run that is ready. Errors as `passes`, but nothing is run and no lease is taken.
        """
        ask = read_ask(given)
        if isinstance(ask, Nudge):
            raise InputRefused(
                "submit() takes input or a decision and leaves the run to the workers; invoke(None) advances it here"
            )
        thread_id, principal, submission = read_config(config)
        self.accepting.accept(ask, config, thread_id, principal, submission, queued=True)
        run = self.journal.runs.get(thread_id)
        if run.state == "dead":
            raise RunDead(_dead(run))
        return run

    def _is_due(self, thread_id: str) -> bool:
        """Apply what is overdue, and tell whether there is anything to do."""
        self.journal.approvals.apply_due(thread_id)
        run = self.journal.runs.get(thread_id)
        if run.state == "dead":
            raise RunDead(_dead(run))
        if run.state == "parked" and self._is_too_old(run):
            return True
        if run.state == "parked" and run.due_at is not None and run.due_at <= self._now():
            self.journal.runs.wait_on(thread_id, until=self._end_of(run))
        if run.state == "parked" and run.waits_for:
            raise in_doubt(run.waits_for)
        return run.state in ("admitted", "running")

    def _now(self) -> datetime:
        return from_ms(self.journal.store.now_ms())

    def _is_too_old(self, run: Run) -> bool:
        end = self._end_of(run)
        return end is not None and end <= self._now()

    def _end_of(self, run: Run) -> datetime | None:
        """Return when the run's time is over, or `None`."""
        return None if self.caps.age is None else run.admitted_at + self.caps.age

    def _passes(
        self, holding: Holding, thread_id: str, config: RunnableConfig, stop: Stopper
    ) -> Generator[Pass, None, None]:
        lease = holding.lease
        leased = within(self.caps, config, lease, stop, bound=self.compiled.config)
        for number in count():
            run = self._start(holding, thread_id, config, first=number == 0)
            try:
                todo = self._next_input(lease, run, config)
                if todo is None:
                    return
                yield Pass(todo.input, leased, holding.heartbeat)
                if self._rest(lease, run, config):
                    return
            except BaseException as error:
                if not self._again(holding, run, config, error):
                    raise

    def _start(self, holding: Holding, thread_id: str, config: RunnableConfig, *, first: bool) -> Run:
        """Book the attempt, unless this code or this host's clock cannot carry the run on; then the run is left untouched."""
        runs, lease = self.journal.runs, holding.lease
        try:
            self.accepting.check_carries(thread_id, config)
            head = self.journal.saver.head(thread_id)
            self.journal.saver.check_clock(thread_id, head)
            return runs.start(lease, thread_id, head=head, first=first)
        except StoreUnreachable:
            holding.end(lambda: runs.stand_by(lease, thread_id, error=None, refund=True))
            raise
        except CounterfoilError:
            raise
        except Exception as unreadable:
            # What the thread holds cannot be read by this code: an attempt like any other, or it would be looked at for ever.
            run = runs.start(lease, thread_id, head=self.journal.saver.head(thread_id), first=first)
            said = one_line(unreadable)
            holding.end(lambda: self._failed(lease, run, config, said))
            raise

    def _next_input(self, lease: Lease, run: Run, config: RunnableConfig) -> _Todo | None:
        """Return what LangGraph is to be given, or end the run and return `None`."""
        if run.state == "done":  # somebody else was faster
            self.journal.leases.give_back(lease)
            return None
        at = standing(self.compiled.get_state(config), turn=run.turn)
        if at.finished:
            self._finish(lease, run, config)
            return None
        if at.broken:
            self._bury(lease, run, config, reason="router", error=str(at.error))
        if run.attempts > self.attempts:
            self._bury(lease, run, config, reason="attempts", error=run.error or "its workers died", refund=True)
        if cap := self._cap_over(run.thread_id):
            raise cap
        if not at.begun:
            kind, content = self.journal.runs.input_of(run.thread_id)
            given = self.journal.saver.serde.loads_typed((kind, content))
            return _Todo({**given, "turn": run.turn})
        answers = self._answers(run.thread_id, {interrupt.id for interrupt in at.interrupts})
        return _Todo(Command(resume=answers) if answers else None)

    def _answers(self, thread_id: str, waiting: set[str]) -> dict[str, Any]:
        """Return the recorded answers to the graph's own interrupts, by id: sent on every advance, so that none is lost."""
        if not waiting:
            return {}
        decided = [one for one in self.journal.approvals.of_thread(thread_id) if one.state == "decided"]
        return {one.interrupt_id: _answer_of(one) for one in decided if one.interrupt_id in waiting}

    def _rest(self, lease: Lease, run: Run, config: RunnableConfig) -> bool:
        """Write down how the pass ended; `False` if what the run waits for came meanwhile."""
        # A node may have left its effect behind, in a task that it cancelled.
        self.journal.effects.executing.wait_idle(lease)
        snapshot = self.compiled.get_state(config)
        at = standing(snapshot, turn=run.turn)
        if at.finished:
            self._finish(lease, run, config)
        elif at.broken:
            self._bury(lease, run, config, reason="router", error=str(at.error))
        elif at.interrupts:
            waits = open_foreign(self.journal, snapshot, thread_id=run.thread_id, lease=lease)
            return self.journal.runs.park(
                lease,
                run.thread_id,
                reason="approval",
                still_waiting=lambda tx: all_pending(tx, run.thread_id, waits),
                until=self._end_of(run),
            )
        else:  # a breakpoint: whoever set it goes on with None, and no worker walks past it
            self.journal.runs.stand_by(lease, run.thread_id, error=None, refund=True, wait=None)
        return True

    def _again(self, holding: Holding, run: Run, config: RunnableConfig, error: BaseException) -> bool:
        """Write down what becomes of the run after *error*; `True` if it goes on at once."""
        runs, lease, thread_id, said = self.journal.runs, holding.lease, run.thread_id, one_line(error)
        if isinstance(error, EffectInDoubt):
            return self._park_in_doubt(holding, run, error.key)
        if cap := self._cap_of(error, thread_id):
            holding.end(lambda: self._die(lease, run, config, reason=cap.reason, error=one_line(cap)))
            if cap is not error:
                raise cap from error
            return False
        if isinstance(error, Stop | RunDead) and not self._goes_on(lease, thread_id):
            return False
        if isinstance(error, TryAgain):
            wait = self.backoff.wait(run.tries)
            holding.end(lambda: runs.stand_by(lease, thread_id, error=said, refund=True, wait=wait))
        elif isinstance(error, LEFT) or is_ctrl_c(error):
            holding.end(lambda: runs.stand_by(lease, thread_id, error=None, refund=True))
        elif isinstance(error, DEAD_AT_ONCE):
            holding.end(lambda: self._die(lease, run, config, reason=why_dead(error), error=said))
        else:
            holding.end(lambda: self._failed(lease, run, config, said))
        return False

    def _goes_on(self, lease: Lease, thread_id: str) -> bool:
        """Tell whether the run is still this lease's to carry on: then what ended, or was lost, is another thread's, which a node called."""
        held = self.journal.leases.holder(lease.name) == lease.owner
        return held and self.journal.runs.get(thread_id).state == "running"

    def _failed(self, lease: Lease, run: Run, config: RunnableConfig, said: str) -> None:
        """Leave the run to its next attempt, if it has one; where this start got to a new checkpoint, it is the first attempt there."""
        head = self.journal.saver.head(run.thread_id)
        here = run if head == run.head else replace(run, attempts=1, tries=1)
        if here.attempts >= self.attempts:
            self._die(lease, run, config, reason="attempts", error=said)
        else:
            wait = self.backoff.wait(here.tries)
            self.journal.runs.stand_by(lease, run.thread_id, error=said, refund=False, wait=wait, head=head)

    def _park_in_doubt(self, holding: Holding, run: Run, key: str) -> bool:
        """Park the run until a person has said what happened; `True` if that was said meanwhile and the run goes on at once."""
        runs, lease, thread_id = self.journal.runs, holding.lease, run.thread_id

        def parked() -> bool:
            return runs.park(
                lease,
                thread_id,
                reason="in_doubt",
                still_waiting=lambda tx: still_in_doubt(tx, key),
                waits_for=key,
                until=self._end_of(run),
            )

        def park_or_stand_by() -> None:
            if not parked():
                runs.stand_by(lease, thread_id, error=None, refund=True)

        if not self.journal.effects.executing.under(lease):
            return not parked()
        holding.end(park_or_stand_by)  # a sibling's tool still runs, and nobody is left to go on when it is over
        return False

    def _cap_over(self, thread_id: str) -> CapReached | None:
        if not self.caps:
            return None
        with self.journal.store.reading() as tx:
            return over(tx, thread_id, self.caps)

    def _cap_of(self, error: BaseException, thread_id: str) -> CapReached | None:
        """Return the cap that ended a pass: a claim that did not fit, or the drain that was asked for at a checkpoint."""
        if isinstance(error, CapReached):
            return error if error.thread_id == thread_id else None
        return drained_by(error, thread_id, lambda: self._cap_over(thread_id))

    def _finish(self, lease: Lease, run: Run, config: RunnableConfig) -> None:
        """End the run as done, unless nobody knows of one of its effects whether it happened."""
        with self.journal.store.reading() as tx:
            key = unsettled(tx, run.thread_id)
        if key is not None:
            said = f"it ended without the outcome of effect {key!r}"
            self._bury(lease, run, config, reason="effect_unsettled", error=said)
        self.journal.runs.finish(lease, run.thread_id)

    def _bury(
        self, lease: Lease, run: Run, config: RunnableConfig, *, reason: str, error: str, refund: bool = False
    ) -> None:
        error = storable(error)[:500]
        self._die(lease, run, config, reason=reason, error=error, refund=refund)
        raise RunDead(_dead(replace(run, reason=reason, error=error)))

    def _die(
        self, lease: Lease, run: Run, config: RunnableConfig, *, reason: str, error: str, refund: bool = False
    ) -> None:
        """End the run as a dead letter that says where it stands."""
        try:
            at = standpoint(self.compiled, config)
        except CounterfoilError:
            raise
        except Exception:  # noqa: BLE001  # the checkpoint cannot be read, which may be what it dies of
            at = Standpoint(self.journal.saver.head(run.thread_id), None, "")
        self.journal.runs.die(lease, run.thread_id, reason=reason, error=error, at=at, refund=refund)


@dataclass(frozen=True, slots=True)
class _Todo:
    input: Any


def one_line(error: BaseException) -> str:
    """Return an error's kind and its message's first line, at most 500 characters, for a run's row."""
    text = storable(str(error)).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else ''}"[:500]


def _dead(run: Run) -> str:
    if run.discarded_by:
        return (
            f"thread {run.thread_id!r} was discarded by {run.discarded_by!r}: {run.discarded_why or 'no reason given'}"
        )
    return (
        f"thread {run.thread_id!r} is a dead letter ({run.reason}): {run.error}; see counterfoil dead {run.thread_id}"
    )


def _answer_of(approval: Approval) -> Any:
    assert approval.decision is not None
    return approval.decision["value"]
