"""The types users see, checked by mypy and pyright: this module is never wrong at run time, and a changed type fails the checks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any, assert_type

from langchain.agents import create_agent
from langchain_core.runnables import RunnableConfig
from langgraph.graph import StateGraph
from langgraph.types import Command

from checkpointing import Approval, EffectRecord, Journal, Run, open_journal
from graph import DurableGraph, DurableState, answer, approve, durable, edit, reject, thread
from nodes import EffectTools, approval_node, effect_node, effect_tool_node, model_node
from tools import Effect, Receiver, effect


class State(DurableState):
    amount: int


@effect(
    receiver=Receiver(honours_keys=True, key_life=timedelta(hours=24)),
    name="pay",
    once=lambda a: a["claim_id"],
)
def pay(*, claim_id: str, amount: int, key: str) -> dict[str, Any]:
    return {"paid": amount}


def uses(journal: Journal, builder: StateGraph[Any, Any, Any, Any], shown: Approval) -> None:
    """What a user's code says; mypy and pyright read it, nobody calls it."""
    assert_type(pay, Effect)
    builder.add_node(
        "pay",
        effect_node(pay, journal, arguments=lambda s: {"amount": s["amount"]}, into="payment"),
    )
    builder.add_node("ask", approval_node("payout", journal, payload=lambda s: {"amount": s["amount"]}))
    builder.add_node("model", model_node(lambda **_: {}, journal, arguments=lambda s: {}, into="answer"))
    builder.add_node("tools", effect_tool_node(journal, [pay], handle_tool_errors=True))
    assert_type(durable(create_agent("a:model", middleware=[EffectTools(journal, [pay])]), journal), DurableGraph)
    graph = durable(builder, journal)
    assert_type(graph, DurableGraph)
    assert_type(thread("t", principal="p"), RunnableConfig)
    assert_type(graph.stream({}, thread("t")), Iterator[Any])
    assert_type(graph.astream({}, thread("t")), AsyncIterator[Any])
    for command in (
        approve(shown),
        reject(shown, "no"),
        edit(shown, {"amount": 1}),
        answer(shown, 1),
    ):
        assert_type(command, Command[Any])
    assert_type(journal.runs.get("t"), Run)
    assert_type(journal.effects.list(), list[EffectRecord])
    assert_type(journal.approvals.pending(), list[Approval])


def test_the_public_names_are_there() -> None:
    assert callable(uses)
    assert callable(open_journal)
