"""An effect whose owner is gone, for every kind of receiver: never a blind second call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph

from checkpointing import Journal
from checkpointing.errors import (
    AlreadySettled,
    ArgumentsNotJson,
    Declined,
    EffectBusy,
    EffectConflict,
    EffectInDoubt,
    EffectUnsettled,
    KeyInUse,
    KeyMismatch,
    NotAllowed,
    Rejected,
    RunDead,
    UnknownEffect,
    Unreachable,
)
from graph import DurableGraph, DurableState, durable, thread
from nodes import effect_node, model_node
from tests.support.bank import Bank
from tests.support.clock import MovingClock
from tools import Receiver, effect

THREAD = thread("claim-0042")
LEASE = timedelta(seconds=30)
KEYED = Receiver(honours_keys=True, key_life=timedelta(hours=24), attempts=2, backoff=timedelta(0))
FOR_EVER = Receiver(honours_keys=True, attempts=1)
LOOK_UP = Receiver(settle_delay=timedelta(0), attempts=1)
NEITHER = Receiver(attempts=1)
REPEATABLE = Receiver(repeatable=True, attempts=1)


class PowerCut(BaseException):
    """Ends a tool as the death of its process would: nothing after it runs but `finally`."""


class State(DurableState):
    payment: dict[str, Any]


class World:
    """A receiver whose next answers a test decides."""

    def __init__(self, journal: Journal, bank: Bank, receiver: Receiver, *, look_up: bool) -> None:
        self.bank = bank
        self.journal = journal
        self.answers: list[BaseException | None] = []
        self.executes = True
        self.looked_up = 0

        @effect(receiver=receiver, name="pay")
        def pay(*, claim_id: str, amount: int, key: str) -> dict[str, Any]:
            answer = self.answers.pop(0) if self.answers else None
            if answer is None:
                return bank.execute(claim_id=claim_id, amount=amount, key=key)
            if self.executes:
                bank.execute(claim_id=claim_id, amount=amount, key=key)
            raise answer

        if look_up:

            @pay.lookup
            def find(*, key: str, **_: Any) -> dict[str, Any] | None:
                self.looked_up += 1
                found = [call for call in bank.calls if call["key"] == key]
                return {"paid": found[0]["amount"], "key": key} if found else None

        builder = StateGraph(State)
        builder.add_node(
            "pay",
            effect_node(pay, journal, arguments=lambda s: {"claim_id": "1", "amount": 5}, into="payment"),
        )
        builder.add_edge(START, "pay")
        self.graph: DurableGraph = durable(builder, journal, attempts=3)

    def dies_in_the_tool(self, *, executes: bool) -> None:
        """Begin the run and lose the process inside the tool."""
        self.executes = executes
        self.answers = [PowerCut()]
        with pytest.raises(PowerCut):
            self.graph.invoke({}, THREAD)

    @property
    def key(self) -> str:
        return self.journal.effects.list()[0].key


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank(tmp_path / "bank")


@pytest.fixture
def journal(opened: Callable[..., Journal], clock: MovingClock) -> Journal:
    return opened(clock=clock, lease=LEASE)


@pytest.mark.parametrize("executes", [True, False])
def test_a_young_key_is_sent_again(journal: Journal, bank: Bank, executes: bool) -> None:
    world = World(journal, bank, KEYED, look_up=True)
    world.dies_in_the_tool(executes=executes)
    world.graph.invoke(None, THREAD)

    assert len(bank.executed) == 1
    assert world.looked_up == 0
    assert journal.effects.get(world.key).calls == 2


def test_a_key_without_an_end_is_sent_again_however_old(journal: Journal, bank: Bank, clock: MovingClock) -> None:
    world = World(journal, bank, FOR_EVER, look_up=False)
    world.dies_in_the_tool(executes=True)
    clock.move(timedelta(days=400))
    world.graph.invoke(None, THREAD)

    assert len(bank.executed) == 1


def test_an_expired_key_is_looked_up_and_found(journal: Journal, bank: Bank, clock: MovingClock) -> None:
    world = World(journal, bank, KEYED, look_up=True)
    world.dies_in_the_tool(executes=True)
    clock.move(timedelta(hours=25))
    world.graph.invoke(None, THREAD)

    assert (len(bank.calls), world.looked_up) == (1, 1)
    assert journal.runs.get("claim-0042").state == "done"


def test_an_expired_key_that_is_not_found_takes_a_person(journal: Journal, bank: Bank, clock: MovingClock) -> None:
    world = World(journal, bank, KEYED, look_up=True)
    world.dies_in_the_tool(executes=False)
    clock.move(timedelta(hours=25))
    with pytest.raises(EffectInDoubt) as told:
        world.graph.invoke(None, THREAD)

    assert told.value.key == world.key
    assert (bank.calls, world.looked_up) == ([], 1)
    assert journal.runs.get("claim-0042").reason == "in_doubt"


@pytest.mark.parametrize("look_up", [True, False])
def test_a_key_whose_life_ends_between_two_attempts_is_not_sent_again(
    journal: Journal, clock: MovingClock, look_up: bool
) -> None:
    """A receiver that is tried for longer than it remembers a key: the age counts at each attempt, not at the claim."""
    calls: list[str] = []

    @effect(receiver=replace(KEYED, settle_delay=timedelta(0)), name="pay")
    def pay(*, key: str) -> dict[str, Any]:
        calls.append(key)
        clock.move(timedelta(hours=25))
        raise Unreachable("no answer")

    if look_up:
        pay.lookup(lambda *, key: {"paid": 5})
    builder = StateGraph(State)
    builder.add_node("pay", effect_node(pay, journal, arguments=lambda s: {}, into="payment"))
    builder.add_edge(START, "pay")
    graph = durable(builder, journal)

    if look_up:
        assert graph.invoke({}, THREAD)["payment"] == {"paid": 5}
    else:
        with pytest.raises(EffectInDoubt):
            graph.invoke({}, THREAD)
    assert len(calls) == 1


@pytest.mark.parametrize("executes", [True, False])
def test_without_keys_a_look_up_decides(journal: Journal, bank: Bank, executes: bool) -> None:
    world = World(journal, bank, LOOK_UP, look_up=True)
    world.dies_in_the_tool(executes=executes)
    world.graph.invoke(None, THREAD)

    assert (len(bank.calls), world.looked_up) == (1, 1)
    assert journal.runs.get("claim-0042").state == "done"


@pytest.mark.parametrize("own", [{}, {"claimed_at": "my own"}])
def test_a_look_up_may_ask_since_when(journal: Journal, clock: MovingClock, own: dict[str, str]) -> None:
    """A chat's history is walked, not searched: the claim bounds the walk. An argument of that name is the tool's own."""
    since: list[object] = []

    @effect(receiver=LOOK_UP, name="pay")
    def pay(*, key: str, claimed_at: str = "") -> Any:
        raise PowerCut

    @pay.lookup
    def find(*, claimed_at: object, **_: Any) -> dict[str, Any]:
        since.append(claimed_at)
        return {"paid": 5}

    builder = StateGraph(State)
    builder.add_node("pay", effect_node(pay, journal, arguments=lambda s: own, into="payment"))
    builder.add_edge(START, "pay")
    graph = durable(builder, journal)
    begun = clock.now
    with pytest.raises(PowerCut):
        graph.invoke({}, THREAD)
    clock.move(timedelta(days=3))
    graph.invoke(None, THREAD)

    assert since == [own.get("claimed_at", begun)]


def test_without_keys_and_look_up_a_person_decides_that_it_happened(journal: Journal, bank: Bank) -> None:
    world = World(journal, bank, NEITHER, look_up=False)
    world.dies_in_the_tool(executes=True)
    for _ in range(3):
        with pytest.raises(EffectInDoubt, match="counterfoil effects resolve"):
            world.graph.invoke(None, THREAD)
    assert journal.runs.get("claim-0042").state == "parked"
    journal.effects.resolve(world.key, happened=True, outcome={"paid": 5}, principal="operator-1")
    done = world.graph.invoke(None, THREAD)

    assert done["payment"] == {"paid": 5}
    assert len(bank.calls) == 1
    assert list(journal.audit.verify()) == []


def test_without_keys_and_look_up_a_person_decides_that_nothing_happened(journal: Journal, bank: Bank) -> None:
    world = World(journal, bank, NEITHER, look_up=False)
    world.dies_in_the_tool(executes=False)
    with pytest.raises(EffectInDoubt):
        world.graph.invoke(None, THREAD)
    journal.effects.resolve(world.key, happened=False, principal="operator-1")
    world.graph.invoke(None, THREAD)

    assert len(bank.calls) == 1
    assert journal.runs.get("claim-0042").state == "done"


def test_what_is_harmless_to_repeat_is_repeated(journal: Journal, bank: Bank) -> None:
    world = World(journal, bank, REPEATABLE, look_up=False)
    world.dies_in_the_tool(executes=True)
    world.graph.invoke(None, THREAD)

    assert len(bank.calls) == 2
    assert journal.runs.get("claim-0042").state == "done"


def test_resolving_says_what_is_wrong(journal: Journal, bank: Bank) -> None:
    world = World(journal, bank, NEITHER, look_up=False)
    world.graph.invoke({}, THREAD)

    with pytest.raises(UnknownEffect, match="no-such-key"):
        journal.effects.resolve("no-such-key", happened=True, outcome={}, principal="operator-1")
    with pytest.raises(NotAllowed, match="principal"):
        journal.effects.resolve(world.key, happened=True, outcome={}, principal=None)
    for happened in (False, True):
        with pytest.raises(AlreadySettled, match="never replaced"):
            journal.effects.resolve(world.key, happened=happened, outcome={"paid": 1}, principal="operator-1")
    assert journal.effects.get(world.key).outcome["paid"] == 5


def test_an_unreachable_receiver_is_asked_again_under_the_same_key(journal: Journal, bank: Bank) -> None:
    world = World(journal, bank, KEYED, look_up=False)
    world.answers = [Unreachable("no answer")]
    done = world.graph.invoke({}, THREAD)

    assert done["payment"]["paid"] == 5
    assert (len(bank.calls), len(bank.executed)) == (2, 1)


@pytest.mark.parametrize("error", [Unreachable("no answer"), KeyInUse("still at it")])
def test_an_answer_that_does_not_come_costs_no_attempt(journal: Journal, bank: Bank, error: Exception) -> None:
    world = World(journal, bank, KEYED, look_up=False)
    for _ in range(5):
        world.answers = [error, error]
        with pytest.raises(EffectUnsettled, match="same key"):
            world.graph.invoke({}, THREAD)
    assert journal.effects.get(world.key).state == "in_doubt"
    world.graph.invoke(None, THREAD)

    assert len(bank.executed) == 1
    assert journal.runs.get("claim-0042").state == "done"


def test_an_unreachable_model_costs_an_attempt(journal: Journal) -> None:
    def ask(**_: Any) -> dict[str, Any]:
        raise Unreachable("the model is down")

    builder = StateGraph(State)
    node = model_node(
        effect(receiver=REPEATABLE, name="ask")(ask),
        journal,
        arguments=lambda s: {},
        into="payment",
    )
    builder.add_node("ask", node)
    builder.add_edge(START, "ask")
    graph = durable(builder, journal, attempts=2)
    for _ in range(2):
        with pytest.raises(Unreachable):
            graph.invoke({}, THREAD)

    with pytest.raises(RunDead, match="the model is down"):
        graph.invoke({}, THREAD)


def test_unreachable_without_keys_and_look_up_takes_a_person(journal: Journal, bank: Bank) -> None:
    world = World(journal, bank, NEITHER, look_up=False)
    world.answers = [Unreachable("no answer")]
    with pytest.raises(EffectInDoubt):
        world.graph.invoke({}, THREAD)

    assert len(bank.calls) == 1
    assert journal.runs.get("claim-0042").waits_for == world.key


def test_a_business_no_is_an_outcome(journal: Journal, bank: Bank) -> None:
    world = World(journal, bank, KEYED, look_up=False)
    world.executes = False
    world.answers = [Declined("account closed")]
    done = world.graph.invoke({}, THREAD)
    again = world.graph.invoke({}, THREAD)

    assert done["payment"] == again["payment"] == {"declined": "account closed"}
    assert done["effects"]["pay.0"]["state"] == "declined"
    assert journal.effects.get(world.key).declined == "account closed"


def test_a_wrong_request_is_a_dead_letter_and_frees_the_slot(journal: Journal, bank: Bank) -> None:
    world = World(journal, bank, KEYED, look_up=False)
    world.executes = False
    world.answers = [Rejected("unknown currency")]
    with pytest.raises(Rejected):
        world.graph.invoke({}, THREAD)
    assert journal.effects.get(world.key).state == "released"
    assert journal.runs.get("claim-0042").reason == "rejected"
    journal.runs.redrive("claim-0042", principal="operator-1")
    world.graph.invoke(None, THREAD)

    assert len(bank.calls) == 1


def test_a_refusal_after_a_call_that_may_have_happened_frees_nothing(journal: Journal, bank: Bank) -> None:
    """An API key revoked between two attempts: the refusal says nothing about the first one."""
    world = World(journal, bank, KEYED, look_up=False)
    world.answers = [Unreachable("no answer"), Rejected("key revoked")]
    with pytest.raises(Rejected):
        world.graph.invoke({}, THREAD)

    assert journal.effects.get(world.key).state == "in_doubt"
    journal.runs.redrive("claim-0042", principal="operator-1")
    world.graph.invoke(None, THREAD)
    assert len(bank.executed) == 1


def test_a_key_known_with_another_payload_is_a_conflict(journal: Journal, bank: Bank) -> None:
    world = World(journal, bank, KEYED, look_up=False)
    world.answers = [KeyMismatch("other parameters")]
    with pytest.raises(EffectConflict, match="another payload"):
        world.graph.invoke({}, THREAD)

    assert journal.runs.get("claim-0042").reason == "effect_conflict"


def test_an_error_nobody_declared_leaves_the_claim_and_costs_an_attempt(journal: Journal, bank: Bank) -> None:
    world = World(journal, bank, KEYED, look_up=False)
    world.answers = [ZeroDivisionError()]
    with pytest.raises(ZeroDivisionError):
        world.graph.invoke({}, THREAD)
    run = journal.runs.get("claim-0042")
    assert (run.state, run.attempts, run.error) == ("admitted", 1, "ZeroDivisionError: ")
    assert journal.effects.get(world.key).state == "claimed"
    world.graph.invoke(None, THREAD)

    assert len(bank.executed) == 1


def test_a_result_that_is_not_json_leaves_the_claim(journal: Journal) -> None:
    @effect(receiver=KEYED, name="pay")
    def pay(*, key: str) -> Any:
        return {"at": timedelta(1)}

    builder = StateGraph(State)
    builder.add_node("pay", effect_node(pay, journal, arguments=lambda s: {}, into="payment"))
    builder.add_edge(START, "pay")
    graph = durable(builder, journal)

    with pytest.raises(ArgumentsNotJson, match="outcome of effect .*timedelta"):
        graph.invoke({}, THREAD)
    assert journal.effects.list()[0].state == "claimed"


def test_an_effect_at_work_in_this_process_is_not_begun_again(journal: Journal, bank: Bank) -> None:
    """A node that timed out runs again while its tool still runs in a thread: here the raw graph, twice at once."""
    world = World(journal, bank, KEYED, look_up=False)
    met: list[type] = []

    def meanwhile(**call: Any) -> dict[str, Any]:
        with pytest.raises(EffectBusy) as busy:
            world.graph.compiled.invoke(None, THREAD)
        met.append(busy.type)
        return {"paid": 5, "key": call["key"]}

    bank.execute = meanwhile  # type: ignore[method-assign]  # what the receiver does while it is at work
    world.graph.compiled.invoke({}, THREAD, durability="sync")

    assert met == [EffectBusy]
    assert journal.effects.get(world.key).calls == 1
