"""
A dead letter that one person redrives and another gives up, at the same moment: one of them is first, and the other is told so.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from langgraph.graph import START, StateGraph

from checkpointing import Journal, open_journal
from checkpointing.errors import AlreadyDecided, InputRefused, NotRetryable, RunDiscarded
from graph import DurableGraph, DurableState, durable, thread
from nodes import approval_node
from tests.support.races import FEW, Side, race


class State(DurableState):
    number: int


def hopeless(journal: Journal, _: Path) -> DurableGraph:
    """A graph that asks, and fails beside the question."""

    def fail(state: State) -> dict[str, Any]:
        raise NotRetryable("no such policy")

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("ask", approval_node("payout", journal, payload=lambda s: {"number": s["number"]}))
    builder.add_node("fail", fail)
    builder.add_edge(START, "ask")
    builder.add_edge(START, "fail")
    return durable(builder, journal)


def thread_of(number: int) -> str:
    return f"claim-{number}"


def dead(graph: DurableGraph, number: int) -> str:
    try:
        graph.invoke({"number": number}, thread(thread_of(number)))
    except NotRetryable:
        return "dead"
    raise AssertionError("it went on")


def redrives(graph: DurableGraph, number: int) -> str:
    try:
        graph.journal.runs.redrive(thread_of(number), principal="ann", reason="mended")
    except RunDiscarded:
        return "too late"
    return "redriven"


def discards(graph: DurableGraph, number: int) -> str:
    try:
        graph.journal.runs.discard(thread_of(number), principal="bob", reason="paid by cheque")
    except InputRefused:
        return "too late"
    return "discarded"


def test_a_redrive_against_a_discard_has_one_winner(url: str, tmp_path: Path) -> None:
    said = race(
        url,
        tmp_path,
        hopeless,
        Side(redrives, meets="run.redrive", prepare=dead),
        Side(discards, meets="run.discard", prepare=dead),
        rounds=FEW,
    )

    assert set(Counter(said)) == {("redriven", "too late"), ("too late", "discarded")}
    with open_journal(url) as journal:
        for number, (redriven, _) in enumerate(said):
            run, asked = journal.runs.get(thread_of(number)), journal.approvals.of_thread(thread_of(number))
            taken_up = redriven == "redriven"
            assert (run.state, run.discarded_by) == (("admitted", None) if taken_up else ("dead", "bob"))
            assert [one.state for one in asked] == ["pending" if taken_up else "withdrawn"]
        assert list(journal.audit.verify()) == []


def decides(graph: DurableGraph, number: int) -> str:
    [asked] = graph.journal.approvals.of_thread(thread_of(number))
    try:
        graph.journal.approvals.decide(asked.id, {"type": "approve"}, principal="ann")
    except AlreadyDecided:
        return "too late"
    return "decided"


def test_a_decision_against_a_discard_is_recorded_or_told_that_it_is_late(url: str, tmp_path: Path) -> None:
    """Both lock the question first and then the run, so neither waits for the other for ever."""
    said = race(
        url,
        tmp_path,
        hopeless,
        Side(decides, meets="approval.decide", prepare=dead),
        Side(discards, meets="run.discard", prepare=dead),
        rounds=FEW,
    )

    assert set(Counter(said)) == {("decided", "discarded"), ("too late", "discarded")}
    with open_journal(url) as journal:
        for number, (decided, _) in enumerate(said):
            [asked] = journal.approvals.of_thread(thread_of(number))
            assert asked.state == ("decided" if decided == "decided" else "withdrawn")
        assert list(journal.audit.verify()) == []
