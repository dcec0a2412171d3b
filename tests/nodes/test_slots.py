"""Which effect a node's effect is, in every shape a graph can have: one execution a slot, and never another operation's answer."""

from __future__ import annotations

import asyncio
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import CachePolicy, RetryPolicy, Send
from typing_extensions import TypedDict

from checkpointing import Journal
from checkpointing.errors import (
    ArgumentsNotJson,
    EffectConflict,
    GraphRefused,
    RunDead,
    SlotAmbiguous,
    UnguardedEffect,
)
from checkpointing.slots import Slot, make_key
from graph import DurableGraph, DurableState, durable, thread
from nodes import effect_node
from tests.support.bank import Bank
from tools import Receiver, effect

THREAD = thread("claim-0042")


class State(DurableState):
    claim_id: str
    amount: int
    rounds: int
    payment: dict[str, Any]


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank(tmp_path / "bank")


def arguments(state: Any) -> dict[str, Any]:
    return {"claim_id": state["claim_id"], "amount": state["amount"]}


def paying(journal: Journal, bank: Bank, state: type = State, **options: Any) -> StateGraph[Any, Any, Any, Any]:
    """START ─▶ pay."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(state)
    builder.add_node("pay", effect_node(bank.effect(**options), journal, arguments=arguments, into="payment"))
    builder.add_edge(START, "pay")
    return builder


def counting(state: State) -> dict[str, Any]:
    return {"rounds": state.get("rounds", 0) + 1}


def steps(graph: DurableGraph) -> list[str]:
    return sorted(record.step for record in graph.journal.effects.list())


def test_every_visit_of_a_loop_is_an_effect_of_its_own(journal: Journal, bank: Bank) -> None:
    builder = paying(journal, bank)
    builder.add_node("count", counting)
    builder.add_edge("pay", "count")
    builder.add_conditional_edges("count", lambda state: "pay" if state["rounds"] < 3 else END)
    graph = durable(builder, journal)
    graph.invoke({"claim_id": "1", "amount": 5}, THREAD)
    graph.invoke({"claim_id": "1", "amount": 5}, THREAD)

    assert steps(graph) == ["pay.0", "pay.1", "pay.2"]
    assert len(bank.calls) == 3


def test_every_send_of_a_fan_out_is_an_effect_of_its_own(journal: Journal, bank: Bank) -> None:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("pay", effect_node(bank.effect(), journal, arguments=arguments))
    builder.add_node("count", counting)

    def fan_out(state: State) -> list[Send]:
        return [Send("pay", {"claim_id": str(n), "amount": 5}) for n in range(3)]

    builder.add_conditional_edges(START, fan_out, ["pay"])
    builder.add_edge("pay", "count")
    builder.add_conditional_edges("count", lambda state: fan_out(state) if state["rounds"] < 2 else END, ["pay", END])
    graph = durable(builder, journal)
    graph.invoke({"claim_id": "-"}, THREAD)

    assert steps(graph) == ["pay.0[0]", "pay.0[1]", "pay.0[2]", "pay.3[0]", "pay.3[1]", "pay.3[2]"]
    assert sorted(call["claim_id"] for call in bank.calls) == ["0", "0", "1", "1", "2", "2"]


def test_a_finished_sibling_is_not_executed_again(journal: Journal, bank: Bank) -> None:
    failures = [1, 1]

    def flaky(state: State) -> dict[str, Any]:
        if failures:
            failures.pop()
            raise RuntimeError("the other branch failed")
        return {}

    builder = paying(journal, bank)
    builder.add_node("flaky", flaky)
    builder.add_edge(START, "flaky")
    graph = durable(builder, journal)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="other branch"):
            graph.invoke({"claim_id": "1", "amount": 5}, THREAD)
    graph.invoke(None, THREAD)

    assert graph.journal.runs.get("claim-0042").state == "done"
    assert len(bank.executed) == 1
    assert len(bank.calls) == 1


def test_an_effect_in_a_subgraph_with_receipts_counts_its_visits(journal: Journal, bank: Bank) -> None:
    inner = paying(journal, bank).compile()
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("fraud", inner)
    builder.add_node("count", counting)
    builder.add_edge(START, "fraud")
    builder.add_edge("fraud", "count")
    builder.add_conditional_edges("count", lambda state: "fraud" if state["rounds"] < 3 else END)
    graph = durable(builder, journal)
    graph.invoke({"claim_id": "1", "amount": 5}, THREAD)

    assert steps(graph) == ["fraud/pay.0", "fraud/pay.1", "fraud/pay.2"]
    assert len(bank.calls) == 3


class Bare(TypedDict, total=False):
    claim_id: str
    amount: int
    payment: dict[str, Any]


def test_a_subgraph_without_receipts_is_refused_unless_its_effects_have_an_identity(
    journal: Journal, bank: Bank
) -> None:
    def graph_with(**options: Any) -> DurableGraph:
        builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
        builder.add_node("fraud", paying(journal, bank, Bare, **options).compile())
        builder.add_edge(START, "fraud")
        return durable(builder, journal)

    with pytest.raises(GraphRefused, match=r"fraud/pay.*once="):
        graph_with()
    graph = graph_with(once=lambda arguments: arguments["claim_id"])
    graph.invoke({"claim_id": "1", "amount": 5}, THREAD)
    assert len(bank.calls) == 1


def test_two_sends_to_a_subgraph_are_ambiguous_and_never_share_an_answer(journal: Journal, bank: Bank) -> None:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("fraud", paying(journal, bank).compile())
    builder.add_conditional_edges(
        START,
        lambda state: [
            Send("fraud", {"claim_id": "1", "amount": 5}),
            Send("fraud", {"claim_id": "1", "amount": 5}),
        ],
        ["fraud"],
    )
    graph = durable(builder, journal)

    with pytest.raises(SlotAmbiguous, match="fraud/pay.0"):
        graph.invoke({"claim_id": "-"}, THREAD)
    assert graph.journal.runs.get("claim-0042").reason == "slot_ambiguous"
    assert len(bank.executed) <= 1


def test_a_graph_invoked_twice_inside_a_function_is_ambiguous(journal: Journal, bank: Bank) -> None:
    inner = paying(journal, bank).compile()

    def twice(state: State) -> dict[str, Any]:
        for _ in range(2):
            inner.invoke({"claim_id": "1", "amount": 5})
        return {}

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("twice", twice)
    builder.add_edge(START, "twice")
    graph = durable(builder, journal)

    with pytest.raises(SlotAmbiguous, match="once="):
        graph.invoke({"claim_id": "-"}, THREAD)
    assert len(bank.executed) == 1


def test_a_function_that_invokes_a_graph_in_a_loop_is_ambiguous(journal: Journal, bank: Bank) -> None:
    inner = paying(journal, bank).compile()

    def once_more(state: State) -> dict[str, Any]:
        inner.invoke({"claim_id": "1", "amount": 5})
        return {"rounds": state.get("rounds", 0) + 1}

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("more", once_more)
    builder.add_edge(START, "more")
    builder.add_conditional_edges("more", lambda state: "more" if state["rounds"] < 2 else END)
    graph = durable(builder, journal)

    with pytest.raises(SlotAmbiguous):
        graph.invoke({"claim_id": "-"}, THREAD)
    assert len(bank.executed) == 1


def test_time_travel_on_the_raw_graph_is_answered_from_the_ledger(journal: Journal, bank: Bank) -> None:
    builder = paying(journal, bank)
    builder.add_node("count", counting)
    builder.add_edge("pay", "count")
    builder.add_conditional_edges("count", lambda state: "pay" if state["rounds"] < 2 else END)
    graph = durable(builder, journal)
    graph.invoke({"claim_id": "1", "amount": 5}, THREAD)

    for snapshot in list(graph.get_state_history(THREAD)):
        if snapshot.next:
            graph.compiled.invoke(None, snapshot.config)
    assert len(bank.calls) == 2
    assert steps(graph) == ["pay.0", "pay.1"]


def test_an_edited_past_cannot_pay_something_else(journal: Journal, bank: Bank) -> None:
    graph = durable(paying(journal, bank), journal)
    graph.invoke({"claim_id": "1", "amount": 5}, THREAD)
    before = next(s for s in graph.get_state_history(THREAD) if s.next == ("pay",))
    same = graph.compiled.update_state(before.config, {"payment": {}})
    graph.compiled.invoke(None, same)
    changed = graph.compiled.update_state(before.config, {"amount": 6})

    with pytest.raises(EffectConflict, match="pay.0"):
        graph.compiled.invoke(None, changed)
    assert [call["amount"] for call in bank.calls] == [5]


def test_a_business_identity_is_paid_once_whatever_thread_asks(journal: Journal, bank: Bank) -> None:
    graph = durable(paying(journal, bank, once=lambda arguments: arguments["claim_id"]), journal)
    first = graph.invoke({"claim_id": "1", "amount": 5}, thread("a"))
    second = graph.invoke({"claim_id": "1", "amount": 5}, thread("b"))
    assert first["payment"] == second["payment"]

    with pytest.raises(EffectConflict, match="thread 'c'.*thread 'a'"):
        graph.invoke({"claim_id": "1", "amount": 6}, thread("c"))
    assert journal.runs.get("c").state == "dead"
    with pytest.raises(RunDead, match="effect_conflict"):
        graph.invoke(None, thread("c"))
    assert len(bank.calls) == 1
    assert journal.effects.list()[0].replays == 1


def test_volatile_arguments_are_no_part_of_the_digest(journal: Journal, bank: Bank) -> None:
    graph = durable(paying(journal, bank, once=lambda a: a["claim_id"], volatile={"amount"}), journal)
    graph.invoke({"claim_id": "1", "amount": 5}, thread("a"))
    graph.invoke({"claim_id": "1", "amount": 6}, thread("b"))

    assert [call["amount"] for call in bank.calls] == [5]


def test_an_effect_cannot_be_called_directly(bank: Bank) -> None:
    with pytest.raises(UnguardedEffect, match="effect_node"):
        bank.effect()(claim_id="1", amount=5, key="mine")
    assert bank.calls == []


@pytest.mark.parametrize("amount", [Decimal("1.5"), date(2026, 1, 1), 2**53, float("nan"), {1: 2}, b"5"])
def test_arguments_that_are_not_json_are_refused_by_name(journal: Journal, bank: Bank, amount: Any) -> None:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node(
        "pay",
        effect_node(bank.effect(), journal, arguments=lambda s: {"claim_id": "1", "amount": amount}),
    )
    builder.add_edge(START, "pay")
    graph = durable(builder, journal)

    with pytest.raises(ArgumentsNotJson, match=r"arguments\.amount"):
        graph.invoke({"claim_id": "1"}, THREAD)
    assert journal.runs.get("claim-0042").reason == "arguments_not_json"
    assert (bank.calls, journal.effects.list()) == ([], [])


@pytest.mark.parametrize("thread_id", ["Schaden-Ö-42", "a b", "x" * 255, "claim:0042:pay.0"])
def test_a_key_is_printable_and_short_whatever_the_thread_is_called(
    journal: Journal, bank: Bank, thread_id: str
) -> None:
    graph = durable(paying(journal, bank), journal)
    graph.invoke({"claim_id": "1", "amount": 5}, thread(thread_id))
    [record] = journal.effects.list(thread_id=thread_id)

    assert len(record.key) <= 255
    assert all("!" <= character <= "~" for character in record.key)
    assert bank.calls[0]["key"] == record.key


def test_a_key_says_what_it_is_for() -> None:
    assert (
        make_key(Slot("claim-0042", "pay.0", "pay"), "0123456789abcdef", max_length=255)
        == "claim-0042:pay.0:pay:0123456789abcdef"
    )
    short = make_key(Slot("claim-0042", "pay.0", "pay"), "0123456789abcdef", max_length=36)
    assert short.startswith("cf_")
    assert len(short) == 35


@pytest.mark.parametrize("name", ["q.0:r", "a|b", "", "pay out", "x" * 65])
def test_an_effects_name_cannot_be_taken_for_its_neighbours_in_a_key(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        effect(receiver=Receiver(honours_keys=True), name=name or "|")(lambda *, key: {})


@pytest.mark.parametrize("policy", ["retry_policy", "cache_policy"])
def test_an_effect_takes_no_policy_of_the_graph(journal: Journal, bank: Bank, policy: str) -> None:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    choices: dict[str, Any] = {"retry_policy": RetryPolicy(), "cache_policy": CachePolicy()}
    builder.add_node("pay", effect_node(bank.effect(), journal, arguments=arguments), **{policy: choices[policy]})
    builder.add_edge(START, "pay")

    with pytest.raises(GraphRefused, match="pay"):
        durable(builder, journal)


def test_a_state_that_is_not_durable_is_refused(journal: Journal, bank: Bank) -> None:
    with pytest.raises(GraphRefused, match="DurableState"):
        durable(paying(journal, bank, Bare), journal)


def test_a_loop_inside_a_function_is_ambiguous_under_another_checkpointer_too(journal: Journal, bank: Bank) -> None:
    inner = paying(journal, bank).compile()

    def once_more(state: State) -> dict[str, Any]:
        inner.invoke({"claim_id": "1", "amount": 5})
        return counting(state)

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("more", once_more)
    builder.add_edge(START, "more")
    builder.add_conditional_edges("more", lambda state: "more" if state["rounds"] < 2 else END)
    graph = builder.compile(checkpointer=InMemorySaver())

    with pytest.raises(SlotAmbiguous):
        graph.invoke({"claim_id": "-"}, THREAD)
    assert len(bank.executed) == 1


def test_a_graph_invoked_twice_is_ambiguous_under_another_checkpointer_too(journal: Journal, bank: Bank) -> None:
    inner = paying(journal, bank).compile()

    def twice(state: State) -> dict[str, Any]:
        for _ in range(2):
            inner.invoke({"claim_id": "1", "amount": 5})
        return {}

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("twice", twice)
    builder.add_edge(START, "twice")
    graph = builder.compile(checkpointer=InMemorySaver())

    with pytest.raises(SlotAmbiguous):
        graph.invoke({"claim_id": "-"}, THREAD)
    assert len(bank.executed) == 1


@pytest.mark.parametrize(
    "saver", [InMemorySaver, None], ids=["another checkpointer", "a checkpointer that only awaits"]
)
def test_time_travel_under_another_checkpointer_is_answered_from_the_ledger(
    journal: Journal, bank: Bank, saver: type[InMemorySaver] | None
) -> None:
    builder = paying(journal, bank)
    builder.add_node("count", counting)
    builder.add_edge("pay", "count")
    builder.add_conditional_edges("count", lambda state: "pay" if state["rounds"] < 3 else END)
    graph = builder.compile(checkpointer=(saver or OnlyAwaits)())

    async def travel() -> None:
        await graph.ainvoke({"claim_id": "1", "amount": 5}, THREAD)
        history = [snapshot async for snapshot in graph.aget_state_history(THREAD)]
        for snapshot in history:
            if snapshot.next:
                await graph.ainvoke(None, snapshot.config)
        edited = await graph.aupdate_state(history[-2].config, {"payment": {}})
        await graph.ainvoke(None, edited)

    asyncio.run(travel())
    assert len(bank.calls) == 3
    assert sorted(record.step for record in journal.effects.list()) == ["pay.0", "pay.1", "pay.2"]


class OnlyAwaits(InMemorySaver):
    """A checkpointer without sync calls, as some servers bring."""

    get_tuple = BaseCheckpointSaver.get_tuple  # pyright: ignore[reportAssignmentType]  # it is not there

    async def aget_tuple(self, config: Any) -> Any:
        return InMemorySaver.get_tuple(self, config)
