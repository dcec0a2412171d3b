"""
A worker dies with its runs inside the tool, and two supervisors find each of them: one takes over, and the receiver executes once.

    worker       claim ── call ✝
    supervisor                      lease over ── takes over ── resolves the claim ── settles
    supervisor                      lease over ── busy
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph

from checkpointing import Journal, open_journal
from checkpointing.errors import EffectBusy, RunBusy
from graph import DurableGraph, DurableState, durable, thread
from nodes import effect_node
from tests.support.bank import KEYED, Bank
from tests.support.clock import MovingClock
from tests.support.processes import killed, start
from tests.support.races import FEW, ROUNDS, Act, Side, race
from tests.support.short_claim import advanced, calls, payments, thread_of
from tools import Effect, Receiver, effect

UNKEYED = Receiver(settle_delay=timedelta(0), attempts=1)
"""Takes no keys, but can be asked what it executed: check, then act."""

MANY, SOME = min(ROUNDS, 500), min(FEW, 500)
"""Rounds of a race and of its variants; one process dies with the runs of all of them at work."""

LATER = timedelta(minutes=5)
"""When the supervisors look: the dead worker's leases are over."""


class State(DurableState):
    claim_id: str
    payment: dict[str, Any]


def claim(journal: Journal, pay: Effect) -> DurableGraph:
    """Pay, and nothing else."""
    builder = StateGraph(State)
    arguments = lambda s: {"claim_id": s["claim_id"], "amount": 5}  # noqa: E731  # shorter in place
    builder.add_node("pay", effect_node(pay, journal, arguments=arguments, into="payment"))
    builder.add_edge(START, "pay")
    return durable(builder, journal)


def paying(journal: Journal, folder: Path, *, receiver: Receiver, once: bool) -> DurableGraph:
    """The claim at a bank that can be asked what it executed."""
    bank = Bank(folder / "bank")
    pay = bank.effect(receiver, once=identity if once else None)

    @pay.lookup
    def find(*, key: str, **_: Any) -> dict[str, Any] | None:
        found = [call for call in bank.calls if call["key"] == key]
        return {"paid": found[0]["amount"], "key": key} if found else None

    return claim(journal, pay)


def identity(arguments: Mapping[str, Any]) -> str:
    return str(arguments["claim_id"])


def executed_by_the_dead(number: int) -> bool:
    """The dead worker's calls reached the bank in every other round."""
    return number % 2 == 0


def dies_in_the_tool(url: str, folder: Path, receiver: Receiver, once: bool, rounds: int) -> None:
    """Begin a run for every round, and die when all of them are inside the tool."""
    bank = Bank(folder / "bank")
    begun: list[str] = []

    @effect(receiver=receiver, name="pay", once=identity if once else None)
    async def pay(*, claim_id: str, amount: int, key: str) -> dict[str, Any]:
        if executed_by_the_dead(int(claim_id)):
            bank.execute(claim_id=claim_id, amount=amount, key=key)
        begun.append(claim_id)
        if len(begun) == rounds:
            os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.Event().wait()
        raise AssertionError("nobody lives to see this")

    async def every_round() -> None:
        await asyncio.gather(*(graph.ainvoke(given(one), thread(thread_of(one))) for one in range(rounds)))

    with open_journal(url, clock=MovingClock()) as journal:
        graph = claim(journal, pay)
        asyncio.run(every_round())


def given(number: int) -> dict[str, Any]:
    return {"claim_id": f"{number}"}


def outcome_of(graph: DurableGraph, given: Any, thread_id: str) -> str:
    try:
        graph.invoke(given, thread(thread_id))
    except (RunBusy, EffectBusy):
        return "busy"
    return "paid"


def resumes(graph: DurableGraph, number: int) -> str:
    return outcome_of(graph, None, thread_of(number))


def submits_again(graph: DurableGraph, number: int) -> str:
    return outcome_of(graph, given(number), thread_of(number))


def asks_in_left(graph: DurableGraph, number: int) -> str:
    return outcome_of(graph, given(number), f"left-{number}")


