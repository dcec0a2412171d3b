"""An approval and its effect are tied: what is done is what was approved, once, while the approval stands."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from checkpointing import Journal, Run
from checkpointing.approvals import DECIDE
from checkpointing.errors import (
    AlreadyDecided,
    ApprovalExpired,
    DecisionInvalid,
    EffectNotApproved,
    GraphRefused,
    NotAllowed,
    UnknownApproval,
)
from graph import DurableGraph, DurableState, answer, approve, durable, edit, reject, thread
from nodes import approval_node, effect_node
from tests.support.bank import Bank
from tests.support.blocked import Peer
from tests.support.clock import MovingClock

THREAD = thread("claim-0042")
ADJUSTER = thread("claim-0042", principal="adjuster-17")
PAYLOAD = {"claim_id": "0042", "amount": 5}


class State(DurableState):
    amount: int
    payment: dict[str, Any]
    stop: bool


class World:
    """A graph that asks, waits at a gate a test may close, and pays what `arguments` says."""

    def __init__(self, journal: Journal, folder: Path, approvers: tuple[str, ...] | None = None) -> None:
        self.journal = journal
        self.bank = Bank(folder / "bank")
        self.arguments: Mapping[str, Any] | None = None
        self.gate: Exception | None = None
        builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
        builder.add_node(
            "ask",
            approval_node(
                "payout",
                journal,
                payload=lambda s: {**PAYLOAD, "amount": s.get("amount", 5)},
                allowed=("approve", "edit", "reject"),
                ttl=timedelta(days=3),
                approvers=approvers,
            ),
        )
        builder.add_node("gate", self._gate)
        builder.add_node(
            "pay",
            effect_node(
                self.bank.effect(),
                journal,
                arguments=lambda s: self.arguments or s["approvals"]["payout"]["payload"],
                into="payment",
                approval="payout",
            ),
        )
        builder.add_edge(START, "ask")
        builder.add_edge("ask", "gate")
        builder.add_edge("gate", "pay")
        self.graph: DurableGraph = durable(builder, journal, attempts=3)

    def _gate(self, state: State) -> dict[str, Any]:
        if self.gate:
            raise self.gate
        return {}

    def asked(self) -> Any:
        """Park at the question, and return it."""
        return self.graph.invoke({"amount": 5}, THREAD)["__interrupt__"][0]

    def approved_and_stopped(self) -> str:
        """Approve, and stop between the approval and its effect; return the approval's id."""
        self.gate = OSError("the gate is closed")
        question = self.asked()
        with pytest.raises(OSError, match="closed"):
            self.graph.invoke(approve(question), ADJUSTER)
        self.gate = None
        return str(question.value["id"])

    def run(self) -> Run:
        return self.journal.runs.get("claim-0042")


@pytest.fixture
def world(opened: Any, clock: MovingClock, tmp_path: Path) -> World:
    return World(opened(clock=clock), tmp_path)


def test_a_withdrawn_approval_pays_nothing(world: World) -> None:
    approval_id = world.approved_and_stopped()
    world.journal.approvals.withdraw(approval_id, principal="adjuster-17", reason="wrong claim")
    with pytest.raises(EffectNotApproved, match="withdrawn by 'adjuster-17'"):
        world.graph.invoke(None, THREAD)

    assert (world.run().state, world.run().reason) == ("dead", "effect_not_approved")
    assert world.bank.calls == []
    assert list(world.journal.audit.verify()) == []


def test_a_withdrawn_question_lets_the_run_go_on_without_an_approval(world: World) -> None:
    question = world.asked()
    withdrawn = world.journal.approvals.withdraw(question.value["id"], principal="adjuster-17", reason="asked twice")
    state = world.graph.invoke(None, THREAD)

    assert (withdrawn.state, withdrawn.decision) == ("withdrawn", None)
    record = state["approvals"]["payout"]
    assert (record["type"], record["by"], record["reason"]) == ("withdrawn", "adjuster-17", "asked twice")
    assert [receipt["state"] for receipt in state["effects"].values()] == ["skipped"]
    assert (world.run().state, world.bank.calls) == ("done", [])
    assert list(world.journal.audit.verify()) == []


def test_a_withdrawn_question_takes_no_decision(world: World) -> None:
    question = world.asked()
    world.journal.approvals.withdraw(question.value["id"], principal="adjuster-17", reason="asked twice")
    with pytest.raises(AlreadyDecided, match="withdrawn by 'adjuster-17': asked twice"):
        world.graph.invoke(approve(question), thread("claim-0042", principal="adjuster-18"))

    assert world.journal.approvals.get(question.value["id"]).state == "withdrawn"


