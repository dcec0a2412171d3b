"""An answer that the asking node's own type would refuse at every resume is refused before it is recorded."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from checkpointing import Journal
from checkpointing.errors import DecisionInvalid, PayloadChanged
from graph import DurableGraph, DurableState, answer, approve, durable, edit, reject, thread
from nodes.middleware import EffectAgentState
from tests.support.scripted import ScriptedModel, calls

THREAD = thread("claim-1", principal="intake")
ADJUSTER = thread("claim-1", principal="adjuster-17")
RESPOND: dict[str, Any] = {"type": "respond", "value": {"on": "2026-12-01"}}


class Visit(BaseModel):
    on: date
    by: UUID | None = None


class State(DurableState):
    visit: Any


def asking(journal: Journal) -> DurableGraph:
    def ask(state: State) -> dict[str, Any]:
        return {"visit": interrupt("when?", response_schema=Visit).on.isoformat()}

    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    return durable(builder, journal)


@pytest.mark.parametrize(
    "bad", [{"on": "next week"}, {"on": "2026-02-30"}, {"on": "2026-12-01", "by": "ada"}, {"on": 1.5}, {}, "2026-12-01"]
)
def test_an_answer_that_its_type_refuses_is_not_recorded(journal: Journal, bad: Any) -> None:
    graph = asking(journal)
    [asked] = graph.invoke({}, THREAD)["__interrupt__"]
    [row] = journal.approvals.pending()
    named = Command(resume={"approval": row.id, "type": "respond", "value": bad})
    for command in (answer(asked, bad), named):
        with pytest.raises(DecisionInvalid):
            graph.submit(command, ADJUSTER)
    untouched = [row.state for row in journal.approvals.of_thread("claim-1")]

    assert untouched == ["pending"]
    assert graph.invoke(answer(asked, {"on": "2026-12-01"}), ADJUSTER)["visit"] == "2026-12-01"


def test_nor_is_an_edit_that_the_tools_own_arguments_refuse(journal: Journal, tmp_path: Path) -> None:
    @tool
    def visit(on: date) -> str:
        """Visit the claimant."""
        (tmp_path / "visited").write_text(on.isoformat())
        return "seen"

    model = ScriptedModel(script=[calls(("c1", "visit", {"on": "2026-12-01"}))], file=tmp_path / "asked")
    review: Any = HumanInTheLoopMiddleware({"visit": True}, interrupt_mode="per_call")
    agent = create_agent(model, tools=[visit], middleware=[review], state_schema=EffectAgentState)
    graph = durable(agent, journal)
    [asked] = graph.invoke({"messages": [{"role": "user", "content": "visit"}]}, THREAD)["__interrupt__"]

    def edited(on: str) -> Any:
        return answer(asked, {"type": "edit", "edited_action": {"name": "visit", "args": {"on": on}}})

    with pytest.raises(DecisionInvalid, match="next week"):
        graph.invoke(edited("next week"), ADJUSTER)
    graph.invoke(edited("2026-12-02"), ADJUSTER)

    assert (tmp_path / "visited").read_text() == "2026-12-02"
    assert journal.runs.get("claim-1").state == "done"


def test_a_decision_that_names_the_row_of_a_graphs_own_interrupt_answers_it(journal: Journal) -> None:
    graph = asking(journal)
    graph.invoke({}, THREAD)
    [row] = journal.approvals.pending()
    for command in (approve(row), reject(row), edit(row, {"on": "2026-12-01"})):
        with pytest.raises(DecisionInvalid, match="respond"):
            graph.invoke(command, ADJUSTER)
    with pytest.raises(PayloadChanged):
        graph.invoke(Command(resume={**RESPOND, "approval": row.id, "payload_hash": "0" * 64}), ADJUSTER)
    result = graph.invoke(Command(resume={**RESPOND, "approval": row.id, "payload_hash": row.payload_hash}), ADJUSTER)

    assert result["visit"] == "2026-12-01"
    assert journal.approvals.get(row.id).decision == RESPOND
