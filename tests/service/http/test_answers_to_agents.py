"""Answers over HTTP to an agent's question: checked before they are recorded, as where the graph is at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware

from checkpointing import Approval, Journal
from graph import DurableGraph, durable, thread
from nodes import EffectTools
from tests.support.bank import Bank
from tests.support.desk import V1, Desk
from tests.support.scripted import ScriptedModel, calls

THREAD = "chat-1"
SHOWN = [{"name": "pay", "args": {"claim_id": one, "amount": 5}} for one in ("1", "2")]
YES, NO = {"type": "approve"}, {"type": "reject"}


def agent(journal: Journal, folder: Path, mode: Any) -> DurableGraph:
    """Make an agent that wants to pay twice, under review."""
    made = calls(*((f"c{at}", one["name"], one["args"]) for at, one in enumerate(SHOWN)))  # type: ignore[misc]
    review: Any = HumanInTheLoopMiddleware({"pay": True}, interrupt_mode=mode)
    effects = EffectTools(journal, [Bank(folder / "payments").effect()])
    model = ScriptedModel(script=[made], file=folder / "questions")
    return durable(create_agent(model, middleware=[review, effects]), journal, name="chat")


def post(desk: Desk, asked: Approval, value: Any) -> Any:
    """Answer as an approver does; every time the same one."""
    client = desk.client("ada", "approver")
    return client.post(f"{V1}/approvals/{asked.id}/decision", json={"type": "respond", "value": value})


@pytest.fixture
def pays(tmp_path: Path) -> Bank:
    return Bank(tmp_path / "payments")


def test_a_batch_that_says_what_each_decision_is_for_is_taken(desk: Desk, tmp_path: Path, pays: Bank) -> None:
    graph = agent(desk.journal, tmp_path, "batched")
    graph.invoke({"messages": [{"role": "user", "content": "pay"}]}, thread(THREAD, principal="intake"))
    [asked] = desk.journal.approvals.pending(thread_id=THREAD)
    by_position = post(desk, asked, {"decisions": [NO, YES]})
    switched = post(
        desk, asked, {"decisions": [{**SHOWN[0], **YES}, {**SHOWN[1], "type": "edit", "edited_action": {}}]}
    )
    untouched = desk.journal.approvals.get(asked.id).state
    taken = post(desk, asked, {"decisions": [{**SHOWN[1], **YES}, {**SHOWN[0], **NO}]})
    graph.invoke(None, thread(THREAD))

    assert (by_position.status_code, switched.status_code, untouched) == (422, 422, "pending")
    assert "'name': 'pay', 'args'" in by_position.json()["detail"]
    assert taken.status_code == 200
    assert [call["claim_id"] for call in pays.calls] == ["2"]


def test_one_decision_a_call_fits_what_the_call_takes(desk: Desk, tmp_path: Path, pays: Bank) -> None:
    graph = agent(desk.journal, tmp_path, "per_call")
    graph.invoke({"messages": [{"role": "user", "content": "pay"}]}, thread(THREAD, principal="intake"))
    first, second = sorted(
        desk.journal.approvals.pending(thread_id=THREAD), key=lambda one: one.payload["tool_call_id"]
    )
    edit = {"type": "edit", "edited_action": {"name": "pay", "args": {"claim_id": "1", "amount": "five"}}}
    refused = [post(desk, first, value).status_code for value in (edit, {"decisions": [YES]}, "yes")]
    taken = [post(desk, one, value).status_code for one, value in ((first, NO), (second, YES))]
    graph.invoke(None, thread(THREAD))

    assert (refused, taken) == ([422, 422, 422], [200, 200])
    assert [call["claim_id"] for call in pays.calls] == ["2"]