def test_an_approval_that_was_used_is_not_withdrawn(world: World) -> None:
    question = world.asked()
    world.graph.invoke(approve(question), ADJUSTER)
    with pytest.raises(AlreadyDecided, match="acted under it"):
        world.journal.approvals.withdraw(question.value["id"], principal="adjuster-17")

    assert world.journal.approvals.get(question.value["id"]).state == "decided"


def test_a_later_question_that_nobody_has_answered_bars_nothing(world: World) -> None:
    """A pipeline may ask about the next one while this one is paid."""
    first = world.approved_and_stopped()
    raw = world.graph.compiled
    record = world.journal.approvals.get(first).record()
    raw.update_state(THREAD, {"amount": 5}, as_node="__start__")
    raw.invoke(None, THREAD)
    assert [one.visit for one in world.journal.approvals.pending()] == [1]
    raw.update_state(THREAD, {"approvals": {"payout": record}}, as_node="gate")
    raw.invoke(None, THREAD)

    assert len(world.bank.calls) == 1


def test_only_who_may_decide_takes_a_decision_back(opened: Any, tmp_path: Path) -> None:
    journal = opened()
    world = World(journal, tmp_path, approvers=("boss",))
    question = world.graph.invoke({"amount": 5}, thread("claim-0042", principal="intake"))["__interrupt__"][0]
    with pytest.raises(NotAllowed, match="its approvers are boss"):
        journal.approvals.withdraw(question.value["id"], principal="adjuster-18")
    world.gate = OSError("closed")
    with pytest.raises(OSError, match="closed"):
        world.graph.invoke(approve(question), thread("claim-0042", principal="boss"))
    for stranger in ("intake", "adjuster-18"):
        with pytest.raises(NotAllowed):
            journal.approvals.withdraw(question.value["id"], principal=stranger)

    assert journal.approvals.withdraw(question.value["id"], principal="boss").state == "withdrawn"


def test_who_submitted_may_take_a_question_back(opened: Any, tmp_path: Path) -> None:
    journal = opened()
    world = World(journal, tmp_path, approvers=("boss",))
    question = world.graph.invoke({"amount": 5}, thread("claim-0042", principal="intake"))["__interrupt__"][0]

    assert journal.approvals.withdraw(question.value["id"], principal="intake").state == "withdrawn"


def test_a_reject_is_not_taken_back(world: World) -> None:
    """Nothing may be done under it anyway; taken back, it could be asked again until somebody says yes."""
    question = world.asked()
    world.graph.invoke(reject(question, "no"), ADJUSTER)
    with pytest.raises(DecisionInvalid, match="was rejected"):
        world.journal.approvals.withdraw(question.value["id"], principal="adjuster-17")

    assert world.journal.approvals.get(question.value["id"]).state == "decided"


def test_who_submitted_does_not_take_back_what_is_being_decided(opened: Any, tmp_path: Path) -> None:
    """The question was theirs when they looked, and is rejected by the time they write."""
    journal = opened()
    world = World(journal, tmp_path, approvers=("boss",))
    question = world.graph.invoke({"amount": 5}, thread("claim-0042", principal="intake"))["__interrupt__"][0]
    approval_id = question.value["id"]
    with journal.store.transaction("approval.decide") as tx:
        tx.one(DECIDE, id=approval_id, decision='{"type": "reject"}', decided_by="boss")
        taker = Peer(journal, lambda: journal.approvals.withdraw(approval_id, principal="intake"))
        taker.until_blocked()

    assert isinstance(taker.error(), DecisionInvalid)
    assert journal.approvals.get(approval_id).state == "decided"


def test_two_nodes_do_not_ask_under_one_name(journal: Journal) -> None:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for name in ("a", "b"):
        builder.add_node(name, approval_node("payout", journal, payload=lambda s: PAYLOAD))
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    with pytest.raises(GraphRefused, match="nodes 'a' and 'b' ask under one name, 'payout'"):
        durable(builder, journal)


def test_a_withdrawal_needs_a_name_and_a_question_of_ours(world: World) -> None:
    question = world.asked()
    with pytest.raises(NotAllowed):
        world.journal.approvals.withdraw(question.value["id"], principal=None)
    with pytest.raises(UnknownApproval):
        world.journal.approvals.withdraw("apr_none", principal="adjuster-17")

    assert world.journal.approvals.get(question.value["id"]).state == "pending"


def test_a_graphs_own_interrupt_is_answered_and_not_withdrawn(journal: Journal) -> None:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("ask", lambda state: {"amount": interrupt("how much?")})
    builder.add_edge(START, "ask")
    graph = durable(builder, journal)
    [question] = graph.invoke({}, THREAD)["__interrupt__"]
    [row] = journal.approvals.pending()
    with pytest.raises(DecisionInvalid, match="takes an answer and nothing else"):
        journal.approvals.withdraw(row.id, principal="adjuster-17")

    assert graph.invoke(answer(question, 7), ADJUSTER)["amount"] == 7


