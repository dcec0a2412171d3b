"""
Forks and time travel on LangGraph's own graph: a slot has one effect, whatever branch asks for it.

`graph.compiled` takes no lease of the thread, so each effect node leases its slot; and it takes old checkpoints, which the durable graph refuses.
"""

from __future__ import annotations

import asyncio
import operator
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, StateSnapshot

from checkpointing import Journal
from checkpointing.errors import EffectBusy, EffectConflict, EffectNotApproved, SlotAmbiguous
from graph import DurableGraph, DurableState, approve, durable, reject, thread
from nodes import approval_node, effect_node
from nodes import visit as visiting
from tests.support.bank import Bank
from tests.support.processes import until
from tools import Declined, Rejected

THREAD = thread("claim-0042")
ADJUSTER = thread("claim-0042", principal="adjuster-17")


class State(DurableState):
    claim_id: str
    amount: int
    rounds: int
    payment: dict[str, Any]
    notes: Annotated[list[str], operator.add]


Builder = StateGraph[Any, Any, Any, Any]
Go = Callable[[DurableGraph, Any, RunnableConfig], Any]


def by_invoke(graph: DurableGraph, given: Any, config: RunnableConfig) -> Any:
    return graph.compiled.invoke(given, config)


def by_ainvoke(graph: DurableGraph, given: Any, config: RunnableConfig) -> Any:
    return asyncio.run(graph.compiled.ainvoke(given, config))


@pytest.fixture(params=[by_invoke, by_ainvoke])
def go(request: pytest.FixtureRequest) -> Go:
    """Both calls of the raw graph."""
    call: Go = request.param
    return call


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank(tmp_path / "bank")


def arguments(state: Any) -> dict[str, Any]:
    return {"claim_id": state["claim_id"], "amount": state["amount"]}


def count(state: Any) -> dict[str, Any]:
    return {"rounds": state.get("rounds", 0) + 1}


def paying(journal: Journal, bank: Bank, **options: Any) -> Any:
    return effect_node(bank.effect(**options), journal, arguments=arguments, into="payment")


def line(journal: Journal, bank: Bank, **options: Any) -> Builder:
    """START ─▶ pay ─▶ count."""
    builder = Builder(State)
    builder.add_node("pay", paying(journal, bank, **options))
    builder.add_node("count", count)
    builder.add_edge(START, "pay")
    builder.add_edge("pay", "count")
    return builder


def loop(journal: Journal, bank: Bank) -> Builder:
    """Three visits of one payment."""
    builder = line(journal, bank)
    builder.add_conditional_edges("count", lambda state: "pay" if state["rounds"] < 3 else END)
    return builder


def fan_out(journal: Journal, bank: Bank) -> Builder:
    """Three Sends, twice."""
    builder = Builder(State)
    builder.add_node("pay", effect_node(bank.effect(), journal, arguments=arguments))
    builder.add_node("count", count)

    def each(state: Any) -> list[Send]:
        return [Send("pay", {"claim_id": str(n), "amount": 5}) for n in range(3)]

    builder.add_conditional_edges(START, each, ["pay"])
    builder.add_edge("pay", "count")
    builder.add_conditional_edges("count", lambda state: each(state) if state["rounds"] < 2 else END, ["pay", END])
    return builder


def parallel(journal: Journal, bank: Bank) -> Builder:
    """Two payments side by side, and a third behind both."""
    builder = Builder(State)
    for name in ("left", "right", "both"):
        builder.add_node(name, effect_node(bank.effect(), journal, arguments=arguments))
    builder.add_edge(START, "left")
    builder.add_edge(START, "right")
    builder.add_edge(["left", "right"], "both")
    return builder


def subgraphs(journal: Journal, bank: Bank) -> Builder:
    """A payment two graphs deep, visited twice."""
    middle = Builder(State)
    middle.add_node("inner", line(journal, bank).compile())
    middle.add_edge(START, "inner")
    builder = Builder(State)
    builder.add_node("middle", middle.compile())
    builder.add_node("round", lambda state: {"notes": ["round"]})
    builder.add_edge(START, "middle")
    builder.add_edge("middle", "round")
    builder.add_conditional_edges("round", lambda state: "middle" if len(state["notes"]) < 2 else END)
    return builder


