"""One run's life: what becomes of it when a node fails, a worker dies, a caller leaves, time passes or the code changes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.pregel import _checkpoint
from langgraph.types import Command, interrupt

from checkpointing import Journal
from checkpointing.errors import (
    ApprovalExpired,
    ClockBehind,
    DecisionInvalid,
    EffectNotApproved,
    GraphChanged,
    GraphRefused,
    InputRefused,
    LeaseLost,
    NotAllowed,
    PayloadChanged,
    RunBusy,
    RunDead,
    UnknownApproval,
)
from checkpointing.leases import thread_lease
from graph import DurableGraph, DurableState, answer, approve, durable, edit, reject, thread
from nodes import approval_node, effect_node
from tests.support.bank import Bank
from tests.support.clock import MovingClock
from tools import Receiver, effect

THREAD = thread("claim-0042")
ADJUSTER = thread("claim-0042", principal="adjuster-17")
LEASE = timedelta(seconds=30)
DAY = timedelta(days=1)


class State(DurableState):
    claim_id: str
    amount: int
    rounds: int
    answers: list[Any]
    payment: dict[str, Any]


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank(tmp_path / "bank")


@pytest.fixture
def journal(opened: Callable[..., Journal], clock: MovingClock) -> Journal:
    return opened(clock=clock, lease=LEASE)


def payload(state: Any) -> dict[str, Any]:
    return {"claim_id": state["claim_id"], "amount": state["amount"]}


def asking(journal: Journal, bank: Bank, **options: Any) -> StateGraph[Any, Any, Any, Any]:
    """START ─▶ approve ─▶ pay."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("approve", approval_node("payout", journal, payload=payload, **options))
    builder.add_node("pay", effect_node(bank.effect(), journal, into="payment", approval="payout"))
    builder.add_edge(START, "approve")
    builder.add_edge("approve", "pay")
    return builder


def count(state: State) -> dict[str, Any]:
    return {"rounds": state.get("rounds", 0) + 1}


def single(node: Callable[..., Any], journal: Journal, **options: Any) -> DurableGraph:
    """A graph of one node."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    return durable(builder, journal, **options)


def parked(graph: DurableGraph, **given: Any) -> dict[str, Any]:
    state = graph.invoke({"claim_id": "1", "amount": 5, **given}, THREAD)
    request: dict[str, Any] = state["__interrupt__"][0].value
    return request


# --- failing ---------------------------------------------------------------------------------------------------------


def test_a_node_that_always_fails_ends_as_a_dead_letter(journal: Journal) -> None:
    calls = []

    def poison(state: State) -> dict[str, Any]:
        calls.append(1)
        raise ValueError("poison\nwith details")

    graph = single(poison, journal, attempts=3)
    for _ in range(3):
        with pytest.raises(ValueError, match="poison"):
            graph.invoke({}, THREAD)
    run = journal.runs.get("claim-0042")

    assert (run.state, run.reason, run.error) == ("dead", "attempts", "ValueError: poison")
    with pytest.raises(RunDead, match="poison"):
        graph.invoke({}, THREAD)
    assert len(calls) == 3


def test_a_redrive_goes_on_from_the_last_checkpoint(journal: Journal, bank: Bank) -> None:
    broken = [True]

    def close(state: State) -> dict[str, Any]:
        if broken:
            raise ValueError("the archive is full")
        return {"rounds": 1}

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("pay", effect_node(bank.effect(), journal, arguments=payload, into="payment"))
    builder.add_node("close", close)
    builder.add_edge(START, "pay")
    builder.add_edge("pay", "close")
    graph = durable(builder, journal, attempts=1)
    for _ in range(2):
        with pytest.raises((ValueError, RunDead)):
            graph.invoke({"claim_id": "1", "amount": 5}, THREAD)
    with pytest.raises(NotAllowed):
        journal.runs.redrive("claim-0042", principal="")
    broken.clear()
    journal.runs.redrive("claim-0042", principal="operator-1", reason="emptied the archive")
    done = graph.invoke(None, THREAD)

    assert done["rounds"] == 1
    assert len(bank.calls) == 1
    with pytest.raises(InputRefused, match="only a dead letter"):
        journal.runs.redrive("claim-0042", principal="operator-1")


def test_a_router_that_raises_after_its_node_is_not_taken_for_an_end(journal: Journal, bank: Bank) -> None:
    """LangGraph's next call returns as if nothing were left."""

    def router(state: State) -> str:
        raise LookupError("no such branch")

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("pay", effect_node(bank.effect(), journal, arguments=payload))
    builder.add_node("close", lambda state: {})
    builder.add_edge(START, "pay")
    builder.add_conditional_edges("pay", router, ["close", END])
    graph = durable(builder, journal)
    with pytest.raises(LookupError):
        graph.invoke({"claim_id": "1", "amount": 5}, THREAD)

    for _ in range(10):
        try:
            graph.invoke(None, THREAD)
        except (LookupError, RunDead):
            continue
    assert journal.runs.get("claim-0042").state == "dead"
    assert len(bank.calls) == 1


