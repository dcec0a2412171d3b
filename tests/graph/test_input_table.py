"""What each kind of input does, row by row of the design's table, in all four calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command

from checkpointing import Journal
from checkpointing.errors import (
    AlreadyDecided,
    DecisionInvalid,
    InputChanged,
    InputRefused,
    NotAllowed,
    PayloadChanged,
    UnknownApproval,
    UnknownThread,
)
from graph import DurableGraph, DurableState, answer, approve, durable, edit, reject, thread
from nodes import approval_node, effect_node
from tests.support.bank import Bank

INPUT = {"claim_id": "0042", "amount": 184_000}
ADJUSTER = thread("claim-0042", principal="adjuster-17")
THREAD = thread("claim-0042")


class State(DurableState):
    claim_id: str
    amount: int
    payment: dict[str, Any]
    outcome: str


def close(state: State) -> dict[str, Any]:
    return {"outcome": state["approvals"]["payout"]["type"]}


def claims(journal: Journal, bank: Bank, **options: Any) -> DurableGraph:
    """A claim that is paid when somebody approves it."""
    builder = StateGraph(State)
    asks = approval_node(
        "payout",
        journal,
        payload=lambda s: {"claim_id": s["claim_id"], "amount": s["amount"]},
        allowed=("approve", "edit", "reject"),
    )
    builder.add_node("approve", asks)
    builder.add_node("pay", effect_node(bank.effect(), journal, into="payment", approval="payout"))
    builder.add_node("close", close)
    builder.add_edge(START, "approve")
    builder.add_edge("approve", "pay")
    builder.add_edge("pay", "close")
    builder.add_edge("close", END)
    return durable(builder, journal, **options)


Caller = Callable[[DurableGraph, Any, Any], Any]


def by_invoke(graph: DurableGraph, given: Any, config: Any) -> Any:
    return graph.invoke(given, config)


def by_ainvoke(graph: DurableGraph, given: Any, config: Any) -> Any:
    return asyncio.run(graph.ainvoke(given, config))


def by_stream(graph: DurableGraph, given: Any, config: Any) -> Any:
    for _ in graph.stream(given, config):
        pass
    return graph.invoke(None, config)


def by_astream(graph: DurableGraph, given: Any, config: Any) -> Any:
    async def consume() -> None:
        async for _ in graph.astream(given, config):
            pass

    asyncio.run(consume())
    return graph.invoke(None, config)


@pytest.fixture(params=[by_invoke, by_ainvoke, by_stream, by_astream])
def call(request: pytest.FixtureRequest) -> Caller:
    """Each of the four calls."""
    caller: Caller = request.param
    return caller


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank(tmp_path / "bank")


@pytest.fixture
def graph(journal: Journal, bank: Bank) -> DurableGraph:
    return claims(journal, bank)


def asked(state: dict[str, Any]) -> dict[str, Any]:
    """What the parked run asks."""
    request: dict[str, Any] = state["__interrupt__"][0].value
    return request


def test_a_claim_is_paid_once_after_it_was_approved(graph: DurableGraph, bank: Bank, call: Caller) -> None:
    parked = call(graph, INPUT, THREAD)
    assert graph.journal.runs.get("claim-0042").state == "parked"
    done = call(graph, approve(asked(parked)), ADJUSTER)

    assert done["payment"] == {"paid": 184_000, "key": done["payment"]["key"]}
    assert done["outcome"] == "approve"
    assert graph.journal.runs.get("claim-0042").state == "done"
    assert len(bank.calls) == 1
    assert list(graph.journal.audit.verify()) == []


def test_submitting_the_same_input_again_continues_or_returns_the_result(
    graph: DurableGraph, bank: Bank, call: Caller
) -> None:
    first = call(graph, INPUT, THREAD)
    again = call(graph, dict(reversed(INPUT.items())), THREAD)
    assert asked(first) == asked(again)
    done = call(graph, approve(asked(first)), ADJUSTER)

    assert call(graph, INPUT, THREAD)["payment"] == done["payment"]
    assert len(bank.calls) == 1


def test_other_input_under_a_used_thread_is_refused(graph: DurableGraph, call: Caller) -> None:
    call(graph, INPUT, THREAD)
    before = graph.journal.audit.entries("claim-0042")

    with pytest.raises(InputChanged, match=r"claim-0042.*submission=\.\.\.\), and durable\(\.\.\., turns=True\)"):
        call(graph, {**INPUT, "amount": 1}, THREAD)
    assert graph.journal.audit.entries("claim-0042") == before


def test_none_leaves_a_parked_run_parked(graph: DurableGraph, bank: Bank, call: Caller) -> None:
    parked = call(graph, INPUT, THREAD)
    nudged = call(graph, None, THREAD)

    assert asked(nudged) == asked(parked)
    assert graph.journal.runs.get("claim-0042").state == "parked"
    assert bank.calls == []


def test_none_on_a_done_run_returns_the_result(graph: DurableGraph, bank: Bank, call: Caller) -> None:
    done = call(graph, approve(asked(call(graph, INPUT, THREAD))), ADJUSTER)

    assert call(graph, None, THREAD)["payment"] == done["payment"]
    assert len(bank.calls) == 1


@pytest.mark.parametrize("given", [None, Command(resume={"approval": "apr_1", "type": "approve"})])
def test_an_unknown_thread_is_named(graph: DurableGraph, given: Any, call: Caller) -> None:
    with pytest.raises(UnknownThread, match="nobody"):
        call(graph, given, thread("nobody", principal="adjuster-17"))
    assert graph.journal.runs.list() == []


def test_a_rejected_claim_is_not_paid(graph: DurableGraph, bank: Bank, call: Caller) -> None:
    done = call(graph, reject(asked(call(graph, INPUT, THREAD)), "no receipt"), ADJUSTER)

    assert done["outcome"] == "reject"
    assert done["approvals"]["payout"]["reason"] == "no receipt"
    assert done["effects"]["pay.0"]["state"] == "skipped"
    assert bank.calls == []
    assert graph.journal.runs.get("claim-0042").state == "done"


def test_what_an_edit_made_of_the_payload_is_what_is_paid(graph: DurableGraph, bank: Bank, call: Caller) -> None:
    request = asked(call(graph, INPUT, THREAD))
    call(graph, edit(request, {"claim_id": "0042", "amount": 100_000}), ADJUSTER)

    assert [call["amount"] for call in bank.calls] == [100_000]


def test_a_second_decision_is_told_who_won(graph: DurableGraph, bank: Bank, call: Caller) -> None:
    request = asked(call(graph, INPUT, THREAD))
    call(graph, approve(request), ADJUSTER)

    with pytest.raises(AlreadyDecided, match="adjuster-17") as told:
        call(graph, reject(request), thread("claim-0042", principal="adjuster-18"))
    assert told.value.decided_by == "adjuster-17"
    assert told.value.decision == {"type": "approve"}
    assert len(bank.calls) == 1


@pytest.mark.parametrize("resume", ["yes", True, {"type": "approve"}, {}, ["approve"], {"approval": ""}, None])
def test_a_resume_that_names_nothing_is_refused(graph: DurableGraph, resume: Any, call: Caller) -> None:
    call(graph, INPUT, THREAD)

    with pytest.raises(DecisionInvalid, match="must name what it answers"):
        call(graph, Command(resume=resume), ADJUSTER)
    assert graph.journal.approvals.pending()[0].state == "pending"


def test_a_decision_needs_a_principal(graph: DurableGraph, call: Caller) -> None:
    request = asked(call(graph, INPUT, THREAD))

    with pytest.raises(NotAllowed, match="principal"):
        call(graph, approve(request), THREAD)
    assert graph.journal.approvals.get(request["id"]).state == "pending"


def test_the_submitter_may_not_approve(graph: DurableGraph, call: Caller) -> None:
    request = asked(call(graph, INPUT, thread("claim-0042", principal="clerk-1")))

    with pytest.raises(NotAllowed, match="clerk-1"):
        call(graph, approve(request), thread("claim-0042", principal="clerk-1"))


def test_a_decision_on_another_payload_is_refused(graph: DurableGraph, bank: Bank, call: Caller) -> None:
    request = asked(call(graph, INPUT, THREAD))
    with pytest.raises(PayloadChanged, match="look at it again"):
        call(graph, approve({**request, "payload_hash": "0" * 64}), ADJUSTER)

    assert graph.journal.approvals.get(request["id"]).state == "pending"
    assert bank.calls == []


def test_a_mistyped_approval_is_named(graph: DurableGraph, call: Caller) -> None:
    call(graph, INPUT, THREAD)

    with pytest.raises(UnknownApproval, match=r"apr_oops.*what waits there: apr_"):
        call(graph, Command(resume={"approval": "apr_oops", "type": "approve"}), ADJUSTER)


def test_an_interrupt_id_map_must_name_our_approval_all_the_same(graph: DurableGraph, bank: Bank, call: Caller) -> None:
    interrupt = call(graph, INPUT, THREAD)["__interrupt__"][0]
    with pytest.raises(DecisionInvalid, match=interrupt.value["id"]):
        call(graph, answer(interrupt, {"type": "approve"}), ADJUSTER)

    call(graph, answer(interrupt, {"approval": interrupt.value["id"], "type": "approve"}), ADJUSTER)
    assert len(bank.calls) == 1


def test_input_that_the_graph_has_not_is_refused(graph: DurableGraph, call: Caller) -> None:
    """LangGraph drops it without a word."""
    with pytest.raises(InputRefused, match="input has no 'amuont'"):
        call(graph, {**INPUT, "amuont": 1}, THREAD)

    assert graph.journal.runs.find("claim-0042") is None


def test_a_command_that_updates_or_jumps_is_refused(graph: DurableGraph, call: Caller) -> None:
    call(graph, INPUT, THREAD)

    for command in (
        Command(update={"amount": 1}),
        Command(goto="pay"),
        Command(resume={"approval": "x"}, goto="pay"),
    ):
        with pytest.raises(InputRefused, match="fork"):
            call(graph, command, ADJUSTER)


def test_a_checkpoint_id_is_refused_and_names_the_way(graph: DurableGraph, call: Caller) -> None:
    call(graph, INPUT, THREAD)
    old = next(iter(graph.get_state_history(THREAD))).config

    with pytest.raises(InputRefused, match=r"replay.*fork"):
        call(graph, None, old)


@pytest.mark.parametrize("given", ["text", 7, ["a"], {"turn": 3}, {"effects": {}}, {"approvals": {"payout": {}}}])
def test_other_input_is_refused(graph: DurableGraph, given: Any, call: Caller) -> None:
    with pytest.raises(InputRefused):
        call(graph, given, THREAD)
    assert graph.journal.runs.list() == []


@pytest.mark.parametrize("thread_id", ["", "a" * 256, "a\x00b", "a\nb", None, 7])
def test_a_thread_id_is_printable_text(graph: DurableGraph, thread_id: Any, call: Caller) -> None:
    with pytest.raises(InputRefused, match="thread id"):
        call(graph, INPUT, {"configurable": {"thread_id": thread_id}})


def test_only_sync_durability_is_taken(graph: DurableGraph) -> None:
    with pytest.raises(InputRefused, match="sync"):
        graph.invoke(INPUT, THREAD, durability="exit")
    assert graph.journal.leases.holder("thread:claim-0042") is None


def test_turns_are_named_submissions(journal: Journal, bank: Bank, call: Caller) -> None:
    graph = claims(journal, bank, turns=True)
    for number, amount in (("one", 100), ("two", 200)):
        named = thread("claim-0042", submission=number)
        parked = call(graph, {"claim_id": "0042", "amount": amount}, named)
        call(graph, approve(asked(parked)), ADJUSTER)
    late = call(graph, {"claim_id": "0042", "amount": 100}, thread("claim-0042", submission="one"))

    assert [call["amount"] for call in bank.calls] == [100, 200]
    assert late["amount"] == 200
    assert journal.runs.get("claim-0042").turn == 2
    with pytest.raises(InputChanged, match=r"thread\(id, submission=\.\.\.\)$"):
        call(graph, {"claim_id": "0042", "amount": 7}, thread("claim-0042", submission="two"))
    with pytest.raises(InputChanged):
        call(graph, {"claim_id": "0042", "amount": 7}, THREAD)


def test_a_turn_begins_when_the_last_one_is_done(journal: Journal, bank: Bank, call: Caller) -> None:
    """LangGraph would discard the question and start over."""
    graph = claims(journal, bank, turns=True)
    request = asked(call(graph, INPUT, thread("claim-0042", submission="first")))
    before = journal.runs.get("claim-0042")
    with pytest.raises(InputRefused, match="a new turn begins when it is done"):
        call(graph, {**INPUT, "amount": 7}, thread("claim-0042", submission="second"))

    assert journal.runs.get("claim-0042") == before
    call(graph, approve(request), ADJUSTER)
    assert [one["amount"] for one in bank.calls] == [184_000]