SHAPES: dict[str, tuple[Callable[[Journal, Bank], Builder], list[str]]] = {
    "line": (line, ["pay.0"]),
    "loop": (loop, ["pay.0", "pay.1", "pay.2"]),
    "fan-out": (fan_out, [f"pay.{visit}[{n}]" for visit in (0, 3) for n in range(3)]),
    "parallel": (parallel, ["both.0", "left.0", "right.0"]),
    "subgraphs": (subgraphs, ["middle/inner/pay.0", "middle/inner/pay.1"]),
}
INPUT = {"claim_id": "1", "amount": 5}


def history(graph: DurableGraph, config: RunnableConfig = THREAD) -> list[StateSnapshot]:
    """The thread's checkpoints, oldest first."""
    return list(graph.get_state_history(config))[::-1]


def before(graph: DurableGraph, node: str, nth: int = 0) -> RunnableConfig:
    """The checkpoint at which *node* is next for the *nth* time."""
    return [one for one in history(graph) if node in one.next][nth].config


def steps(graph: DurableGraph) -> list[str]:
    return sorted(record.step for record in graph.journal.effects.list())


# --- from every checkpoint --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_a_branch_from_any_checkpoint_is_answered_from_the_ledger(
    journal: Journal, bank: Bank, shape: str, go: Go
) -> None:
    build, slots = SHAPES[shape]
    graph = durable(build(journal, bank), journal)
    done = graph.invoke(INPUT, THREAD)
    executed = bank.calls

    for snapshot in history(graph):
        ended = go(graph, None, snapshot.config)
        assert ended["effects"] == done["effects"]
    assert bank.calls == executed
    assert steps(graph) == slots == sorted(done["effects"])
    assert list(journal.audit.verify()) == []


@pytest.mark.parametrize("shape", SHAPES)
def test_a_branch_of_a_branch_is_answered_from_the_ledger(journal: Journal, bank: Bank, shape: str) -> None:
    build, slots = SHAPES[shape]
    graph = durable(build(journal, bank), journal)
    graph.invoke(INPUT, THREAD)
    executed = bank.calls
    first = {one.config["configurable"]["checkpoint_id"] for one in history(graph)}
    graph.compiled.invoke(None, history(graph)[1].config)
    branch = [one for one in history(graph) if one.config["configurable"]["checkpoint_id"] not in first]

    assert branch
    for snapshot in branch:
        graph.compiled.invoke(None, snapshot.config)
    assert bank.calls == executed
    assert steps(graph) == slots


def test_a_thread_that_never_knew_the_durable_graph_travels_too(journal: Journal, bank: Bank, go: Go) -> None:
    graph = durable(loop(journal, bank), journal)
    go(graph, INPUT, THREAD)
    for snapshot in history(graph)[1:]:
        go(graph, None, snapshot.config)

    assert steps(graph) == ["pay.0", "pay.1", "pay.2"]
    assert len(bank.calls) == 3


# --- a past that was edited -------------------------------------------------------------------------------------------


def test_a_past_edited_beside_the_arguments_is_answered_from_the_ledger(journal: Journal, bank: Bank, go: Go) -> None:
    graph = durable(loop(journal, bank), journal)
    graph.invoke(INPUT, THREAD)

    for nth in range(3):
        edited = graph.compiled.update_state(before(graph, "pay", nth), {"notes": ["looked at"]})
        again = graph.compiled.update_state(edited, {"notes": ["twice"]})
        assert go(graph, None, again)["notes"] == ["looked at", "twice"]
    assert len(bank.calls) == 3