def test_a_question_withdrawn_by_hand_is_found(world: World) -> None:
    question = world.asked()
    with world.journal.store.transaction("test") as tx:
        tx.all(
            "update approvals set state = 'withdrawn', withdrawn_by = 'nobody' where id = :id", id=question.value["id"]
        )

    assert ["withdrawn by somebody else" in fault for fault in world.journal.audit.verify()] == [True]


def test_other_arguments_than_were_approved_are_refused(world: World) -> None:
    world.arguments = {**PAYLOAD, "amount": 6}
    with pytest.raises(EffectNotApproved, match="must be the same JSON"):
        world.graph.invoke(approve(world.asked()), ADJUSTER)

    assert world.bank.calls == []


def test_an_edit_is_what_is_paid(world: World) -> None:
    world.graph.invoke(edit(world.asked(), {**PAYLOAD, "amount": 4}), ADJUSTER)

    assert [call["amount"] for call in world.bank.calls] == [4]


def test_after_an_edit_what_was_asked_is_not_paid(world: World) -> None:
    world.arguments = PAYLOAD
    with pytest.raises(EffectNotApproved, match="must be the same JSON"):
        world.graph.invoke(edit(world.asked(), {**PAYLOAD, "amount": 4}), ADJUSTER)

    assert world.bank.calls == []


def test_an_approval_that_expired_pays_nothing(world: World, clock: MovingClock) -> None:
    question = world.asked()
    clock.move(timedelta(days=4))
    with pytest.raises(ApprovalExpired):
        world.graph.invoke(approve(question), ADJUSTER)
    state = world.graph.invoke(None, THREAD)

    assert state["approvals"]["payout"]["expired"]
    assert (world.run().state, world.bank.calls) == ("done", [])


def test_an_expired_approval_is_refused_by_the_ledger_whatever_the_state_says(world: World, clock: MovingClock) -> None:
    """A state that was written by hand claims an approval that nobody gave."""
    question = world.asked()
    clock.move(timedelta(days=4))
    world.journal.approvals.apply_due("claim-0042")
    forged = {**world.journal.approvals.get(question.value["id"]).record(), "type": "approve", "expired": False}
    world.graph.compiled.update_state(THREAD, {"approvals": {"payout": forged}}, as_node="gate")
    with pytest.raises(EffectNotApproved, match="is expired"):
        world.graph.compiled.invoke(None, THREAD)

    assert world.bank.calls == []


def test_a_used_approval_of_another_visit_pays_nothing(world: World) -> None:
    """The state is made to name the approval of the visit before, for a payment of its own."""
    first = world.asked()
    done = world.graph.invoke(approve(first), ADJUSTER)
    used = done["approvals"]["payout"]
    world.graph.compiled.update_state(THREAD, {"approvals": {"payout": used}}, as_node="gate")
    with pytest.raises(EffectNotApproved, match="was used by effect"):
        world.graph.compiled.invoke(None, THREAD)

    assert len(world.bank.calls) == 1


def test_an_unused_approval_of_an_earlier_visit_pays_nothing(world: World) -> None:
    """Visit 0 was approved and its effect never came; visit 1 is rejected, and the state is made to name visit 0 all the same."""
    first = world.approved_and_stopped()
    record = world.journal.approvals.get(first).record()
    raw = world.graph.compiled
    raw.update_state(THREAD, {"amount": 5}, as_node="__start__")
    raw.invoke(None, THREAD)
    [second] = world.journal.approvals.pending(thread_id="claim-0042")
    assert second.visit == 1
    world.journal.approvals.decide(second.id, {"type": "reject"}, principal="adjuster-17")
    raw.update_state(THREAD, {"approvals": {"payout": record}}, as_node="gate")
    with pytest.raises(EffectNotApproved, match="belongs to visit 0 of node 'ask', which was answered again"):
        raw.invoke(None, THREAD)

    assert world.bank.calls == []


def test_an_approval_of_another_thread_pays_nothing(world: World) -> None:
    approval_id = world.approved_and_stopped()
    other = thread("claim-0043")
    world.graph.invoke({"amount": 5}, other)
    record = world.journal.approvals.get(approval_id).record()
    world.graph.compiled.update_state(other, {"approvals": {"payout": record}}, as_node="gate")
    with pytest.raises(EffectNotApproved, match="thread 'claim-0043' has no approval"):
        world.graph.compiled.invoke(None, other)

    assert world.bank.calls == []


def test_a_rejected_approval_pays_nothing_and_leaves_a_receipt(world: World) -> None:
    state = world.graph.invoke(reject(world.asked(), "no"), ADJUSTER)

    assert [receipt["state"] for receipt in state["effects"].values()] == ["skipped"]
    assert world.bank.calls == []
