"""Approvals where their question could be taken for another's: refused, and never an answer to what nobody saw."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send, interrupt
from typing_extensions import TypedDict

from checkpointing import Journal
from checkpointing.errors import (
    AlreadyDecided,
    CounterfoilError,
    DecisionInvalid,
    GraphRefused,
    NotAllowed,
    SlotAmbiguous,
)
from graph import DurableGraph, DurableState, answer, approve, durable, edit, thread
from nodes import approval_node

THREAD = thread("t")
ADJUSTER = thread("t", principal="adjuster-17")


class State(DurableState):
    items: list[int]
    n: int
    verdict: dict[str, Any]


class Bare(TypedDict, total=False):
    n: int
    verdict: dict[str, Any]


def asking(journal: Journal, state: type = State) -> StateGraph[Any, Any, Any, Any]:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(state)
    builder.add_node("ask", approval_node("ok", journal, payload=lambda s: {"n": s["n"]}, into="verdict"))
    builder.add_edge(START, "ask")
    return builder


def sending(journal: Journal, node: Any) -> DurableGraph:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("ask", node)
    builder.add_conditional_edges(START, lambda state: [Send("ask", {"n": n}) for n in state["items"]], ["ask"])
    return durable(builder, journal)


def test_an_approval_node_is_not_sent_to(journal: Journal) -> None:
    graph = sending(journal, approval_node("ok", journal, payload=lambda s: {"n": s["n"]}))

    with pytest.raises(GraphRefused, match="sent to"):
        graph.invoke({"items": [1, 2]}, THREAD)
    assert journal.runs.get("t").state == "dead"
    assert journal.approvals.pending() == []


@pytest.mark.parametrize("items", [[1, 2], [1, 1]])
def test_a_graph_with_an_approval_that_is_sent_to_twice_is_ambiguous(journal: Journal, items: list[int]) -> None:
    graph = sending(journal, asking(journal).compile())

    with pytest.raises(SlotAmbiguous):
        graph.invoke({"items": items}, THREAD)
    assert journal.runs.get("t").state == "dead"


def test_a_graph_without_the_channel_cannot_ask(journal: Journal) -> None:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("review", asking(journal, Bare).compile())
    builder.add_edge(START, "review")

    with pytest.raises(GraphRefused, match="review/ask"):
        durable(builder, journal)


def test_a_question_asked_again_inside_a_function_is_not_answered_by_the_first(journal: Journal) -> None:
    inner = asking(journal).compile()

    def review(state: State) -> dict[str, Any]:
        inner.invoke({"n": 1})
        return {"n": state["n"] + 1}

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("review", review)
    builder.add_edge(START, "review")
    builder.add_conditional_edges("review", lambda state: "review" if state["n"] < 3 else END)
    graph = durable(builder, journal)
    [asked] = graph.invoke({"n": 0}, THREAD)["__interrupt__"]

    with pytest.raises(SlotAmbiguous, match="two visits"):
        graph.invoke(approve(asked), ADJUSTER)
    assert [row.state for row in journal.approvals.of_thread("t")] == ["decided"]


def test_a_question_asked_again_is_not_answered_by_the_first_under_another_checkpointer_too(journal: Journal) -> None:
    inner = asking(journal).compile()

    def review(state: State) -> dict[str, Any]:
        inner.invoke({"n": 1})
        return {"n": state["n"] + 1}

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("review", review)
    builder.add_edge(START, "review")
    builder.add_conditional_edges("review", lambda state: "review" if state["n"] < 3 else END)
    graph = builder.compile(checkpointer=InMemorySaver())
    [asked] = graph.invoke({"n": 0}, THREAD)["__interrupt__"]
    journal.approvals.decide(asked.value["id"], {"type": "approve"}, principal="adjuster-17")

    with pytest.raises(SlotAmbiguous, match="two visits"):
        graph.invoke(None, THREAD)
    assert [row.state for row in journal.approvals.of_thread("t")] == ["decided"]


def test_on_a_server_the_principal_is_its_user_and_never_what_a_client_sets(journal: Journal) -> None:
    graph = asking(journal).compile(checkpointer=InMemorySaver())
    on_server = {"thread_id": "t", "langgraph_auth_user": {"identity": "ada"}}
    [asked] = graph.invoke({"n": 0}, {"configurable": on_server})["__interrupt__"]

    for set_by_client in ({"__counterfoil_principal": "mallory"}, {"langgraph_auth_user": None}):
        with pytest.raises(NotAllowed):
            graph.invoke(approve(asked), {"configurable": {**on_server, **set_by_client}})
    graph.invoke(approve(asked), {"configurable": {**on_server, "__counterfoil_lease": {"name": "thread:t"}}})
    [approval] = journal.approvals.of_thread("t")
    assert (approval.state, approval.decided_by) == ("decided", "ada")


def test_an_edit_fits_its_schema(journal: Journal) -> None:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    schema = {"properties": {"n": {"minimum": 1, "maximum": 10}, "payee": {"const": "acct_a"}}}
    asks = approval_node(
        "ok",
        journal,
        payload=lambda s: {"n": s["n"], "payee": "acct_a"},
        allowed=("approve", "edit"),
        edits=schema,
        into="verdict",
    )
    builder.add_node("ask", asks)
    builder.add_edge(START, "ask")
    graph = durable(builder, journal)
    [asked] = graph.invoke({"n": 5}, THREAD)["__interrupt__"]
    assert asked.value["edits"] == schema
    for payload, place in (({"n": 0, "payee": "acct_a"}, "$.n"), ({"n": 5, "payee": "acct_evil"}, "$.payee")):
        with pytest.raises(DecisionInvalid, match=place.replace("$", r"\$")):
            graph.invoke(edit(asked, payload), ADJUSTER)

    assert graph.invoke(edit(asked, {"n": 7, "payee": "acct_a"}), ADJUSTER)["verdict"]["payload"]["n"] == 7


def test_an_answer_that_looks_like_a_decision_reaches_the_graphs_own_interrupt(journal: Journal) -> None:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("ask", lambda state: {"verdict": interrupt("ok?")})
    builder.add_edge(START, "ask")
    graph = durable(builder, journal)
    [asked] = graph.invoke({"n": 0}, THREAD)["__interrupt__"]

    assert graph.invoke(answer(asked, {"approval": "yes"}), ADJUSTER)["verdict"] == {"approval": "yes"}


def test_two_batches_of_decisions_do_not_deadlock(journal: Journal) -> None:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for name in ("left", "right"):
        builder.add_node(name, approval_node(name, journal, payload=lambda s: {"n": s["n"]}))
        builder.add_edge(START, name)
    graph = durable(builder, journal)
    raised: list[BaseException] = []

    def decide(ids: list[str], who: str, barrier: threading.Barrier) -> None:
        barrier.wait(30)
        try:
            journal.approvals.decide_all([(one, {"type": "approve"}) for one in ids], principal=who)
        except CounterfoilError as error:
            raised.append(error)

    for number in range(25):
        config = thread(f"t-{number}")
        ids = [one.value["id"] for one in graph.invoke({"n": 1}, config)["__interrupt__"]]
        barrier = threading.Barrier(3)
        threads = [
            threading.Thread(target=decide, args=(chosen, who, barrier))
            for chosen, who in ((ids, "a"), (ids[::-1], "b"), (ids[1:], "c"))
        ]
        for one in threads:
            one.start()
        for one in threads:
            one.join(30)

    assert {type(error) for error in raised} == {AlreadyDecided}


@pytest.mark.parametrize(
    "schema", [{"type": "numbr"}, {"properties": {"n": {"minimum": "3"}}}, {"properties": {"n": {"pattern": "("}}}]
)
def test_what_is_no_schema_is_refused_before_anybody_is_asked(journal: Journal, schema: dict[str, Any]) -> None:
    with pytest.raises(GraphRefused, match="JSON Schema"):
        approval_node("ok", journal, payload=lambda s: {"n": 1}, allowed=("edit",), edits=schema)
    node = approval_node("ok", journal, payload=lambda s: {"n": 1}, allowed=("edit",), edits=lambda s: schema)
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("ask", node)
    builder.add_edge(START, "ask")
    with pytest.raises(GraphRefused, match="JSON Schema"):
        durable(builder, journal).invoke({"n": 5}, THREAD)


def test_a_schema_that_cannot_be_applied_refuses_the_edit_and_fetches_nothing(journal: Journal) -> None:
    schema = {"$ref": "http://127.0.0.1:9/schema"}
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    asks = approval_node(
        "ok", journal, payload=lambda s: {"s": "x"}, allowed=("approve", "edit"), edits=lambda s: schema
    )
    builder.add_node("ask", asks)
    builder.add_edge(START, "ask")
    graph = durable(builder, journal)
    [asked] = graph.invoke({"n": 5}, THREAD)["__interrupt__"]

    with pytest.raises(DecisionInvalid, match="cannot be applied"):
        graph.invoke(edit(asked, {"s": "y"}), ADJUSTER)
    graph.invoke(approve(asked), ADJUSTER)
    assert journal.runs.get("t").state == "done"


@pytest.mark.parametrize(
    ("shown", "edited", "taken"),
    [(1200.0, 1000, True), (1200.0, 10.5, True), (5, 5.5, False), (5, True, False), (None, "x", True), ("x", 5, False)],
)
def test_an_edit_keeps_the_kind_of_a_value_as_json_has_kinds(
    journal: Journal, shown: Any, edited: Any, taken: bool
) -> None:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    asks = approval_node("ok", journal, payload=lambda s: {"v": shown}, allowed=("approve", "edit"), into="verdict")
    builder.add_node("ask", asks)
    builder.add_edge(START, "ask")
    graph = durable(builder, journal)
    [asked] = graph.invoke({"n": 5}, THREAD)["__interrupt__"]
    if taken:
        assert graph.invoke(edit(asked, {"v": edited}), ADJUSTER)["verdict"]["payload"] == {"v": edited}
        return
    with pytest.raises(DecisionInvalid, match="must keep"):
        graph.invoke(edit(asked, {"v": edited}), ADJUSTER)