def asks_in_right(graph: DurableGraph, number: int) -> str:
    return outcome_of(graph, given(number), f"right-{number}")


def check_bank(folder: Path, receiver: Receiver, rounds: int) -> None:
    """Executed once a claim; called again once at most, and not at all where a look-up found the payment."""
    paid, called = payments(folder), calls(folder)
    for number in range(rounds):
        assert paid[f"{number}"] == 1
        again = executed_by_the_dead(number) and receiver.honours_keys
        assert called[f"{number}"] == (2 if again else 1)


def check_met(said: list[tuple[str, str]]) -> None:
    """One was at work when the other came, at least once; who came when all was over found it paid."""
    assert {("paid", "busy"), ("busy", "paid")} & set(said)
    assert set(said) <= {("paid", "busy"), ("busy", "paid"), ("paid", "paid")}


def takers(journal: Journal, threads: Iterable[str]) -> set[str]:
    """Which processes took an effect over."""
    entries = (entry for thread_id in threads for entry in journal.audit.entries(thread_id))
    return {entry.actor.split(":")[1] for entry in entries if entry.event == "effect.take_over"}


def later() -> MovingClock:
    clock = MovingClock()
    clock.move(LATER)
    return clock


@pytest.mark.parametrize(
    ("other", "receiver", "rounds"),
    [
        pytest.param(resumes, KEYED, MANY, id="keyed"),
        pytest.param(resumes, UNKEYED, SOME, id="without-keys"),
        pytest.param(submits_again, KEYED, SOME, id="submitted-again"),
    ],
)
def test_two_supervisors_of_a_crashed_run_take_over_once(
    url: str, tmp_path: Path, other: Act, receiver: Receiver, rounds: int
) -> None:
    killed(start(dies_in_the_tool, url, tmp_path, receiver, False, rounds))
    make = partial(paying, receiver=receiver, once=False)
    left = Side(resumes, meets="lease.take", later=LATER)
    said = race(url, tmp_path, make, left, Side(other, meets="lease.take", later=LATER), rounds)

    check_met(said)
    check_bank(tmp_path, receiver, rounds)
    with open_journal(url, clock=later()) as journal:
        for number in range(rounds):
            run = journal.runs.get(thread_of(number))
            assert (run.state, run.resumes) == ("done", 1)
            events = [entry.event for entry in journal.audit.entries(run.thread_id)]
            assert events == ["run.admit", "run.start", "effect.claim", *TAKEN_OVER]
        assert len(takers(journal, map(thread_of, range(rounds)))) == 2
        assert list(journal.audit.verify()) == []


TAKEN_OVER = ("run.start", "effect.take_over", "effect.settle", "run.finish")


@pytest.mark.parametrize(
    ("receiver", "rounds"), [pytest.param(KEYED, MANY, id="keyed"), pytest.param(UNKEYED, SOME, id="without-keys")]
)
def test_two_supervisors_of_an_effect_in_doubt_take_it_over_once(
    url: str, tmp_path: Path, receiver: Receiver, rounds: int
) -> None:
    """No lease stands between these two: each has a thread of its own, and both ask for the dead worker's effect by its business identity."""
    killed(start(dies_in_the_tool, url, tmp_path, receiver, True, rounds))
    make = partial(paying, receiver=receiver, once=True)
    left, right = (Side(act, meets="effect.claim", later=LATER) for act in (asks_in_left, asks_in_right))
    said = race(url, tmp_path, make, left, right, rounds)

    check_met(said)
    with open_journal(url, clock=later()) as journal:
        graph = make(journal, tmp_path)
        for number in range(rounds):
            for thread_id in (f"left-{number}", f"right-{number}"):
                assert advanced(graph, thread_id) == "done"
            [record] = journal.effects.list(thread_id=thread_of(number))
            assert (record.state, record.calls) == ("settled", 2)
        assert len(takers(journal, map(thread_of, range(rounds)))) == 2
        assert list(journal.audit.verify()) == []
    check_bank(tmp_path, receiver, rounds)
