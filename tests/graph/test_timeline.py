"""What a timeline says of a run: its steps, and what each did, asked and waited for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph

from checkpointing import Journal
from checkpointing.errors import UnknownThread
from graph import DurableGraph, DurableState, approve, durable, thread
from graph.timeline import timeline
from nodes import approval_node, effect_node
from tests.support.bank import Bank
from tests.support.clock import MovingClock

THREAD = thread("t")


class State(DurableState):
    amount: int


@pytest.fixture
def journal(opened: Callable[..., Journal], clock: MovingClock) -> Journal:
    return opened(clock=clock)


@pytest.fixture
def graph(journal: Journal, tmp_path: Path) -> DurableGraph:
    """A question, then two effects side by side, of which one fails at first."""
    failures = [1]
    pay = Bank(tmp_path / "bank").effect()

    def fail_once(state: State) -> dict[str, Any]:
        if failures:
            failures.pop()
            raise ValueError("once")
        return {"amount": 6}

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("ask", approval_node("ok", journal, payload=lambda s: {"amount": s["amount"]}))
    for side in ("left", "right"):
        node = effect_node(pay, journal, arguments=lambda s, side=side: {"claim_id": side, "amount": s["amount"]})
        builder.add_node(side, node)
        builder.add_edge("ask", side)
    builder.add_node("third", fail_once)
    builder.add_edge("ask", "third")
    builder.add_edge(START, "ask")
    return durable(builder, journal)


def test_a_run_that_has_not_started_has_no_steps(graph: DurableGraph, journal: Journal) -> None:
    journal.runs.admit(graph._advance.accepting._admission({}, "t", None, ""))

    assert timeline(graph, "t").steps == ()
    with pytest.raises(UnknownThread):
        timeline(graph, "nobody")


def test_every_step_says_what_it_did(graph: DurableGraph, clock: MovingClock) -> None:
    [asked] = graph.invoke({"amount": 5}, THREAD)["__interrupt__"]
    standing = timeline(graph, "t").standing
    assert standing is not None
    assert (standing.number, standing.nodes, standing.ended) == (0, ("ask",), None)
    assert [approval.id for approval in standing.approvals] == [asked.value["id"]]
    clock.move(timedelta(hours=2))
    with pytest.raises(ValueError, match="once"):
        graph.invoke(approve(asked), thread("t", principal="adjuster-17"))
    graph.invoke(None, THREAD)
    first, second = timeline(graph, "t").steps

    assert (first.number, first.nodes, first.waited, first.attempts) == (0, ("ask",), timedelta(hours=2), 1)
    assert first.approvals[0].decided_by == "adjuster-17"
    assert (second.number, set(second.nodes), second.attempts) == (1, {"left", "right", "third"}, 1)
    assert {effect.step for effect in second.effects} == {"left.0", "right.0"}
    assert second.update["amount"] == 6
