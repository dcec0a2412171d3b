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
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from checkpointing import Approval, Journal, Lease, Run
from checkpointing.admissions import Admission
from checkpointing.approvals import all_pending
from checkpointing.digest import sha256
from checkpointing.errors import (
    ArgumentsNotJson,
    Bug,
    EffectInDoubt,
    GraphRefused,
    Rejected,
    RunBusy,
    RunDead,
    Stop,
    TryAgain,
)
from checkpointing.leases import Heartbeat, thread_lease
from checkpointing.ledger import in_doubt, still_in_doubt
from checkpointing.savers import LEASE
from graph.asks import Ask, Decide, Start, read_ask, read_config
from graph.questions import decide, open_foreign
from graph.snapshots import check_nodes_exist, standing

Compiled = CompiledStateGraph[Any, Any, Any, Any]

DEAD_AT_ONCE = (Bug, Rejected, GraphRefused)
"""Errors that another attempt would only meet again."""


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
        attempts: Starts without a new checkpoint before a run is a dead letter.
        turns: A thread that is done takes further input.
    """

    compiled: Compiled
    journal: Journal
    attempts: int
    turns: bool

    def passes(self, given: object, config: RunnableConfig) -> Generator[Pass, None, None]:
        """
        Accept *given* and yield passes until the run rests; none if there is nothing to do.

        Raises:
            Refused: the call is wrong; nothing was changed.
            RunBusy: another call holds the thread. With a decision that was recorded it is not raised: the holder carries on.
            RunDead: the run is a dead letter.
            EffectInDoubt: the run is parked for a person to say what happened.
            Exception: what a pass raised, after the run's row says what becomes of it.
        """
        ask = read_ask(given)
        thread_id, principal, submission = read_config(config)
        self._accept(ask, config, thread_id, principal, submission)
        if not self._is_due(thread_id, config):
            return
        try:
            lease = self.journal.leases.take(thread_lease(thread_id))
        except RunBusy:
            if isinstance(ask, Decide):
                return
            raise
        heartbeat = Heartbeat(self.journal.leases, lease)
        try:
            yield from self._passes(lease, thread_id, config, heartbeat)
        finally:
            heartbeat.stop()

    def _accept(
        self,
        ask: Ask,
        config: RunnableConfig,
        thread_id: str,
        principal: str | None,
        submission: str,
    ) -> None:
        """Make what was asked durable: the admission or the decisions."""
        if isinstance(ask, Start):
            self.journal.runs.admit(self._admission(ask.input, thread_id, principal, submission))
        elif isinstance(ask, Decide):
            self.journal.runs.get(thread_id)
            snapshot = self.compiled.get_state(config)
            check_nodes_exist(self.compiled, config)
            decide(self.journal, ask, snapshot, thread_id=thread_id, principal=principal)

    def _admission(self, given: dict[str, Any], thread_id: str, principal: str | None, submission: str) -> Admission:
        kind, content = self.journal.saver.serde.dumps_typed(given)
        try:
            digest = sha256(given, what="input")
        except ArgumentsNotJson:  # messages, say: LangGraph's own serialisation of them is all there is
            digest = hashlib.sha256(content).hexdigest()
        return Admission(thread_id, kind, content, digest, submission, principal, self.turns)

    def _is_due(self, thread_id: str, config: RunnableConfig) -> bool:
        """Apply what is overdue, and tell whether there is anything to do."""
        check_nodes_exist(self.compiled, config)
        self.journal.approvals.expire_due(thread_id)
        run = self.journal.runs.get(thread_id)
        if run.state == "dead":
            raise RunDead(
                f"thread {thread_id!r} is a dead letter ({run.reason}): {run.error}; see counterfoil show {thread_id}"
            )
        if run.state == "parked" and run.waits_for:
            raise in_doubt(run.waits_for)
        return run.state in ("admitted", "running")

    def _passes(
        self, lease: Lease, thread_id: str, config: RunnableConfig, heartbeat: Heartbeat
    ) -> Generator[Pass, None, None]:
        leased: RunnableConfig = {
            **config,
            "configurable": {**config["configurable"], LEASE: lease},
        }
        for number in count():
            run = self._start(lease, thread_id, config, first=number == 0)
            if run.state == "done":
                self.journal.leases.give_back(lease)
                return
            todo = self._next_input(lease, run, config)
            if todo is None:
                return
            try:
                yield Pass(todo.input, leased, heartbeat)
            except BaseException as error:
                if not self._again(lease, run, error):
                    raise
            else:
                if self._rest(lease, run, config):
                    return

    def _start(self, lease: Lease, thread_id: str, config: RunnableConfig, *, first: bool) -> Run:
        """Book the attempt, unless this code cannot carry the run on; then the run is left untouched."""
        try:
            check_nodes_exist(self.compiled, config)
            return self.journal.runs.start(lease, thread_id, head=self.journal.saver.head(thread_id), first=first)
        except BaseException:
            with suppress(Stop, TryAgain):
                self.journal.leases.give_back(lease)
            raise

    def _next_input(self, lease: Lease, run: Run, config: RunnableConfig) -> _Todo | None:
        """Return what LangGraph is to be given, or end the run and return `None`."""
        at = standing(self.compiled.get_state(config), turn=run.turn)
        if at.finished:
            self.journal.runs.finish(lease, run.thread_id)
            return None
        if at.broken:
            self._bury(lease, run, reason="router", error=str(at.error))
        if run.attempts > self.attempts:
            self._bury(lease, run, reason="attempts", error=run.error or "its workers died")
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
        snapshot = self.compiled.get_state(config)
        at = standing(snapshot, turn=run.turn)
        if at.finished:
            self.journal.runs.finish(lease, run.thread_id)
        elif at.broken:
            self._bury(lease, run, reason="router", error=str(at.error))
        elif at.interrupts:
            waits = open_foreign(self.journal, snapshot, thread_id=run.thread_id, lease=lease)
            return self.journal.runs.park(
                lease,
                run.thread_id,
                reason="approval",
                still_waiting=lambda tx: all_pending(tx, run.thread_id, waits),
            )
        else:  # a breakpoint: whoever set it goes on with None
            self.journal.runs.stand_by(lease, run.thread_id, error=None, refund=True)
        return True

    def _again(self, lease: Lease, run: Run, error: BaseException) -> bool:
        """Write down what becomes of the run after *error*; `True` if it goes on at once."""
        runs = self.journal.runs
        if isinstance(error, EffectInDoubt):
            key = error.key
            return not runs.park(
                lease,
                run.thread_id,
                reason="in_doubt",
                still_waiting=lambda tx: still_in_doubt(tx, key),
                waits_for=key,
            )
        # If the row cannot be written now, the lease expires and the next call starts where this one did.
        with suppress(Stop, TryAgain):
            if isinstance(error, Stop):
                self.journal.leases.give_back(lease)
            elif isinstance(error, TryAgain) or not isinstance(error, Exception):
                runs.stand_by(lease, run.thread_id, error=None, refund=True)
            elif isinstance(error, DEAD_AT_ONCE):
                runs.die(lease, run.thread_id, reason=_words(type(error)), error=one_line(error))
            elif run.attempts >= self.attempts:
                runs.die(lease, run.thread_id, reason="attempts", error=one_line(error))
            else:
                runs.stand_by(lease, run.thread_id, error=one_line(error), refund=False)
        return False

    def _bury(self, lease: Lease, run: Run, *, reason: str, error: str) -> None:
        self.journal.runs.die(lease, run.thread_id, reason=reason, error=error)
        raise RunDead(
            f"thread {run.thread_id!r} is a dead letter ({reason}): {error}; see counterfoil show {run.thread_id}"
        )


@dataclass(frozen=True, slots=True)
class _Todo:
    input: Any


def one_line(error: BaseException) -> str:
    """Return an error's kind and its message's first line, at most 500 characters, for a run's row."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else ''}"[:500]


def _answer_of(approval: Approval) -> Any:
    assert approval.decision is not None
    return approval.decision["value"]


def _words(kind: Callable[..., BaseException]) -> str:
    """Return a class name as words: `EffectConflict` is `effect_conflict`."""
    name = getattr(kind, "__name__", "error")
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name))