@pytest.mark.parametrize("nth", [0, 1, 2])
def test_a_past_whose_arguments_were_edited_is_a_conflict(journal: Journal, bank: Bank, nth: int, go: Go) -> None:
    graph = durable(loop(journal, bank), journal)
    graph.invoke(INPUT, THREAD)
    edited = graph.compiled.update_state(before(graph, "pay", nth), {"amount": 6})

    with pytest.raises(EffectConflict, match=rf"pay\.{nth}"):
        go(graph, None, edited)
    assert [call["amount"] for call in bank.calls] == [5, 5, 5]


def test_a_branch_of_an_edited_branch_is_a_conflict_too(journal: Journal, bank: Bank) -> None:
    graph = durable(loop(journal, bank), journal)
    graph.invoke(INPUT, THREAD)
    edited = graph.compiled.update_state(before(graph, "pay", 2), {"notes": ["a branch"]})
    graph.compiled.invoke(None, edited)
    deeper = graph.compiled.update_state(edited, {"amount": 6})

    with pytest.raises(EffectConflict, match=r"pay\.2"):
        graph.compiled.invoke(None, deeper)
    assert len(bank.calls) == 3


def test_an_edit_behind_a_payment_changes_the_later_ones_only(journal: Journal, bank: Bank) -> None:
    """The first visit was paid and the second was not: the branch pays the second as edited, and the original may not any more."""
    graph = durable(loop(journal, bank), journal)
    graph.compiled.invoke(INPUT, THREAD, interrupt_after=["count"])
    original = graph.get_state(THREAD).config
    edited = graph.compiled.update_state(original, {"amount": 7})
    graph.compiled.invoke(None, edited)
    assert [call["amount"] for call in bank.calls] == [5, 7, 7]

    with pytest.raises(EffectConflict, match=r"pay\.1"):
        graph.compiled.invoke(None, original)
    assert len(bank.calls) == 3


def test_sends_in_another_order_are_conflicts(journal: Journal, bank: Bank) -> None:
    builder = Builder(State)
    builder.add_node("count", count)
    builder.add_node("pay", effect_node(bank.effect(), journal, arguments=arguments))
    builder.add_edge(START, "count")
    builder.add_conditional_edges(
        "count", lambda s: [Send("pay", {"claim_id": note, "amount": 5}) for note in sorted(s["notes"])], ["pay"]
    )
    graph = durable(builder, journal)
    graph.invoke({**INPUT, "notes": ["b", "c"]}, THREAD)
    edited = graph.compiled.update_state(before(graph, "count"), {"notes": ["a"]})

    with pytest.raises(EffectConflict, match=r"pay\.0\[[01]\]"):
        graph.compiled.invoke(None, edited)
    paid = sorted(call["claim_id"] for call in bank.executed)
    assert [one for one in paid if one != "c"] == ["b"]
    assert len(bank.executed) == len(journal.effects.list())


def test_a_step_that_was_skipped_by_hand_is_not_answered_by_the_one_before(journal: Journal, bank: Bank) -> None:
    """Without the receipt the second visit counts as the first, which is another operation."""
    graph = durable(loop(journal, bank), journal)
    graph.invoke(INPUT, THREAD)
    skipped = graph.compiled.update_state(before(graph, "pay"), {"notes": ["skipped"]}, as_node="pay")

    with pytest.raises(SlotAmbiguous, match=r"pay\.0"):
        graph.compiled.invoke(None, skipped)
    assert len(bank.calls) == 3


