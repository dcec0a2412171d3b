"""Questions of graphs that are not ours, from their payload alone: an agent's tool calls, and a plain `interrupt()`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from checkpointing import Approval
from graph import DurableGraph, DurableState, durable, thread
from nodes import EffectTools
from tests.inbox.pages import Pages, Visit
from tests.support.bank import Bank
from tests.support.scripted import ScriptedModel, calls

FIRST, SECOND = {"claim_id": "1", "amount": 100}, {"claim_id": "2", "amount": 200}
AGENT = thread("agent-1", principal="clerk")


class State(DurableState):
    answered: Any


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank(tmp_path / "agents-bank")


def agent(
    inbox: Pages, bank: Bank, tmp_path: Path, *wanted: tuple[str, str, dict[str, Any]], mode: Any
) -> DurableGraph:
    """Park an agent that wants to pay, under LangChain's review."""
    review: Any = HumanInTheLoopMiddleware({"pay": True}, interrupt_mode=mode)
    model = ScriptedModel(script=[calls(*wanted)], file=tmp_path / "asked")
    made = create_agent(model, middleware=[review, EffectTools(inbox.journal, [bank.effect()])])
    graph = durable(made, inbox.journal, name="agent")
    graph.invoke({"messages": [{"role": "user", "content": "pay"}]}, AGENT)
    return graph


def at(inbox: Pages) -> tuple[Visit, Approval]:
    [asked] = inbox.journal.approvals.pending(thread_id="agent-1")
    visit = inbox.visit("ada", "approver")
    visit.get(f"/approvals/{asked.id}")
    return visit, asked


def test_each_call_of_an_agent_has_its_own_decision(inbox: Pages, bank: Bank, tmp_path: Path) -> None:
    graph = agent(inbox, bank, tmp_path, ("c1", "pay", FIRST), ("c2", "pay", SECOND), mode="batched")
    visit, asked = at(inbox)
    assert "pay (2 of 2)" in visit.said
    assert "Question for agent-1" in visit.said
    given = {"call.0": "edit", "call.0.args": '{"claim_id": "1", "amount": 50}'}
    visit.post(f"/approvals/{asked.id}", given, type="respond", payload_hash=asked.payload_hash)
    assert (visit.status, "Choose what is to become of it" in visit.said) == (422, True)
    assert "&#34;amount&#34;: 50" in visit.last

    given |= {"call.1": "reject", "call.1.message": "Not this one."}
    visit.post(f"/approvals/{asked.id}", given, type="respond", payload_hash=asked.payload_hash)
    assert "You have answered this" in visit.said
    graph.invoke(None, AGENT)
    assert [(call["claim_id"], call["amount"]) for call in bank.executed] == [("1", 50)]


def test_one_call_at_a_time(inbox: Pages, bank: Bank, tmp_path: Path) -> None:
    graph = agent(inbox, bank, tmp_path, ("c1", "pay", FIRST), mode="per_call")
    visit, asked = at(inbox)
    for wrong in ({}, {"call.0": "never"}, {"call.0": "edit", "call.0.args": "[1"}, {"call.0": "respond"}):
        visit.post(f"/approvals/{asked.id}", wrong, type="respond", payload_hash=asked.payload_hash)
        assert visit.status == 422, wrong
    visit.post(f"/approvals/{asked.id}", {"call.0": "approve"}, type="respond", payload_hash=asked.payload_hash)
    assert "You have answered this" in visit.said
    graph.invoke(None, AGENT)
    assert [call["amount"] for call in bank.executed] == [100]


@pytest.mark.parametrize(("sent_as", "value"), [("text", '{"ok": true}'), ("json", {"ok": True})])
def test_a_plain_interrupt_takes_an_answer_as_text_or_as_json(inbox: Pages, sent_as: str, value: Any) -> None:
    def ask(state: State) -> dict[str, Any]:
        return {"answered": interrupt({"really": "<b>?</b>"})}

    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    graph = durable(builder, inbox.journal, name="asks")
    graph.invoke({}, AGENT)
    visit, asked = at(inbox)
    assert "<b>?</b>" in visit.said
    given = {"answer": "", "answer_as": sent_as}
    visit.post(f"/approvals/{asked.id}", given, type="respond", payload_hash=asked.payload_hash)
    assert visit.status == 422

    given["answer"] = '{"ok": true}'
    visit.post(f"/approvals/{asked.id}", given, type="respond", payload_hash=asked.payload_hash)
    assert "You have answered this" in visit.said
    assert graph.invoke(None, AGENT)["answered"] == value
