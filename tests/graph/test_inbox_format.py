"""A graph that asks in Agent Inbox's form: the answer is checked against what its config allows before it is recorded."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from checkpointing import Journal
from checkpointing.errors import DecisionInvalid
from graph import DurableGraph, DurableState, answer, durable, thread

THREAD = thread("claim-1", principal="intake")
ADJUSTER = thread("claim-1", principal="adjuster-17")
PAYOUT: dict[str, Any] = {"amount": 184_000, "payee": "acct_1", "urgent": False}
ALL = {"allow_accept": True, "allow_edit": True, "allow_respond": True, "allow_ignore": True}
FORMS = ("alone", "in a list")


class State(DurableState):
    answered: list[Any]


def asking(
    journal: Journal, form: str, config: dict[str, Any], args: dict[str, Any] | None = PAYOUT
) -> tuple[DurableGraph, Any]:
    """Park a graph at its question; return it and the interrupt."""
    request = {"action_request": {"action": "payout", "args": args}, "config": config, "description": "Pay?"}

    def ask(state: State) -> dict[str, Any]:
        return {"answered": interrupt(request if form == "alone" else [request])}

    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    graph = durable(builder, journal)
    [asked] = graph.invoke({}, THREAD)["__interrupt__"]
    return graph, asked


def edited(**arguments: Any) -> dict[str, Any]:
    return {"type": "edit", "args": {"action": "payout", "args": arguments}}


TAKEN: dict[str, tuple[Any, Any]] = {
    "accept": ({"type": "accept", "args": None}, {"type": "accept", "args": None}),
    "accept with what was shown": (
        {"type": "accept", "args": {"action": "payout", "args": {"amount": "9"}}},
        {"type": "accept", "args": {"action": "payout", "args": PAYOUT}},
    ),
    "edit": (
        edited(amount="150000", payee="acct_2", urgent="true"),
        edited(amount=150_000, payee="acct_2", urgent=True),
    ),
    "response": ({"type": "response", "args": "ask them"}, {"type": "response", "args": "ask them"}),
    "ignore": ({"type": "ignore", "args": None}, {"type": "ignore", "args": None}),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("given", "got"), TAKEN.values(), ids=TAKEN.keys())
def test_the_node_gets_the_answer_on_what_it_asked_itself(journal: Journal, form: str, given: Any, got: Any) -> None:
    graph, asked = asking(journal, form, ALL)
    result = graph.invoke(answer(asked, [given]), ADJUSTER)

    assert result["answered"] == [got]
    assert journal.runs.get("claim-1").state == "done"


BAD: dict[str, Any] = {
    "no list": {"type": "accept", "args": None},
    "two": [{"type": "accept", "args": None}, {"type": "ignore", "args": None}],
    "none": [],
    "a type that there is not": [{"type": "approve", "args": None}],
    "no type": [{"args": None}],
    "another action": [{"type": "accept", "args": {"action": "close", "args": PAYOUT}}],
    "an edit of another action": [{"type": "edit", "args": {"action": "close", "args": PAYOUT}}],
    "an edit without an action": [{"type": "edit", "args": {"args": PAYOUT}}],
    "an edit without arguments": [{"type": "edit", "args": None}],
    "an edit as text": [{"type": "edit", "args": "amount 5"}],
    "an amount in words": [edited(amount="a lot", payee="acct_1", urgent=False)],
    "an amount with a comma": [edited(amount="1,840.00", payee="acct_1", urgent=False)],
    "a key too many": [edited(**PAYOUT, iban="DE1")],
    "a key that is gone": [edited(amount="5")],
    "an amount that JSON readers disagree about": [edited(amount="9007199254740993", payee="a", urgent=False)],
    "a response without text": [{"type": "response", "args": None}],
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_what_does_not_fit_is_not_recorded(journal: Journal, bad: Any) -> None:
    graph, asked = asking(journal, "in a list", ALL)
    with pytest.raises(DecisionInvalid):
        graph.invoke(answer(asked, bad), ADJUSTER)

    assert [row.state for row in journal.approvals.of_thread("claim-1")] == ["pending"]


@pytest.mark.parametrize("kind", ["accept", "edit", "response", "ignore"])
def test_a_type_that_the_config_does_not_allow_is_not_recorded(journal: Journal, kind: str) -> None:
    key = {"accept": "allow_accept", "edit": "allow_edit", "response": "allow_respond", "ignore": "allow_ignore"}[kind]
    graph, asked = asking(journal, "alone", {**ALL, key: False})
    with pytest.raises(DecisionInvalid, match=kind):
        graph.invoke(answer(asked, [TAKEN[kind][0]]), ADJUSTER)

    assert [row.state for row in journal.approvals.of_thread("claim-1")] == ["pending"]


def test_an_action_without_arguments_has_none_that_are_edited(journal: Journal) -> None:
    graph, asked = asking(journal, "alone", ALL, args=None)
    with pytest.raises(DecisionInvalid, match="none to be edited"):
        graph.invoke(answer(asked, [edited(amount=5)]), ADJUSTER)
    result = graph.invoke(answer(asked, [{"type": "accept", "args": {"action": "payout", "args": {"a": 1}}}]), ADJUSTER)

    assert result["answered"] == [{"type": "accept", "args": {"action": "payout", "args": None}}]