def test_a_step_is_not_answered_by_the_one_before_though_its_checkpoint_takes_its_time(
    journal: Journal, bank: Bank, go: Go, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LangGraph stores a raw graph's checkpoints on the side: the payment is asked for before the one it began from is there."""
    graph = durable(loop(journal, bank), journal)
    graph.invoke(INPUT, THREAD)
    skipped = graph.compiled.update_state(before(graph, "pay"), {"notes": ["skipped"]}, as_node="pay")
    saver, looked = type(journal.saver), threading.Event()
    put, wait = saver.put, visiting.wait_stored

    def once_asked_for(*given: Any) -> RunnableConfig:
        looked.wait(2)  # the superstep of `count` asks for nothing, and goes on all the same
        return put(*given)

    def asking(*given: Any, **more: Any) -> None:
        looked.set()
        wait(*given, **more)

    monkeypatch.setattr(saver, "put", once_asked_for)
    monkeypatch.setattr(visiting, "wait_stored", asking)
    with pytest.raises(SlotAmbiguous, match=r"pay\.0"):
        go(graph, None, skipped)
    assert len(bank.calls) == 3


@pytest.mark.parametrize("identity", [True, False])
def test_a_forged_receipt_makes_a_visit_that_only_an_identity_stops(
    journal: Journal, bank: Bank, identity: bool
) -> None:
    options = {"once": lambda arguments: arguments["claim_id"]} if identity else {}
    graph = durable(line(journal, bank, **options), journal)
    graph.invoke(INPUT, THREAD)
    forged = {"pay.x": {"key": None, "effect": "pay", "node": "pay", "state": "succeeded"}}
    graph.compiled.invoke(None, graph.compiled.update_state(before(graph, "pay"), {"effects": forged}))

    assert len(bank.calls) == (1 if identity else 2)


# --- branches that overtake each other --------------------------------------------------------------------------------


def test_an_original_goes_on_after_its_branch_has_ended(journal: Journal, bank: Bank, go: Go) -> None:
    graph = durable(loop(journal, bank), journal)
    graph.compiled.invoke(INPUT, THREAD, interrupt_after=["count"])
    original = graph.get_state(THREAD).config
    go(graph, None, before(graph, "pay"))
    assert len(bank.calls) == 3
    ended = go(graph, None, original)

    assert sorted(ended["effects"]) == ["pay.0", "pay.1", "pay.2"]
    assert len(bank.calls) == 3


def test_a_branch_of_a_payment_in_doubt_asks_with_its_key(journal: Journal, bank: Bank) -> None:
    broken = [True]
    execute = bank.execute

    def cut_off(**call: Any) -> dict[str, Any]:
        result = execute(**call)
        if broken:
            broken.clear()
            raise RuntimeError("the line is dead")
        return result

    bank.execute = cut_off  # type: ignore[method-assign]  # the receiver executes, and its answer is lost
    graph = durable(line(journal, bank), journal)
    with pytest.raises(RuntimeError):
        graph.compiled.invoke(INPUT, THREAD)
    graph.compiled.invoke(None, before(graph, "pay"))
    graph.compiled.invoke(None, before(graph, "pay"))

    assert len(bank.calls) == 2
    assert len(bank.executed) == 1


def told_or_done(graph: DurableGraph, config: RunnableConfig) -> bool | None:
    """Nothing while another branch's tool still runs."""
    try:
        graph.compiled.invoke(None, config)
    except EffectBusy:
        return None
    return True


@pytest.mark.parametrize("shape", SHAPES)
def test_two_branches_at_the_same_time_execute_once(journal: Journal, bank: Bank, shape: str) -> None:
    """Whoever comes second is told that the slot is busy, or finds its outcome."""
    build, slots = SHAPES[shape]
    graph = durable(build(journal, bank), journal)
    graph.compiled.invoke(INPUT, THREAD, interrupt_before="*")
    asked = graph.get_state(THREAD).config

    async def both() -> list[Any]:
        calls = [graph.compiled.ainvoke(None, asked) for _ in range(2)]
        return await asyncio.gather(*calls, return_exceptions=True)

    ended = asyncio.run(both())
    assert [type(one) for one in ended if not isinstance(one, dict | EffectBusy)] == []
    until(lambda: told_or_done(graph, asked))
    assert steps(graph) == slots
    assert len(bank.executed) == len(bank.calls) == len(slots)


def test_a_branch_is_told_that_another_executes_its_slot(journal: Journal, bank: Bank) -> None:
    entered, leave = threading.Event(), threading.Event()
    execute = bank.execute

    def slow(**call: Any) -> dict[str, Any]:
        entered.set()
        leave.wait(30)
        return execute(**call)

    bank.execute = slow  # type: ignore[method-assign]  # a receiver that takes its time
    graph = durable(line(journal, bank), journal)
    graph.compiled.invoke(INPUT, THREAD, interrupt_before=["pay"])
    asked = graph.get_state(THREAD).config
    first = threading.Thread(target=lambda: graph.compiled.invoke(None, asked))
    first.start()
    entered.wait(30)
    with pytest.raises(EffectBusy):
        graph.compiled.invoke(None, asked)
    leave.set()
    first.join(30)

    assert graph.compiled.invoke(None, asked)["payment"]["paid"] == 5
    assert len(bank.calls) == 1


# --- another thread ---------------------------------------------------------------------------------------------------


def copied(graph: DurableGraph, **more: Any) -> RunnableConfig:
    """The state of the thread, written into another one behind START."""
    values = {**graph.get_state(THREAD).values, **more}
    return graph.compiled.update_state(thread("copy"), values, as_node=START)


def test_a_copy_in_another_thread_is_another_operation(journal: Journal, bank: Bank, go: Go) -> None:
    graph = durable(line(journal, bank), journal)
    graph.invoke(INPUT, THREAD)
    copy = copied(graph)
    go(graph, None, copy)
    go(graph, None, copy)

    assert sorted((one.thread_id, one.step) for one in journal.effects.list()) == [
        ("claim-0042", "pay.0"),
        ("copy", "pay.1"),
    ]
    assert len(bank.calls) == len(bank.executed) == 2


def test_a_copy_of_a_business_identity_is_the_same_operation(journal: Journal, bank: Bank) -> None:
    graph = durable(line(journal, bank, once=lambda arguments: arguments["claim_id"]), journal)
    done = graph.invoke(INPUT, THREAD)

    assert graph.compiled.invoke(None, copied(graph))["payment"] == done["payment"]
    with pytest.raises(EffectConflict, match="thread 'copy'.*thread 'claim-0042'"):
        graph.compiled.invoke(None, copied(graph, amount=6))
    assert len(bank.calls) == 1


# --- approvals --------------------------------------------------------------------------------------------------------


def asking(journal: Journal, bank: Bank) -> Builder:
    """START ─▶ approve ─▶ pay ─▶ count."""
    builder = Builder(State)
    builder.add_node("approve", approval_node("payout", journal, payload=arguments))
    builder.add_node("pay", effect_node(bank.effect(), journal, into="payment", approval="payout"))
    builder.add_node("count", count)
    builder.add_edge(START, "approve")
    builder.add_edge("approve", "pay")
    builder.add_edge("pay", "count")
    return builder


def parked(graph: DurableGraph) -> dict[str, Any]:
    request: dict[str, Any] = graph.invoke(INPUT, THREAD)["__interrupt__"][0].value
    return request


def as_adjuster(config: RunnableConfig) -> RunnableConfig:
    """An old checkpoint, resumed by somebody who may decide."""
    return {**config, "configurable": {**ADJUSTER["configurable"], **config["configurable"]}}


def test_a_reject_at_an_old_checkpoint_changes_nothing_that_was_approved(journal: Journal, bank: Bank, go: Go) -> None:
    graph = durable(asking(journal, bank), journal)
    request = parked(graph)
    question = graph.get_state(THREAD).config
    graph.invoke(approve(request), ADJUSTER)
    ended = go(graph, reject(request), as_adjuster(question))

    assert ended["approvals"]["payout"]["type"] == "approve"
    assert ended["effects"]["pay.0"]["state"] == "succeeded"
    assert len(bank.calls) == 1
    row = journal.approvals.get(request["id"])
    assert (row.state, row.decision, row.decided_by) == ("decided", {"type": "approve"}, "adjuster-17")
    assert [one.event for one in journal.audit.entries("claim-0042")].count("approval.decide") == 1


@pytest.mark.parametrize("resume", ["yes", True, {"type": "approve"}])
def test_an_approve_at_an_old_checkpoint_pays_nothing_that_was_rejected(
    journal: Journal, bank: Bank, resume: Any, go: Go
) -> None:
    graph = durable(asking(journal, bank), journal)
    request = parked(graph)
    question = graph.get_state(THREAD).config
    graph.invoke(reject(request), ADJUSTER)
    for command in (approve(request), Command(resume=resume), None):
        ended = go(graph, command, as_adjuster(question))
        assert ended["approvals"]["payout"]["type"] == "reject"

    assert bank.calls == []


def test_a_branch_from_any_checkpoint_asks_nobody_again(journal: Journal, bank: Bank, go: Go) -> None:
    builder = asking(journal, bank)
    builder.add_conditional_edges("count", lambda state: "approve" if state["rounds"] < 2 else END)
    graph = durable(builder, journal)
    second = graph.invoke(approve(parked(graph)), ADJUSTER)["__interrupt__"][0].value
    done = graph.invoke(approve(second), ADJUSTER)

    for snapshot in history(graph):
        ended = go(graph, None, snapshot.config)
        assert (ended["effects"], ended["approvals"]) == (done["effects"], done["approvals"])
    assert len(bank.calls) == 2
    assert [row.state for row in journal.approvals.of_thread("claim-0042")] == ["decided", "decided"]


def test_a_branch_of_a_parked_thread_asks_the_same_question(journal: Journal, bank: Bank) -> None:
    graph = durable(asking(journal, bank), journal)
    request = parked(graph)
    for snapshot in history(graph):
        again = graph.compiled.invoke(None, snapshot.config)["__interrupt__"][0].value
        assert again["id"] == request["id"]
    graph.invoke(approve(request), ADJUSTER)

    assert journal.runs.get("claim-0042").state == "done"
    assert len(bank.calls) == 1


def test_a_payload_edited_while_parked_is_asked_anew(journal: Journal, bank: Bank) -> None:
    graph = durable(asking(journal, bank), journal)
    request = parked(graph)
    graph.compiled.update_state(THREAD, {"amount": 6})
    second = graph.compiled.invoke(None, THREAD)["__interrupt__"][0].value
    assert (second["payload"]["amount"], journal.approvals.get(request["id"]).state) == (6, "superseded")
    graph.invoke(approve(second), ADJUSTER)

    assert [call["amount"] for call in bank.calls] == [6]


def test_a_payload_edited_after_it_was_paid_is_asked_anew_and_pays_nothing(journal: Journal, bank: Bank) -> None:
    """The new question may be approved; the slot is the old one, and its payment another."""
    graph = durable(asking(journal, bank), journal)
    request = parked(graph)
    question = graph.get_state(THREAD).config
    graph.invoke(approve(request), ADJUSTER)
    edited = graph.compiled.update_state(question, {"amount": 6})
    second = graph.compiled.invoke(None, edited)["__interrupt__"][0].value
    assert second["id"] != request["id"]
    asked = graph.get_state(THREAD).config

    with pytest.raises(EffectConflict, match=r"pay\.0"):
        graph.compiled.invoke(approve(second), as_adjuster(asked))
    assert [call["amount"] for call in bank.calls] == [5]


def test_an_edit_between_approval_and_payment_is_not_paid(journal: Journal, bank: Bank) -> None:
    """The state says another amount than was approved; what was approved is in the row."""
    builder = asking(journal, bank)
    builder.nodes.pop("pay")
    builder.add_node("pay", effect_node(bank.effect(), journal, arguments=arguments, into="payment", approval="payout"))
    graph = durable(builder, journal)
    request = parked(graph)
    graph.compiled.invoke(approve(request), ADJUSTER, interrupt_before=["pay"])
    edited = graph.compiled.update_state(graph.get_state(THREAD).config, {"amount": 500})

    with pytest.raises(EffectNotApproved):
        graph.compiled.invoke(None, edited)
    assert bank.calls == []


def test_a_forged_receipt_does_not_use_an_approval_twice(journal: Journal, bank: Bank) -> None:
    graph = durable(asking(journal, bank), journal)
    graph.invoke(approve(parked(graph)), ADJUSTER)
    forged = {"pay.x": {"key": None, "effect": "pay", "node": "pay", "state": "succeeded"}}
    edited = graph.compiled.update_state(before(graph, "pay"), {"effects": forged})

    with pytest.raises(EffectNotApproved, match="it allows one"):
        graph.compiled.invoke(None, edited)
    assert len(bank.calls) == 1


def test_an_approval_copied_into_another_thread_allows_nothing(journal: Journal, bank: Bank) -> None:
    graph = durable(asking(journal, bank), journal)
    graph.invoke(approve(parked(graph)), ADJUSTER)
    values = graph.get_state(before(graph, "pay")).values
    copy = graph.compiled.update_state(thread("copy"), values, as_node="approve")

    with pytest.raises(EffectNotApproved):
        graph.compiled.invoke(None, copy)
    assert len(bank.calls) == 1


def within(journal: Journal, bank: Bank) -> DurableGraph:
    """The same, in a subgraph."""
    builder = Builder(State)
    builder.add_node("payout", asking(journal, bank).compile())
    builder.add_edge(START, "payout")
    return durable(builder, journal)


def test_a_branch_of_a_subgraph_asks_nobody_and_pays_nothing_again(journal: Journal, bank: Bank, go: Go) -> None:
    graph = within(journal, bank)
    request = parked(graph)
    question = graph.get_state(THREAD).config
    graph.invoke(approve(request), ADJUSTER)
    for snapshot in history(graph):
        go(graph, None, snapshot.config)
    ended = go(graph, reject(request), as_adjuster(question))

    assert ended["approvals"]["payout"]["type"] == "approve"
    assert len(bank.calls) == 1


def test_a_question_edited_inside_its_subgraph_is_refused_and_pays_nothing(journal: Journal, bank: Bank) -> None:
    """An edit of the root is told from a second operation by its checkpoints; one inside a subgraph is not."""
    graph = within(journal, bank)
    request = parked(graph)
    [task] = graph.get_state(THREAD, subgraphs=True).tasks
    assert isinstance(task.state, StateSnapshot)
    graph.compiled.update_state(task.state.config, {"amount": 6})

    with pytest.raises(SlotAmbiguous, match="payout/approve"):
        graph.compiled.invoke(None, THREAD)
    with pytest.raises(SlotAmbiguous, match="payout/approve"):
        graph.invoke(approve(request), ADJUSTER)
    assert journal.runs.get("claim-0042").reason == "slot_ambiguous"
    assert bank.calls == []


# --- outcomes that are no payment -------------------------------------------------------------------------------------


def refusing(journal: Journal, bank: Bank, error: Exception) -> tuple[DurableGraph, list[int]]:
    """A bank that says no to more than ten, and what it was asked for."""
    asked: list[int] = []
    execute = bank.execute

    def strict(**call: Any) -> dict[str, Any]:
        if call["amount"] > 10:
            asked.append(call["amount"])
            raise error
        return execute(**call)

    bank.execute = strict  # type: ignore[method-assign]  # the receiver's own rule
    return durable(line(journal, bank), journal), asked


def test_a_business_no_is_the_answer_in_every_branch(journal: Journal, bank: Bank) -> None:
    graph, asked = refusing(journal, bank, Declined("too much"))
    done = graph.invoke({**INPUT, "amount": 11}, THREAD)
    for snapshot in history(graph):
        assert graph.compiled.invoke(None, snapshot.config)["payment"] == done["payment"] == {"declined": "too much"}

    assert (asked, bank.calls) == ([11], [])


def test_a_branch_may_repair_what_was_refused(journal: Journal, bank: Bank) -> None:
    """Nothing happened under the slot, so that it is free; once it is paid, the branch of the refused one is a conflict."""
    graph, asked = refusing(journal, bank, Rejected("no such amount"))
    with pytest.raises(Rejected):
        graph.invoke({**INPUT, "amount": 11}, THREAD)
    refused = before(graph, "pay")
    graph.compiled.invoke(None, graph.compiled.update_state(refused, {"amount": 5}))

    with pytest.raises(EffectConflict, match=r"pay\.0"):
        graph.compiled.invoke(None, refused)
    assert (asked, [call["amount"] for call in bank.calls]) == ([11], [5])
