"""Agent Inbox's form, in both directions: what comes back from it decides about our own record, never about the text that it returned."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from checkpointing import Approval, Journal
from checkpointing.errors import DecisionInvalid, PayloadChanged
from graph import DurableGraph, DurableState, durable, thread
from nodes import EffectTools, approval_node, effect_node
from service.agent_inbox import as_agent_inbox, command_of, decision_of
from tests.support.bank import Bank
from tests.support.scripted import ScriptedModel, calls

THREAD = thread("claim-1", principal="intake")
ADJUSTER = thread("claim-1", principal="adjuster-17")
PAYOUT: dict[str, Any] = {"claim_id": "1", "amount": 184_000}
KINDS = ("approve", "edit", "reject", "respond")
ACCEPT, IGNORE = [{"type": "accept", "args": None}], [{"type": "ignore", "args": None}]

Asked = tuple[DurableGraph, Approval]


class State(DurableState):
    answered: Any


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank(tmp_path / "bank")


@pytest.fixture
def own(journal: Journal, bank: Bank) -> Callable[..., Asked]:
    """Parks a graph that pays what an approval of our own lets it pay."""

    def ask(payload: dict[str, Any] = PAYOUT, **options: Any) -> Asked:
        node = approval_node("payout", journal, payload=lambda _: payload, **{"allowed": KINDS, **options})
        builder = StateGraph(State)
        builder.add_node("approve", node)
        builder.add_node("pay", effect_node(bank.effect(), journal, approval="payout"))
        builder.add_edge(START, "approve")
        builder.add_conditional_edges(
            "approve", lambda s: "pay" if s["approvals"]["payout"]["type"] in KINDS[:2] else "__end__"
        )
        return parked(durable(builder, journal))

    return ask


@pytest.fixture
def reviewed(journal: Journal, bank: Bank, tmp_path: Path) -> Callable[..., Asked]:
    """Parks an agent that wants to pay, under LangChain's review."""

    def ask(mode: Any, allowed: tuple[str, ...] = KINDS) -> Asked:
        review: Any = HumanInTheLoopMiddleware({"pay": {"allowed_decisions": list(allowed)}}, interrupt_mode=mode)  # type: ignore[list-item]
        model = ScriptedModel(script=[calls(("c1", "pay", PAYOUT))], file=tmp_path / "asked")
        return parked(durable(create_agent(model, middleware=[review, EffectTools(journal, [bank.effect()])]), journal))

    return ask


def parked(graph: DurableGraph) -> Asked:
    given = {} if "answered" in graph.compiled.channels else {"messages": [{"role": "user", "content": "pay"}]}
    graph.invoke(given, THREAD)
    [row] = graph.journal.approvals.pending()
    return graph, row


def edit(action: str, **arguments: Any) -> list[dict[str, Any]]:
    return [{"type": "edit", "args": {"action": action, "args": arguments}}]


def test_our_own_approval_in_its_form(own: Callable[..., Asked]) -> None:
    about = {"title": "Claim 1", "why": "over the [limit](http://x)", "said": ["pay it"]}
    _, approval = own(allowed=("approve", "edit", "reject"), about=lambda _: about, ttl=timedelta(days=3))
    shown = as_agent_inbox(approval)

    assert shown
    assert shown["action_request"] == {"action": "payout", "args": PAYOUT}
    assert shown["config"] == {"allow_accept": True, "allow_edit": True, "allow_respond": False, "allow_ignore": True}
    assert shown["description"].startswith("Claim 1\n\nover the \\[limit\\]\\(http\\:\\/\\/x\\)\n\nUntil ")


def test_an_accept_approves_what_was_shown_whatever_came_back_with_it(own: Callable[..., Asked], bank: Bank) -> None:
    graph, approval = own()
    returned = [{"type": "accept", "args": {"action": "payout", "args": {"claim_id": "7", "amount": "1"}}}]
    graph.invoke(command_of(approval, returned), ADJUSTER)

    assert decision_of(approval, returned) == {"type": "approve", "payload_hash": approval.payload_hash}
    assert [(call["claim_id"], call["amount"]) for call in bank.calls] == [("1", 184_000)]


def test_an_edits_text_is_read_as_the_kinds_that_were_shown(own: Callable[..., Asked], bank: Bank) -> None:
    graph, approval = own()
    graph.invoke(command_of(approval, edit("payout", claim_id="1", amount="150000")), ADJUSTER)

    assert [call["amount"] for call in bank.calls] == [150_000]


def test_ignoring_rejects_and_a_response_responds(own: Callable[..., Asked], journal: Journal, bank: Bank) -> None:
    graph, approval = own()
    said = decision_of(approval, [{"type": "response", "args": "call them"}])
    graph.invoke(command_of(approval, IGNORE), ADJUSTER)

    assert said == {"type": "respond", "value": "call them", "payload_hash": approval.payload_hash}
    assert (journal.approvals.get(approval.id).decision or {})["type"] == "reject"
    assert bank.calls == []


