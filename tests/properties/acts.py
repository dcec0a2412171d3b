"""
What one process does when an event happens, and what it was told: written down before and after, so that its death leaves half of it.

Which answers are in order is for the model to say; an error that is none of Counterfoil's ends the process, and with it the history.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from langgraph.errors import InvalidUpdateError
from langgraph.types import Command

from checkpointing import Approval, Journal
from checkpointing.errors import AlreadyDecided, CounterfoilError, Refused
from checkpointing.store import Store, Tx
from graph import DurableGraph, approve, edit, reject, thread
from tests.properties.faults import planted
from tests.properties.history import Crash, Event
from tests.properties.receiver import BrokeOff, Desk, append, lines_of
from tests.properties.world import CLERK, INPUT, THREAD, World
from tests.support.points import after, at_point, die

AT_WORK = threading.Lock()
"""Held by the thread that is in a transaction, in a process that is about to stop."""


@dataclass(frozen=True)
class Attempt:
    """
    One call, and its answer.

    Attributes:
        decision: The approval's id, the kind of decision, the payload it stands for, the hash it names and the principal.
        said: The error's name, `""` if there was none, `None` if the process died first.
        refused: The error says that nothing was changed.
        winner: Of an `AlreadyDecided`: the kind of decision and the principal that it names.
    """

    call: str
    decision: dict[str, Any] | None = None
    said: str | None = None
    refused: bool = False
    winner: tuple[str, str] | None = None


def process(world: World, event: Event, number: int, side: str, barrier: Any = None) -> None:
    """Do what *event* says, as a process that dies where it says."""
    if event.verb == "overtaken":
        assert event.crash
        _one_transaction_at_a_time()
        _arm(event.crash, stand_still)
        event = replace(event, verb=event.what)  # type: ignore[arg-type]  # `what` is a verb here
    elif event.crash:
        _arm(event.crash, die)
    with ExitStack() as stack:
        stack.enter_context(planted(world.fault))
        journal = stack.enter_context(world.open())
        graph = world.graph(journal)
        if barrier:
            barrier.wait(30)
        Actor(world, journal, graph, number, side).act(event)


def _arm(crash: Crash, what: Callable[[], None]) -> None:
    if crash.point == "executed":
        after(Desk, "execute", what, nth=crash.nth)
    else:
        at_point(crash.point, what, nth=crash.nth)


def _one_transaction_at_a_time() -> None:
    """Let no thread of this process be in a transaction when another one stops it: it would keep every other process waiting."""
    original = Store.transaction

    @contextmanager
    def transaction(self: Store, name: str) -> Iterator[Tx]:
        with AT_WORK, original(self, name) as tx:
            yield tx

    Store.transaction = transaction  # type: ignore[method-assign]  # in a process that is about to stop


def stand_still() -> None:
    """Stop until somebody lets this process go on, holding nothing that others wait for."""
    with AT_WORK:
        os.kill(os.getpid(), signal.SIGSTOP)
        # The other threads stop a moment after this one has asked for it; until then none may begin a transaction.
        threading.Event().wait(0.05)


def attempts_of(folder: Path, number: int) -> list[Attempt]:
    """Return what was tried in an event."""
    found: list[Attempt] = []
    for side in ("left", "right"):
        for line in lines_of(folder / f"attempts-{number}-{side}"):
            if "call" in line:
                found.append(Attempt(**line))
            else:
                found[-1] = replace(found[-1], **line)
    return found


@dataclass(frozen=True)
class Actor:
    """A caller in one process."""

    world: World
    journal: Journal
    graph: DurableGraph
    number: int
    side: str

    def act(self, event: Event) -> None:
        """Do what *event* says."""
        match event.verb:
            case "submit_other" if self.journal.runs.find(THREAD):
                self.call("submit_other", lambda: self.graph.invoke({"price": 6}, thread(THREAD)))
            case "submit" | "submit_other":
                self.call("submit", lambda: self.graph.invoke(INPUT, thread(THREAD, principal=CLERK)))
            case "nudge":
                self.call("nudge", lambda: self.graph.invoke(None, thread(THREAD)))
            case "decide" | "two" | "own" | "misread":
                self.decide(event)
            case "stale":
                self.decide_again(event)
            case "travel" | "rewrite":
                self.travel(event)
            case "resolve":
                self.resolve()
            case "redrive":
                self.call("redrive", lambda: self.journal.runs.redrive(THREAD, principal="operator"))
            case other:
                raise AssertionError(f"nobody does {other}")

    def decide(self, event: Event) -> None:
        """Decide one of what is pending; where there is a crash to come, or a rival, just carry on if nothing is."""
        pending = self.journal.approvals.pending(thread_id=THREAD)
        if not pending:
            self.call("nudge", lambda: self.graph.invoke(None, thread(THREAD)))
            return
        self.answer(pending[event.choice % len(pending)], event)

    def decide_again(self, event: Event) -> None:
        """Decide what has its outcome already."""
        over = [one for one in self.journal.approvals.of_thread(THREAD) if one.state != "pending"]
        if over:
            self.answer(over[event.choice % len(over)], event)

    def answer(self, shown: Approval, event: Event) -> None:
        """Give one decision on what was *shown*."""
        kind = event.what if event.what in ("reject", "edit") else "approve"
        if event.verb == "two" and self.side == "left":
            kind = "approve"
        payload = {**shown.payload, "amount": event.amount} if kind == "edit" else shown.payload
        command = _command(kind, shown, payload)
        if event.verb == "misread":
            command.resume["payload_hash"] = "0" * 64  # type: ignore[index,call-overload]  # ours is a mapping
        principal = CLERK if event.verb == "own" else f"adjuster-{self.number}-{self.side}"
        decision = {
            "id": shown.id,
            "type": kind,
            "payload": payload,
            "hash": command.resume["payload_hash"],  # type: ignore[index,call-overload]
            "by": principal,
        }
        config = thread(THREAD, principal=principal)
        self.call("decide", lambda: self.graph.invoke(command, config), decision)

    def travel(self, event: Event) -> None:
        """Go on from an old checkpoint with LangGraph's own graph, after changing what is in it, or not."""
        history = list(self.graph.get_state_history(thread(THREAD)))
        if event.verb == "rewrite":  # before the input there is nothing that could be carried on: `GraphChanged`
            history = [old for old in history if "turn" in old.values]
        if not history:
            return
        old = history[event.choice % len(history)].config

        def go_on() -> None:
            config = old
            if event.verb == "rewrite":
                config = self.graph.compiled.update_state(config, {"price": event.amount})
            self.graph.compiled.invoke(None, config, durability="sync")

        self.call(event.verb, go_on)

    def resolve(self) -> None:
        """Say of every effect in doubt what the receiver says."""
        for record in self.journal.effects.list(thread_id=THREAD, state="in_doubt"):
            found = self.world.desk.happened(record.arguments["claim_id"])
            outcome = {"paid": found["amount"]} if found else None
            self.call(
                "resolve",
                lambda key=record.key, found=found, outcome=outcome: self.journal.effects.resolve(
                    key, happened=found is not None, outcome=outcome, principal="operator"
                ),
            )

    def call(self, name: str, work: Callable[[], object], decision: dict[str, Any] | None = None) -> None:
        """Do *work*, and write down that it was tried and what it was told."""
        file = self.world.folder / f"attempts-{self.number}-{self.side}"
        append(file, {"call": name, "decision": decision})
        said: dict[str, Any] = {"said": ""}
        try:
            work()
        except CounterfoilError as error:
            said = {"said": type(error).__name__, "refused": isinstance(error, Refused)}
            if isinstance(error, AlreadyDecided) and error.decision:
                said["winner"] = (error.decision["type"], error.decided_by)
        except (BrokeOff, InvalidUpdateError) as error:
            said = {"said": type(error).__name__}
        append(file, said)


def _command(kind: str, shown: Approval, payload: dict[str, Any]) -> Command[Any]:
    match kind:
        case "edit":
            return edit(shown, payload)
        case "reject":
            return reject(shown)
        case _:
            return approve(shown)
