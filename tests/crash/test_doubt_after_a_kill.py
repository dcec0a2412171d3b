"""
Killed at the receiver, by SIGKILL, on both engines: what becomes of the effect, for every kind of receiver.

The process dies right before the receiver executes the call, or right after, so that nobody but the receiver knows. Another one takes the run up
when the key is as old as the row says. Every row is one of the table of doubt: resolved by the key, by the look-up, or by a person.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
from langgraph.graph import START, StateGraph

from checkpointing import Journal, open_journal
from checkpointing.errors import EffectInDoubt, RunBusy
from graph import DurableGraph, DurableState, durable, thread
from nodes import effect_node
from tests.support.bank import Bank
from tests.support.clock import MovingClock
from tests.support.processes import killed, start, until
from tools import Receiver
from tools.receivers import JIRA, RESEND, SLACK, SMTP, STRIPE, ZENDESK

THREAD = thread("claim-0042")
LEASE = timedelta(seconds=30)
HOUR = timedelta(hours=1)

Dies = Literal["before", "after"]


class State(DurableState):
    payment: dict[str, Any]


@dataclass(frozen=True)
class Row:
    """
    One row of the table of doubt.

    Attributes:
        receiver: The receiver's profile.
        look_up: The effect has a look-up.
        age: Of the key when the run is taken up again.
        dies: When the process died: before or after the receiver executed the call.
        way: How the doubt is resolved.
    """

    receiver: Receiver
    look_up: bool
    age: timedelta
    dies: Dies
    way: Literal["key", "found", "called", "person", "repeated"]


ROWS = {
    "a young key": (STRIPE, True, 21 * HOUR, "key", "key"),
    "a young key, no look-up": (RESEND, False, 21 * HOUR, "key", "key"),
    "a key that lives for two hours": (ZENDESK, True, HOUR, "key", "key"),
    "an expired key": (STRIPE, True, 22 * HOUR, "person", "found"),
    "an expired key of two hours": (ZENDESK, True, 2 * HOUR, "person", "found"),
    "an expired key, no look-up": (RESEND, False, 22 * HOUR, "person", "person"),
    "a look-up only": (SLACK, True, HOUR, "called", "found"),
    "a look-up only, days later": (JIRA, True, 90 * HOUR, "called", "found"),
    "neither": (SMTP, False, HOUR, "person", "person"),
    "harmless to repeat": (Receiver(repeatable=True), False, HOUR, "repeated", "repeated"),
}
"""The receiver, its look-up, the age, and the way if the process died before or after the execution."""


def rows() -> list[Any]:
    found = []
    for name, (receiver, look_up, age, before, after) in ROWS.items():
        for dies, way in (("before", before), ("after", after)):
            row = Row(receiver, look_up, age, dies, way)  # type: ignore[arg-type]  # literals of the table
            found.append(pytest.param(row, id=f"{name}, killed {dies}"))
    return found


def errand(journal: Journal, folder: Path, receiver: Receiver, *, look_up: bool) -> DurableGraph:
    """Pay once at a bank that writes down what it executes, and what it is asked."""
    bank = Bank(folder / "bank")
    pay = bank.effect(receiver)
    if look_up:

        @pay.lookup
        def find(*, key: str, **_: Any) -> dict[str, Any] | None:
            with (folder / "asked").open("a") as asked:
                asked.write(f"{time.time()}\n")
            return next(({"paid": call["amount"], "key": key} for call in bank.calls if call["key"] == key), None)

    builder = StateGraph(State)
    arguments = {"claim_id": "0042", "amount": 5}
    builder.add_node("pay", effect_node(pay, journal, arguments=lambda s: arguments, into="payment"))
    builder.add_edge(START, "pay")
    return durable(builder, journal)


def dies_at_the_bank(url: str, folder: Path, row: Row, clock: MovingClock | None, lease: timedelta) -> None:
    """Submit the run, and die when the bank is about to execute the call, or when it just has."""
    execute = Bank.execute

    def and_die(self: Bank, **call: Any) -> dict[str, Any]:
        if row.dies == "after":
            execute(self, **call)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    Bank.execute = and_die  # type: ignore[method-assign]  # a process that is about to die
    with open_journal(url, clock=clock, lease=lease) as journal:
        errand(journal, folder, row.receiver, look_up=row.look_up).invoke({}, THREAD)


def asked(folder: Path) -> list[float]:
    """When the look-up was asked, in seconds."""
    found = folder / "asked"
    return [float(line) for line in found.read_text().splitlines()] if found.exists() else []


@pytest.mark.parametrize("row", rows())
def test_doubt_is_resolved_as_the_receiver_allows(
    url: str, opened: Callable[..., Journal], clock: MovingClock, tmp_path: Path, row: Row
) -> None:
    bank = Bank(tmp_path / "bank")
    killed(start(dies_at_the_bank, url, tmp_path, row, clock, LEASE))
    before = len(bank.calls)
    assert before == (1 if row.dies == "after" else 0)
    clock.move(row.age)
    journal = opened(clock=clock, lease=LEASE)
    graph = errand(journal, tmp_path, row.receiver, look_up=row.look_up)
    [effect] = journal.effects.list()

    if row.way == "person":
        with pytest.raises(EffectInDoubt):
            graph.invoke(None, THREAD)
        assert len(bank.calls) == before, "nobody but a person resolves it"
        assert journal.runs.get("claim-0042").reason == "in_doubt"
        outcome = {"paid": 5, "key": effect.key} if row.dies == "after" else None
        journal.effects.resolve(effect.key, happened=row.dies == "after", outcome=outcome, principal="operator-1")

    done = graph.invoke(None, THREAD)
    assert done["payment"]["paid"] == 5
    assert len(bank.executed) == 1
    assert len(bank.calls) == (before + 1 if row.way in ("key", "repeated") else 1)
    assert len(asked(tmp_path)) == (1 if row.look_up and row.way != "key" else 0)
    assert journal.runs.get("claim-0042").state == "done"
    assert list(journal.audit.verify()) == []


@pytest.mark.parametrize("dies", ["before", "after"])
def test_the_look_up_waits_until_the_settle_delay_is_over(url: str, tmp_path: Path, dies: Dies) -> None:
    """In real time: the lease ends long before the delay does, and the receiver may still be at work on the call."""
    delay, lease = timedelta(seconds=1.5), timedelta(seconds=0.3)
    row = Row(Receiver(settle_delay=delay, attempts=1), True, timedelta(0), dies, "found")
    killed(start(dies_at_the_bank, url, tmp_path, row, None, lease))
    with open_journal(url, lease=timedelta(seconds=30)) as journal:
        graph = errand(journal, tmp_path, row.receiver, look_up=True)
        [effect] = journal.effects.list()

        def taken_up() -> bool | None:
            try:
                graph.invoke(None, THREAD)
            except RunBusy:
                return None
            return True

        until(taken_up)
        assert len(asked(tmp_path)) == 1
        assert asked(tmp_path)[0] >= (effect.claimed_at + delay).timestamp()
        assert len(Bank(tmp_path / "bank").calls) == 1
        assert journal.runs.get("claim-0042").state == "done"