BAD: dict[str, Any] = {
    "another action": edit("close", claim_id="1", amount="5"),
    "an accept of another action": [{"type": "accept", "args": {"action": "close", "args": PAYOUT}}],
    "no number": edit("payout", claim_id="1", amount="5 euros"),
    "a number that leaves doubt": edit("payout", claim_id="1", amount="1.840,00"),
    "a key too many": edit("payout", claim_id="1", amount="5", payee="me"),
    "a key that is gone": edit("payout", amount="5"),
    "a principal of its own": [{"type": "accept", "principal": "boss"}, {"type": "accept"}],
    "no type of its own": [{"type": "approve", "args": None}],
    "no list": {"type": "accept", "args": None},
    "nothing": None,
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_an_answer_that_does_not_fit_decides_nothing(own: Callable[..., Asked], journal: Journal, bad: Any) -> None:
    _, approval = own()
    with pytest.raises(DecisionInvalid):
        decision_of(approval, bad)

    assert journal.approvals.get(approval.id).state == "pending"


@pytest.mark.parametrize("kind", ["accept", "edit", "response", "ignore"])
def test_a_type_that_the_approval_does_not_take_is_refused(own: Callable[..., Asked], kind: str) -> None:
    left_out = {"accept": "approve", "edit": "edit", "response": "respond", "ignore": "reject"}[kind]
    _, approval = own(allowed=tuple(one for one in KINDS if one != left_out))
    given: Any = {"accept": ACCEPT, "edit": edit("payout", **PAYOUT), "ignore": IGNORE}.get(kind)

    with pytest.raises(DecisionInvalid, match=kind):
        decision_of(approval, given or [{"type": "response", "args": "no"}])


def test_an_answer_to_what_was_shown_approves_nothing_that_came_in_its_place(
    own: Callable[..., Asked], journal: Journal, bank: Bank
) -> None:
    """The form is open in a browser while the payload changes."""
    payload = dict(PAYOUT)
    graph, shown = own(payload)
    payload["amount"] = 900_000
    graph.compiled.invoke(None, THREAD)
    [asked_now] = journal.approvals.pending()
    with pytest.raises(PayloadChanged, match=asked_now.id):
        graph.invoke(command_of(shown, ACCEPT), ADJUSTER)
    with pytest.raises(PayloadChanged):
        journal.approvals.decide(asked_now.id, decision_of(shown, ACCEPT), principal="adjuster-17")

    assert bank.calls == []


@pytest.mark.parametrize("mode", ["batched", "per_call"])
def test_one_call_under_langchains_review_in_its_form(reviewed: Callable[..., Asked], mode: str) -> None:
    _, row = reviewed(mode, ("approve", "reject"))
    shown = as_agent_inbox(row)

    assert shown
    assert shown["action_request"] == {"action": "pay", "args": PAYOUT}
    assert shown["config"] == {"allow_accept": True, "allow_edit": False, "allow_respond": False, "allow_ignore": True}
    with pytest.raises(DecisionInvalid, match="edit"):
        decision_of(row, edit("pay", **PAYOUT))


@pytest.mark.parametrize("recorded", ["by command", "by decision"])
@pytest.mark.parametrize("mode", ["batched", "per_call"])
@pytest.mark.parametrize(
    ("given", "paid"),
    [
        (ACCEPT, [184_000]),
        (edit("pay", claim_id="1", amount="5"), [5]),
        (IGNORE, []),
        ([{"type": "response", "args": "paid in cash"}], []),
    ],
    ids=["accept", "edit", "ignore", "response"],
)
def test_its_answer_decides_about_the_call(
    reviewed: Callable[..., Asked], journal: Journal, bank: Bank, mode: str, given: Any, paid: list[int], recorded: str
) -> None:
    graph, row = reviewed(mode)
    if recorded == "by command":
        graph.invoke(command_of(row, given), ADJUSTER)
    else:
        journal.approvals.decide(row.id, decision_of(row, given), principal="adjuster-17")
        graph.invoke(None, ADJUSTER)

    assert [call["amount"] for call in bank.calls] == paid
    assert journal.runs.get("claim-1").state == "done"


@pytest.mark.parametrize("mode", ["batched", "per_call"])
@pytest.mark.parametrize("bad", [edit("remind", **PAYOUT), edit("pay", claim_id="1", amount="five")])
def test_nor_may_its_answer_switch_tools_or_leave_doubt(reviewed: Callable[..., Asked], mode: str, bad: Any) -> None:
    _, row = reviewed(mode)

    with pytest.raises(DecisionInvalid):
        decision_of(row, bad)


def asks(journal: Journal, value: Any) -> Asked:
    def ask(state: State) -> dict[str, Any]:
        return {"answered": interrupt(value)}

    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    return parked(durable(builder, journal))


def test_a_question_in_its_own_form_is_shown_as_it_was_asked(journal: Journal) -> None:
    request = {
        "action_request": {"action": "payout", "args": PAYOUT},
        "config": {"allow_accept": True, "allow_edit": True, "allow_respond": False, "allow_ignore": False},
    }
    graph, row = asks(journal, [request])
    result = graph.invoke(command_of(row, edit("payout", claim_id="2", amount="7")), ADJUSTER)

    assert as_agent_inbox(row) == request
    assert result["answered"] == edit("payout", claim_id="2", amount=7)


@pytest.mark.parametrize("value", ["how much?", {"question": "how much?"}, ["a", "b"], None])
def test_a_question_that_its_form_has_no_place_for_is_not_shown_in_it(journal: Journal, value: Any) -> None:
    _, row = asks(journal, value)

    assert as_agent_inbox(row) is None
    with pytest.raises(DecisionInvalid, match="no place"):
        decision_of(row, ACCEPT)


def test_several_calls_at_once_are_not_shown_in_it(journal: Journal, bank: Bank, tmp_path: Path) -> None:
    script = [calls(("c1", "pay", PAYOUT), ("c2", "pay", {**PAYOUT, "claim_id": "2"}))]
    model = ScriptedModel(script=script, file=tmp_path / "asked")
    review: Any = HumanInTheLoopMiddleware({"pay": True})
    agent = create_agent(model, middleware=[review, EffectTools(journal, [bank.effect()])])
    _, row = parked(durable(agent, journal))

    assert as_agent_inbox(row) is None
    with pytest.raises(DecisionInvalid, match="no place"):
        decision_of(row, ACCEPT)