def test_a_worker_that_dies_costs_one_attempt_and_its_lease_expires(journal: Journal, clock: MovingClock) -> None:
    graph = single(lambda state: {"rounds": 1}, journal)
    journal.runs.admit(graph._advance.accepting._admission({}, "claim-0042", None, ""))
    dead = journal.leases.take(thread_lease("claim-0042"))
    journal.runs.start(dead, "claim-0042", head="")
    with pytest.raises(RunBusy, match="30000 ms"):
        graph.invoke(None, THREAD)
    clock.move(LEASE)
    graph.invoke(None, THREAD)

    run = journal.runs.get("claim-0042")
    assert (run.state, run.resumes) == ("done", 1)
    with pytest.raises(LeaseLost):
        journal.runs.finish(dead, "claim-0042")


def test_a_host_whose_clock_is_behind_changes_nothing(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []

    def node(state: State) -> dict[str, Any]:
        ran.append(1)
        if len(ran) == 1:
            raise ValueError("once")
        return {"rounds": 1}

    graph = single(node, journal)
    with pytest.raises(ValueError, match="once"):
        graph.invoke({}, THREAD)
    head = journal.saver.head("claim-0042")
    with monkeypatch.context() as behind:
        behind.setattr(_checkpoint, "uuid6", lambda clock_seq=None: "1f000000-0000-6000-8000-000000000000")
        for _ in range(3):
            with pytest.raises(ClockBehind, match="clock"):
                graph.invoke(None, THREAD)
    assert journal.saver.head("claim-0042") == head
    assert journal.runs.get("claim-0042").attempts <= 1
    assert graph.invoke(None, THREAD)["rounds"] == 1


# --- leaving ---------------------------------------------------------------------------------------------------------


def test_a_call_that_holds_the_thread_makes_another_busy(journal: Journal) -> None:
    entered, leave = threading.Event(), threading.Event()

    def slow(state: State) -> dict[str, Any]:
        entered.set()
        leave.wait(30)
        return {"rounds": 1}

    graph = single(slow, journal)
    first = threading.Thread(target=lambda: graph.invoke({}, THREAD))
    first.start()
    entered.wait(30)
    with pytest.raises(RunBusy, match="carries on"):
        graph.invoke({}, THREAD)
    leave.set()
    first.join(30)

    assert graph.invoke({}, THREAD)["rounds"] == 1


def test_a_cancelled_ainvoke_gives_its_lease_back(journal: Journal) -> None:
    async def cancelled() -> None:
        entered = asyncio.Event()

        async def slow(state: State) -> dict[str, Any]:
            entered.set()
            await asyncio.sleep(60)
            return {}

        graph = single(slow, journal)
        task = asyncio.create_task(graph.ainvoke({}, THREAD))
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert journal.leases.holder("thread:claim-0042") is None
    assert journal.runs.get("claim-0042").state == "admitted"
    assert single(lambda state: {"rounds": 1}, journal).invoke(None, THREAD)["rounds"] == 1


def test_an_ainvoke_cancelled_at_once_holds_nothing(journal: Journal) -> None:
    graph = single(lambda state: {"rounds": 1}, journal)

    async def cancelled_after(turns: int) -> None:
        task = asyncio.create_task(graph.ainvoke({}, thread(f"t-{turns}")))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    for turns in range(12):
        asyncio.run(cancelled_after(turns))
        assert journal.leases.holder(f"thread:t-{turns}") is None


def test_a_consumer_that_leaves_a_stream_gives_the_run_back(journal: Journal) -> None:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("one", lambda state: {"rounds": 1})
    builder.add_node("two", lambda state: {"rounds": 2})
    builder.add_edge(START, "one")
    builder.add_edge("one", "two")
    graph = durable(builder, journal)
    stream = graph.stream({}, THREAD)
    assert next(stream) == {"one": {"rounds": 1}}
    stream.close()  # type: ignore[attr-defined]  # a generator

    assert journal.leases.holder("thread:claim-0042") is None
    assert journal.runs.get("claim-0042").state == "admitted"
    assert graph.invoke(None, THREAD)["rounds"] == 2


def test_a_consumer_that_pauses_longer_than_the_lease_loses_it(journal: Journal, clock: MovingClock) -> None:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("one", lambda state: {"rounds": 1})
    builder.add_node("two", count)
    builder.add_edge(START, "one")
    builder.add_edge("one", "two")
    graph = durable(builder, journal)
    stream = graph.stream({}, THREAD)
    next(stream)
    clock.move(LEASE)
    done = graph.invoke(None, THREAD)

    with pytest.raises(LeaseLost):
        list(stream)
    assert done["rounds"] == 2
    assert journal.runs.get("claim-0042").state == "done"


# --- waiting ---------------------------------------------------------------------------------------------------------


def test_an_overdue_question_gets_its_outcome_from_whoever_advances(
    journal: Journal, bank: Bank, clock: MovingClock
) -> None:
    graph = durable(asking(journal, bank, ttl=3 * DAY, on_expiry="reject"), journal)
    request = parked(graph)
    clock.move(3 * DAY)
    with pytest.raises(ApprovalExpired, match="reject"):
        graph.invoke(approve(request), ADJUSTER)
    done = graph.invoke(None, THREAD)

    assert (done["approvals"]["payout"]["type"], done["approvals"]["payout"]["expired"]) == (
        "reject",
        True,
    )
    assert journal.runs.get("claim-0042").state == "done"
    assert bank.calls == []


def test_an_expiry_that_counts_as_approval_pays(journal: Journal, bank: Bank, clock: MovingClock) -> None:
    graph = durable(asking(journal, bank, ttl=DAY, on_expiry="approve"), journal)
    parked(graph)
    clock.move(DAY - timedelta(seconds=1))
    graph.invoke(None, THREAD)
    assert bank.calls == []
    clock.move(timedelta(seconds=1))
    graph.invoke(None, THREAD)

    assert len(bank.calls) == 1


def test_a_question_that_is_not_due_does_not_expire_with_one_that_is(
    journal: Journal, bank: Bank, clock: MovingClock
) -> None:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for name, ttl in (("soon", DAY), ("late", 3 * DAY)):
        builder.add_node(name, approval_node(name, journal, payload=payload, ttl=ttl))
        builder.add_edge(START, name)
    graph = durable(builder, journal)
    parked(graph)
    clock.move(DAY)
    graph.invoke(None, THREAD)

    states = {one.name: one.state for one in journal.approvals.of_thread("claim-0042")}
    assert states == {"soon": "expired", "late": "pending"}


def test_only_the_approvers_may_decide(journal: Journal, bank: Bank) -> None:
    graph = durable(asking(journal, bank, approvers=["chief-1"]), journal)
    request = parked(graph)
    with pytest.raises(NotAllowed, match="chief-1"):
        graph.invoke(approve(request), ADJUSTER)
    graph.invoke(approve(request), thread("claim-0042", principal="chief-1"))

    assert len(bank.calls) == 1


def test_a_decision_of_a_kind_that_is_not_taken(journal: Journal, bank: Bank) -> None:
    graph = durable(asking(journal, bank), journal)
    request = parked(graph)

    with pytest.raises(DecisionInvalid, match="approve, reject"):
        graph.invoke(edit(request, {"claim_id": "1", "amount": 1}), ADJUSTER)
    assert journal.approvals.get(request["id"]).state == "pending"


def test_an_edit_keeps_the_payloads_keys(journal: Journal, bank: Bank) -> None:
    graph = durable(asking(journal, bank, allowed=("approve", "edit")), journal)
    request = parked(graph)

    for changed in (
        {"amount": 1},
        {"claim_id": "1", "amount": 1, "payee": "me"},
        {"claim_id": "1", "amount": float("nan")},
        {"claim_id": "1", "amount": "5"},
        {"claim_id": "1", "amount": True},
        {"claim_id": "1", "amount": None},
    ):
        with pytest.raises(DecisionInvalid):
            journal.approvals.decide(request["id"], {"type": "edit", "payload": changed}, principal="adjuster-17")
    assert journal.approvals.get(request["id"]).state == "pending"


def test_a_payload_that_changed_supersedes_the_question(journal: Journal, bank: Bank) -> None:
    amounts = iter([5, 6, 6, 6])
    builder = asking(journal, bank)
    builder.nodes.pop("approve")
    builder.add_node(
        "approve",
        approval_node("payout", journal, payload=lambda s: {"claim_id": "1", "amount": next(amounts)}),
    )
    graph = durable(builder, journal)
    first = parked(graph)
    graph.compiled.invoke(None, THREAD)
    second = journal.approvals.pending()[0]
    assert (second.round, second.payload["amount"]) == (1, 6)

    with pytest.raises(PayloadChanged, match=second.id):
        graph.invoke(approve(first), ADJUSTER)
    graph.invoke(approve(second), ADJUSTER)
    assert [call["amount"] for call in bank.calls] == [6]


def test_an_approval_allows_one_effect(journal: Journal, bank: Bank) -> None:
    builder = asking(journal, bank)
    builder.add_edge("pay", "count")
    builder.add_node("count", count)
    builder.add_conditional_edges("count", lambda state: "pay" if state["rounds"] < 2 else END)
    graph = durable(builder, journal)

    with pytest.raises(EffectNotApproved, match="it allows one"):
        graph.invoke(approve(parked(graph)), ADJUSTER)
    assert len(bank.calls) == 1
    assert journal.runs.get("claim-0042").reason == "effect_not_approved"


def test_every_visit_asks_anew(journal: Journal, bank: Bank) -> None:
    builder = asking(journal, bank)
    builder.add_edge("pay", "count")
    builder.add_node("count", count)
    builder.add_conditional_edges("count", lambda state: "approve" if state["rounds"] < 2 else END)
    graph = durable(builder, journal)
    first = parked(graph)
    second = graph.invoke(approve(first), ADJUSTER)["__interrupt__"][0].value
    assert second["id"] != first["id"]
    graph.invoke(approve(second), ADJUSTER)

    assert len(bank.calls) == 2


def test_an_effect_refuses_arguments_that_were_not_approved(journal: Journal, bank: Bank) -> None:
    builder = asking(journal, bank)
    builder.nodes.pop("pay")
    builder.add_node(
        "pay",
        effect_node(
            bank.effect(),
            journal,
            approval="payout",
            arguments=lambda s: {"claim_id": "1", "amount": 50},
        ),
    )
    graph = durable(builder, journal)

    with pytest.raises(EffectNotApproved, match="same JSON"):
        graph.invoke(approve(parked(graph)), ADJUSTER)
    assert bank.calls == []


def test_an_effect_whose_approval_was_never_asked(journal: Journal, bank: Bank) -> None:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("pay", effect_node(bank.effect(), journal, approval="payout"))
    builder.add_edge(START, "pay")

    with pytest.raises(EffectNotApproved, match="there is none"):
        durable(builder, journal).invoke({"claim_id": "1", "amount": 5}, THREAD)
    assert bank.calls == []


def test_a_state_that_claims_an_approval_is_not_believed(journal: Journal, bank: Bank) -> None:
    graph = durable(asking(journal, bank), journal)
    request = parked(graph)
    forged = {
        "id": request["id"],
        "name": "payout",
        "visit": 0,
        "type": "approve",
        "payload": request["payload"],
    }
    graph.compiled.update_state(THREAD, {"approvals": {"payout": forged}}, as_node="approve")

    with pytest.raises(EffectNotApproved, match="pending"):
        graph.compiled.invoke(None, THREAD)
    assert bank.calls == []


def test_a_decision_recorded_elsewhere_is_read_at_the_next_advance(journal: Journal, bank: Bank) -> None:
    graph = durable(asking(journal, bank), journal)
    request = parked(graph)
    journal.approvals.decide(request["id"], {"type": "approve", "principal": "mallory"}, principal="adjuster-17")
    assert journal.runs.get("claim-0042").state == "admitted"
    graph.invoke(None, THREAD)

    assert len(bank.calls) == 1
    assert journal.approvals.get(request["id"]).decided_by == "adjuster-17"


def test_a_raw_resume_that_names_another_approval_decides_nothing(journal: Journal, bank: Bank) -> None:
    graph = durable(asking(journal, bank), journal)
    parked(graph)
    for value in ("yes", True, {"approval": "apr_other", "type": "approve"}, {"type": "approve"}):
        graph.compiled.invoke(Command(resume=value), ADJUSTER)

    assert bank.calls == []
    assert len(journal.approvals.pending()) == 1


# --- a graph's own interrupts ----------------------------------------------------------------------------------------


def questions(state: State) -> dict[str, Any]:
    return {"answers": [interrupt("first?"), interrupt({"second": "?"})]}


def test_a_graphs_own_interrupts_are_answered_by_id(journal: Journal) -> None:
    graph = single(questions, journal)
    first = graph.invoke({}, THREAD)["__interrupt__"][0]
    with pytest.raises(DecisionInvalid):
        graph.invoke(Command(resume="one"), ADJUSTER)
    with pytest.raises(NotAllowed):
        graph.invoke(answer(first, "one"), THREAD)
    second = graph.invoke(answer(first, "one"), ADJUSTER)["__interrupt__"][0]
    assert second.value == {"second": "?"}
    done = graph.invoke(Command(resume={second.id: ["two"]}), ADJUSTER)

    assert done["answers"] == ["one", ["two"]]
    payloads = [row.payload for row in journal.approvals.of_thread("claim-0042")]
    assert "first?" in payloads
    assert {"second": "?"} in payloads


def test_a_nudge_answers_no_question(journal: Journal) -> None:
    """LangGraph answers the second one with the first one's answer."""
    graph = single(questions, journal)
    first = graph.invoke({}, THREAD)["__interrupt__"][0]
    graph.invoke(answer(first, "one"), ADJUSTER)
    nudged = [graph.invoke(None, THREAD) for _ in range(3)][-1]

    assert nudged["__interrupt__"][0].value == {"second": "?"}
    assert journal.runs.get("claim-0042").state == "parked"


def test_two_gates_at_once_are_answered_one_by_one(journal: Journal) -> None:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("left", lambda state: {"claim_id": interrupt("left?")})
    builder.add_node("right", lambda state: {"amount": interrupt("right?")})
    builder.add_edge(START, "left")
    builder.add_edge(START, "right")
    graph = durable(builder, journal)
    asked = {one.value: one for one in graph.invoke({}, THREAD)["__interrupt__"]}
    still = graph.invoke(answer(asked["right?"], 7), ADJUSTER)
    assert [one.value for one in still["__interrupt__"]] == ["left?"]
    done = graph.invoke(answer(asked["left?"], "0042"), ADJUSTER)

    assert (done["claim_id"], done["amount"]) == ("0042", 7)


def test_a_breakpoint_is_passed_with_none(journal: Journal) -> None:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("one", lambda state: {"rounds": 1})
    builder.add_node("two", lambda state: {"rounds": 2})
    builder.add_edge(START, "one")
    builder.add_edge("one", "two")
    graph = durable(builder, journal)
    stopped = graph.invoke({}, THREAD, interrupt_before=["two"])
    assert stopped["rounds"] == 1

    assert graph.invoke(None, THREAD)["rounds"] == 2


# --- the code changes ------------------------------------------------------------------------------------------------


def test_a_run_parked_at_a_node_that_is_gone_is_refused_and_untouched(journal: Journal, bank: Bank) -> None:
    request = parked(durable(asking(journal, bank), journal))
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("other", lambda state: {"rounds": 9})
    builder.add_edge(START, "other")
    changed = durable(builder, journal)
    before = journal.audit.entries("claim-0042")

    with pytest.raises(GraphChanged, match="approve"):
        changed.invoke(approve(request), ADJUSTER)
    assert journal.approvals.get(request["id"]).state == "pending"
    assert journal.audit.entries("claim-0042") == before
    journal.approvals.decide(request["id"], {"type": "approve"}, principal="adjuster-17")
    with pytest.raises(GraphChanged, match="approve"):
        changed.invoke(None, THREAD)
    assert journal.runs.get("claim-0042").state == "admitted"
    durable(asking(journal, bank), journal).invoke(None, THREAD)
    assert len(bank.calls) == 1


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_question_inside_a_subgraph_whose_node_is_gone_is_refused(journal: Journal, bank: Bank, depth: int) -> None:
    def outer(inner: StateGraph[Any, Any, Any, Any]) -> DurableGraph:
        for _ in range(depth):
            builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
            builder.add_node("payout", inner.compile())
            builder.add_edge(START, "payout")
            inner = builder
        return durable(inner, journal)

    request = parked(outer(asking(journal, bank)))
    renamed: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    renamed.add_node("ask", approval_node("payout", journal, payload=payload))
    renamed.add_edge(START, "ask")

    with pytest.raises(GraphChanged, match="payout/" * depth + "approve"):
        outer(renamed).invoke(approve(request), ADJUSTER)
    outer(asking(journal, bank)).invoke(approve(request), ADJUSTER)
    assert len(bank.calls) == 1


def test_a_refused_graph_expires_nothing(journal: Journal, bank: Bank, clock: MovingClock) -> None:
    parked(durable(asking(journal, bank, ttl=DAY), journal))
    clock.move(2 * DAY)
    before = journal.audit.entries("claim-0042")

    with pytest.raises(GraphChanged):
        single(lambda state: {}, journal).invoke(None, THREAD)
    assert journal.audit.entries("claim-0042") == before


def test_a_batch_of_answers_is_taken_whole_or_not_at_all(journal: Journal) -> None:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("left", lambda state: {"claim_id": interrupt("left?")})
    builder.add_node("right", lambda state: {"amount": interrupt("right?")})
    builder.add_edge(START, "left")
    builder.add_edge(START, "right")
    graph = durable(builder, journal)
    one, other = graph.invoke({}, THREAD)["__interrupt__"]

    for answers in ({one.id: "yes", other.id: object()}, {one.id: "yes", "0" * 32: "no"}):
        with pytest.raises((DecisionInvalid, UnknownApproval)):
            graph.invoke(Command(resume=answers), ADJUSTER)
    assert len(journal.approvals.pending()) == 2
    graph.invoke(Command(resume={one.id: "yes", other.id: "no"}), ADJUSTER)
    assert journal.runs.get("claim-0042").state == "done"


def test_a_walk_that_is_left_half_done_pins_nobody_elses_view(journal: Journal, bank: Bank) -> None:
    graph = durable(asking(journal, bank), journal)
    request = parked(graph)
    walk = journal.saver.list(THREAD)
    next(walk)
    graph.invoke(approve(request), ADJUSTER)

    assert journal.runs.get("claim-0042").state == "done"
    walk.close()  # type: ignore[attr-defined]  # a generator


def test_a_pass_that_a_decision_asks_for_is_no_take_over(journal: Journal, bank: Bank) -> None:
    """The decision comes while the run is being parked, so the same worker makes another pass."""
    graph = durable(asking(journal, bank), journal)
    park = journal.runs.park

    def decided_meanwhile(*args: Any, **options: Any) -> bool:
        if pending := journal.approvals.pending():
            journal.approvals.decide(pending[0].id, {"type": "approve"}, principal="adjuster-17")
        return park(*args, **options)

    journal.runs.park = decided_meanwhile  # type: ignore[method-assign]  # what another process does at that moment
    graph.invoke({"claim_id": "1", "amount": 5}, THREAD)
    run = journal.runs.get("claim-0042")

    assert (run.state, run.resumes, len(bank.calls)) == ("done", 0, 1)


def test_a_join_whose_node_is_gone_is_refused(journal: Journal) -> None:
    def joined(name: str) -> DurableGraph:
        builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
        builder.add_node("left", lambda state: {"claim_id": "1"})
        builder.add_node("right", lambda state: {"amount": 5})
        builder.add_node(name, lambda state: {"rounds": interrupt("how many?")})
        builder.add_edge(START, "left")
        builder.add_edge(START, "right")
        builder.add_edge(["left", "right"], name)
        return durable(builder, journal)

    [asked] = joined("count").invoke({}, THREAD)["__interrupt__"]
    with pytest.raises(GraphChanged, match="count"):
        joined("number").invoke(answer(asked, 3), ADJUSTER)

    assert joined("count").invoke(answer(asked, 3), ADJUSTER)["rounds"] == 3


def test_an_effect_may_not_interrupt(journal: Journal) -> None:
    @effect(receiver=Receiver(honours_keys=True), name="pay")
    def pay(*, key: str) -> Any:
        return interrupt("really?")

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("pay", effect_node(pay, journal, arguments=lambda s: {}))
    builder.add_edge(START, "pay")

    with pytest.raises(GraphRefused, match="approval node"):
        durable(builder, journal).invoke({}, THREAD)
    assert journal.runs.get("claim-0042").state == "dead"


def test_who_comes_after_the_end_finds_it(journal: Journal) -> None:
    """Another call finished the run between our look and our lease."""
    graph = single(lambda state: {"rounds": 1}, journal)
    graph.invoke({}, THREAD)
    lease = journal.leases.take(thread_lease("claim-0042"))

    assert journal.runs.start(lease, "claim-0042", head="").state == "done"
    assert journal.runs.get("claim-0042").state == "done"


def test_who_comes_after_the_death_starts_nothing(journal: Journal) -> None:
    """Another call buried the run between our look and our lease."""
    graph = single(lambda state: 1 / 0, journal, attempts=1)
    with pytest.raises(ZeroDivisionError):
        graph.invoke({}, THREAD)
    lease = journal.leases.take(thread_lease("claim-0042"))

    with pytest.raises(RunDead, match="attempts"):
        journal.runs.start(lease, "claim-0042", head="")
    assert journal.runs.get("claim-0042").state == "dead"


def test_a_decision_does_not_raise_the_dead(journal: Journal, bank: Bank) -> None:
    """Beside the question a step failed; the decision is recorded, and a person has yet to redrive the run."""

    def fail(state: State) -> dict[str, Any]:
        raise ZeroDivisionError

    builder = asking(journal, bank)
    builder.add_node("fail", fail)
    builder.add_edge(START, "fail")
    graph = durable(builder, journal, attempts=1)
    with pytest.raises(ZeroDivisionError):
        graph.invoke({"claim_id": "1", "amount": 5}, THREAD)
    [request] = journal.approvals.pending()
    journal.approvals.decide(request.id, {"type": "approve"}, principal="adjuster-17")

    assert journal.runs.get("claim-0042").state == "dead"
    with pytest.raises(RunDead, match="attempts"):
        graph.invoke(None, THREAD)
    assert bank.calls == []


def test_a_graph_that_gains_a_state_key_carries_its_runs_on(journal: Journal, bank: Bank) -> None:
    request = parked(durable(asking(journal, bank), journal))

    class Wider(State):
        region: str

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(Wider)
    builder.add_node("approve", approval_node("payout", journal, payload=payload))
    builder.add_node("pay", effect_node(bank.effect(), journal, into="payment", approval="payout"))
    builder.add_edge(START, "approve")
    builder.add_edge("approve", "pay")
    durable(builder, journal).invoke(reject(request), ADJUSTER)

    assert journal.runs.get("claim-0042").state == "done"
