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

import hashlib
from collections.abc import Generator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphDrained, GraphRecursionError, InvalidUpdateError
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from checkpointing import Approval, Journal, Lease, Run
from checkpointing.admissions import Admission
from checkpointing.approvals import all_pending
from checkpointing.budget import Caps, over
from checkpointing.clock import from_ms
from checkpointing.digest import sha256
from checkpointing.doubts import in_doubt, still_in_doubt, unsettled
from checkpointing.errors import (
    ArgumentsNotJson,
    Bug,
    CapReached,
    EffectInDoubt,
    GraphChanged,
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
from checkpointing.text import storable
from graph.asks import Ask, Decide, Nudge, Start, read_ask, read_config
from graph.backoff import Backoff
from graph.caps import Stopper, drained_by, why_dead, within
from graph.holding import Holding
from graph.questions import decide, open_foreign
from graph.snapshots import check_nodes_exist, check_turn, standing, standpoint
from nodes.state import CHANNELS

Compiled = CompiledStateGraph[Any, Any, Any, Any]

DEAD_AT_ONCE = (Bug, Rejected, GraphRefused, NotRetryable, GraphRecursionError, InvalidUpdateError)
"""Errors that another attempt would only meet again; the last two are LangGraph's."""


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
        name: What the graph is called, or nothing; a run belongs to the graph of one name.
        attempts: Starts without a new checkpoint before a run is a dead letter.
        backoff: How long workers leave a run alone after one of them.
        turns: A thread that is done takes further input.
        caps: What a run may take over its life.
    """

    compiled: Compiled
    journal: Journal
    name: str
    attempts: int
    turns: bool
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
        if not self._accept(ask, config, thread_id, principal, submission) or not self._is_due(thread_id):
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
        self._accept(ask, config, thread_id, principal, submission, queued=True)
        return self.journal.runs.get(thread_id)

    def _accept(
        self,
        ask: Ask,
        config: RunnableConfig,
        thread_id: str,
        principal: str | None,
        submission: str,
        *,
        queued: bool = False,
    ) -> bool:
        """Make what was asked durable, the admission or the decisions; `False` if it was an older submission, repeated late."""
        if not isinstance(ask, Start) or self.journal.runs.find(thread_id):
            self._check_carries(thread_id, config)
        if isinstance(ask, Start):
            self._check_input(ask.input)
            run = self.journal.runs.admit(self._admission(ask.input, thread_id, principal, submission), queued=queued)
            return not (self.turns and submission and submission != run.submission)
        if isinstance(ask, Decide):
            decide(self.journal, ask, self.compiled.get_state(config), thread_id=thread_id, principal=principal)
        return True

    def _check_input(self, given: dict[str, Any]) -> None:
        """Refuse what the graph would drop without a word: a key that its input has not."""
        takes = self.compiled.builder.schemas[self.compiled.builder.input_schema].keys()
        if unknown := sorted(given.keys() - takes):
            raise InputRefused(
                f"the graph's input has no {', '.join(map(repr, unknown))}; it has {', '.join(map(repr, sorted(takes - CHANNELS)))}"
            )

    def _check_carries(self, thread_id: str, config: RunnableConfig) -> Run:
        """
        Return the thread's run if this graph can carry it on.

        Raises:
            GraphChanged: it is another graph's, it stands at a node that is gone, or somebody wrote another turn into it.
        """
        run = self.journal.runs.get(thread_id)
        if run.graph != self.name:
            raise GraphChanged(
                f"thread {thread_id!r} belongs to {_called(run.graph)}, and this is {_called(self.name)}; the run is untouched"
            )
        if run.state != "done":  # a join that filled in part is then nothing that is still to run
            check_nodes_exist(self.compiled, config)
        head = self.journal.saver.get_tuple(config)
        check_turn(head, thread_id, turn=run.turn, started=run.head is not None)
        return run

    def _admission(self, given: dict[str, Any], thread_id: str, principal: str | None, submission: str) -> Admission:
        kind, content = self.journal.saver.serde.dumps_typed(given)
        try:
            digest = sha256(given, what="input")
        except ArgumentsNotJson:  # messages, say: LangGraph's own serialisation of them is all there is
            digest = hashlib.sha256(content).hexdigest()
        return Admission(thread_id, kind, content, digest, submission, principal, self.name, self.turns)

    def _is_due(self, thread_id: str) -> bool:
        """Apply what is overdue, and tell whether there is anything to do."""
        self.journal.approvals.expire_due(thread_id)
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
            self._check_carries(thread_id, config)
            head = self.journal.saver.head(thread_id)
            self.journal.saver.check_clock(thread_id, head)
            return runs.start(lease, thread_id, head=head, first=first)
        except StoreUnreachable:
            holding.end(lambda: runs.stand_by(lease, thread_id, error=None, refund=True))
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
        if isinstance(error, Stop | RunDead):
            return False
        if isinstance(error, TryAgain):
            wait = self.backoff.wait(run.tries)
            holding.end(lambda: runs.stand_by(lease, thread_id, error=said, refund=True, wait=wait))
        elif isinstance(error, GraphDrained) or not isinstance(error, Exception):
            holding.end(lambda: runs.stand_by(lease, thread_id, error=None, refund=True))
        elif isinstance(error, DEAD_AT_ONCE):
            holding.end(lambda: self._die(lease, run, config, reason=why_dead(error), error=said))
        else:
            holding.end(lambda: self._failed(lease, run, config, said))
        return False

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
        with self.journal.store.reading() as tx:
            return over(tx, thread_id, self.caps)

    def _cap_of(self, error: BaseException, thread_id: str) -> CapReached | None:
        """Return the cap that ended a pass: a claim that did not fit, or the drain that was asked for at a checkpoint."""
        if isinstance(error, CapReached):
            return error
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
        at = standpoint(self.compiled, config)
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


def _called(name: str) -> str:
    return f"graph {name!r}" if name else "a graph without a name"


def _answer_of(approval: Approval) -> Any:
    assert approval.decision is not None
    return approval.decision["value"]
