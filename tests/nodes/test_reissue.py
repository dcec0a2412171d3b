"""An effect that was declined is tried again under a new key, by somebody who has a name, and never under the old one."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph

from checkpointing import Journal, open_journal
from checkpointing.doubts import unsettled
from checkpointing.effects import Claim
from checkpointing.errors import (
    Declined,
    EffectBusy,
    EffectConflict,
    EffectInDoubt,
    EffectNotApproved,
    NotAllowed,
    ReissueRefused,
    Rejected,
    UnknownEffect,
    Unreachable,
)
from checkpointing.leases import holding, slot_lease
from checkpointing.reconciling import adopt
from checkpointing.resolving import asked_again
from graph import DurableGraph, DurableState, approve, durable, thread
from nodes import approval_node, effect_node
from tests.support.bank import KEYED, Bank
from tests.support.points import die_at
from tests.support.processes import killed, start, until
from tools import Effect, Receiver, effect, reissue

THREAD = thread("claim-0042")
LEASE = timedelta(milliseconds=300)


class State(DurableState):
    payment: dict[str, Any]


class World:
    """A bank that declines while its account is closed, and keeps its word under every key it declined."""

    def __init__(self, journal: Journal, folder: Path, receiver: Receiver = KEYED, *, asks: bool = False) -> None:
        self.journal = journal
        self.bank = Bank(folder / "bank")
        self.closed = True
        self.said_no: set[str] = set()
        self.error: Exception | None = None

        @effect(receiver=receiver, name="pay", once=lambda arguments: arguments["claim_id"])
        def pay(*, claim_id: str, amount: int, key: str) -> dict[str, Any]:
            if self.error:
                raise self.error
            if self.closed or key in self.said_no:
                self.said_no.add(key)
                raise Declined("the account is closed")
            return self.bank.execute(claim_id=claim_id, amount=amount, key=key)

        self.pay: Effect = pay
        payload = {"claim_id": "0042", "amount": 5}
        builder = StateGraph(State)
        builder.add_node("ask", approval_node("payout", journal, payload=lambda s: payload))
        builder.add_node(
            "pay",
            effect_node(pay, journal, arguments=lambda s: payload, into="payment", approval="payout" if asks else None),
        )
        builder.add_edge(START, "ask" if asks else "pay")
        builder.add_edge("ask", "pay")
        self.graph: DurableGraph = durable(builder, journal)

    def declined(self) -> str:
        """Run until the bank has said no, and return the effect's key."""
        self.graph.invoke({}, THREAD)
        [record] = self.journal.effects.list(thread_id="claim-0042")
        assert record.declined
        return record.key


@pytest.fixture
def world(journal: Journal, tmp_path: Path) -> World:
    return World(journal, tmp_path)


def test_a_declined_effect_is_reissued_under_a_new_key(world: World) -> None:
    old = world.declined()
    world.closed = False
    record = reissue(world.journal, world.pay, old, principal="operator-3", reason="open again")

    assert (record.state, record.generation, record.outcome) == ("settled", 2, {"paid": 5, "key": record.key})
    assert record.key == f"{old}.2"
    assert [call["key"] for call in world.bank.calls] == [record.key]
    assert list(world.journal.audit.verify()) == []


def test_what_was_declined_stays_on_record(world: World) -> None:
    old = world.declined()
    world.closed = False
    record = reissue(world.journal, world.pay, old, principal="operator-3")

    before = world.journal.effects.get(old)
    assert (before.generation, before.declined, before.reissued_as) == (1, "the account is closed", record.key)
    [entry] = [one for one in world.journal.audit.entries("claim-0042") if one.event == "effect.reissue"]
    assert (entry.actor, entry.subject, entry.body["reissued_as"]) == ("operator-3", old, record.key)


def test_whatever_asks_for_the_slot_is_answered_with_the_new_outcome(world: World) -> None:
    world.closed = False
    record = reissue(world.journal, world.pay, _declined_once(world), principal="operator-3")
    other = world.graph.invoke({}, thread("the same claim again"))

    assert other["payment"] == record.outcome
    assert len(world.bank.calls) == 1


def _declined_once(world: World) -> str:
    world.closed = True
    key = world.declined()
    world.closed = False
    return key


def test_a_reissue_that_is_declined_too_is_reissued_by_its_new_key(world: World) -> None:
    first = world.declined()
    second = reissue(world.journal, world.pay, first, principal="operator-3")
    world.closed = False
    third = reissue(world.journal, world.pay, second.key, principal="operator-3")

    assert (second.declined, third.declined) == ("the account is closed", None)
    assert [first, f"{first}.2", f"{first}.3"] == [first, second.key, third.key]
    with pytest.raises(ReissueRefused, match=r"reissued by 'operator-3', as '.*\.2'"):
        world.journal.effects.reissue(first, principal="operator-4", max_key_length=255)


def test_what_happened_is_not_reissued(world: World) -> None:
    world.closed = False
    world.graph.invoke({}, THREAD)
    [record] = world.journal.effects.list(thread_id="claim-0042")
    with pytest.raises(ReissueRefused, match="happened"):
        reissue(world.journal, world.pay, record.key, principal="operator-3")

    assert len(world.bank.calls) == 1


def test_a_reissue_needs_a_name_and_a_known_key(world: World) -> None:
    key = world.declined()
    with pytest.raises(NotAllowed):
        reissue(world.journal, world.pay, key, principal=None)
    with pytest.raises(UnknownEffect):
        reissue(world.journal, world.pay, "no such key", principal="operator-3")
    other = world.bank.effect()
    other.name = "refund"
    with pytest.raises(ReissueRefused, match="is a 'pay', not a 'refund'"):
        reissue(world.journal, other, key, principal="operator-3")

    assert world.journal.effects.get(key).generation == 1


def test_two_reissues_at_once_are_one(world: World) -> None:
    key = world.declined()
    slot = world.journal.effects.get(key).slot
    with holding(world.journal.leases, slot_lease(slot)), pytest.raises(EffectBusy):
        reissue(world.journal, world.pay, key, principal="operator-4")

    assert world.journal.effects.get(key).generation == 1


def test_an_effect_in_doubt_gets_no_new_key(journal: Journal, tmp_path: Path) -> None:
    """Two keys are two effects if the first call happened after all."""
    world = World(journal, tmp_path, Receiver(attempts=1))
    world.error = Unreachable("no answer")
    with pytest.raises(EffectInDoubt) as doubt:
        world.graph.invoke({}, THREAD)
    with pytest.raises(ReissueRefused, match="another key would be another effect"):
        journal.effects.reissue(doubt.value.key, principal="operator-3", max_key_length=255)
    with pytest.raises(EffectInDoubt):
        reissue(journal, world.pay, doubt.value.key, principal="operator-3")

    assert journal.effects.get(doubt.value.key).state == "in_doubt"


def test_a_stored_failure_is_left_behind_once_a_person_has_said_nothing_happened(world: World) -> None:
    """A receiver that stores a 500 under its key answers it for ever: only another key gets through."""
    world.error = Unreachable("a stored 500")
    with pytest.raises(Exception, match="a stored 500"):
        world.graph.invoke({}, THREAD)
    [record] = world.journal.effects.list(thread_id="claim-0042")
    world.journal.effects.resolve(record.key, happened=False, principal="operator-3")
    world.error, world.closed = None, False
    with pytest.raises(ReissueRefused, match="its key still serves"):
        reissue(world.journal, world.pay, record.key, principal="operator-3")
    again = reissue(world.journal, world.pay, record.key, principal="operator-3", spoilt=True)

    assert (again.generation, again.state) == (2, "settled")
    assert world.graph.invoke(None, THREAD)["payment"] == again.outcome
    assert len(world.bank.calls) == 1


def test_a_reissue_acts_under_the_approval_it_was_given(journal: Journal, tmp_path: Path) -> None:
    world = World(journal, tmp_path, asks=True)
    parked = world.graph.invoke({}, THREAD)
    world.graph.invoke(approve(parked["__interrupt__"][0]), thread("claim-0042", principal="adjuster-17"))
    [record] = journal.effects.list(thread_id="claim-0042")
    world.closed = False
    again = reissue(journal, world.pay, record.key, principal="operator-3")

    assert (again.approval_id, again.state) == (record.approval_id, "settled")
    with pytest.raises(EffectNotApproved, match="used by effect"):
        _pay_under(journal, world, str(again.approval_id))


def test_a_reissue_does_not_outlive_its_approval(journal: Journal, tmp_path: Path) -> None:
    """The receiver refused the request and freed the slot; then the approval was taken back."""
    world = World(journal, tmp_path, asks=True)
    world.error = Rejected("no such payee")
    parked = world.graph.invoke({}, THREAD)
    with pytest.raises(Rejected):
        world.graph.invoke(approve(parked["__interrupt__"][0]), thread("claim-0042", principal="adjuster-17"))
    [record] = journal.effects.list(thread_id="claim-0042")
    assert record.approval_id
    journal.approvals.withdraw(record.approval_id, principal="adjuster-17", reason="wrong claim")
    world.error, world.closed = None, False
    with pytest.raises(EffectNotApproved, match="withdrawn"):
        reissue(journal, world.pay, record.key, principal="operator-3", spoilt=True)

    assert world.bank.calls == []
    assert journal.effects.get(record.key).generation == 1  # what was refused has changed nothing


def test_a_reissue_beside_the_end_of_its_run_does_not_bury_it(journal: Journal, tmp_path: Path) -> None:
    """The run was told of the decline; what a person tries beside it is none of its business."""
    world = World(journal, tmp_path)
    key = world.declined()
    freed = journal.effects.reissue(key, principal="operator-3", max_key_length=255)
    with holding(journal.leases, slot_lease(freed.slot)) as lease:
        asked = asked_again(journal.store, freed.key, lease, max_key_length=255)
        journal.effects.claim(asked, person_needed=lambda age: False)

        assert unsettled_in(journal) is None


def unsettled_in(journal: Journal) -> str | None:
    with journal.store.reading() as tx:
        return unsettled(tx, "claim-0042")


def test_what_was_adopted_between_a_reissue_and_its_call_is_whole(world: World) -> None:
    """The reissue was killed, the payment was made by hand with the new key, and a comparison took it over."""
    freed = world.journal.effects.reissue(world.declined(), principal="operator-3", max_key_length=255)
    adopt(world.journal.store, freed.key, {"paid": 5}, executed_id="tr_1", principal="operator-3")

    assert list(world.journal.audit.verify()) == []


def test_a_late_no_after_a_reissue_is_no_alarm(journal: Journal, tmp_path: Path) -> None:
    """A worker that stood still hears the same decline as its successor, when the effect has been reissued already."""
    world = World(journal, tmp_path)
    key = world.declined()
    with holding(journal.leases, "thread:late") as lease:
        late = Claim(journal.effects.get(key), lease, doubtful=False, age=timedelta(0), since_call=timedelta(0))
        world.closed = False
        reissue(journal, world.pay, key, principal="operator-3")
        settled = journal.effects.settle(late, {"declined": "the account is closed"})

    assert (settled.generation, settled.declined) == (1, "the account is closed")
    assert list(journal.audit.verify()) == []


def test_an_execution_beside_a_recorded_no_is_on_record(journal: Journal, tmp_path: Path) -> None:
    """A worker stood still before its call, another was declined, and then the first one is executed after all."""
    world = World(journal, tmp_path)
    key = world.declined()
    with holding(journal.leases, "thread:late") as lease:
        late = Claim(journal.effects.get(key), lease, doubtful=False, age=timedelta(0), since_call=timedelta(0))
        with pytest.raises(EffectConflict, match="both may have happened"):
            journal.effects.settle(late, {"paid": 5})

    assert [key in fault for fault in journal.audit.verify()] == [True]


@pytest.mark.parametrize("principal", [17, " ", "a\0b", "\ud800", None, ""])
def test_a_principal_is_a_name(world: World, principal: Any) -> None:
    key = world.declined()
    for refused in (
        lambda: reissue(world.journal, world.pay, key, principal=principal),
        lambda: world.journal.effects.resolve(key, happened=False, principal=principal),
        lambda: world.journal.runs.redrive("claim-0042", principal=principal),
        lambda: world.journal.approvals.withdraw("apr_1", principal=principal),
    ):
        with pytest.raises(NotAllowed):
            refused()

    assert list(world.journal.audit.verify()) == []


def test_a_reason_is_kept_whatever_is_in_it(world: World) -> None:
    key = world.declined()
    world.closed = False
    reissue(world.journal, world.pay, key, principal="operator-3", reason="a\0b \ud800")

    assert list(world.journal.audit.verify()) == []


def test_an_approval_may_be_withdrawn_between_a_reissue_and_its_call(journal: Journal, tmp_path: Path) -> None:
    world = World(journal, tmp_path, asks=True)
    parked = world.graph.invoke({}, THREAD)
    world.graph.invoke(approve(parked["__interrupt__"][0]), thread("claim-0042", principal="adjuster-17"))
    [record] = journal.effects.list(thread_id="claim-0042")
    freed = journal.effects.reissue(record.key, principal="operator-3", max_key_length=255)
    journal.approvals.withdraw(str(record.approval_id), principal="adjuster-17", reason="wrong claim")
    world.closed = False
    with pytest.raises(EffectNotApproved, match="withdrawn"):
        reissue(journal, world.pay, freed.key, principal="operator-3")

    assert world.bank.calls == []
    assert list(journal.audit.verify()) == []


def _pay_under(journal: Journal, world: World, approval_id: str) -> None:
    """Ask for another slot under the same approval, as a node would."""
    [record] = journal.effects.list(thread_id="claim-0042")
    with holding(journal.leases, "slot:other") as lease:
        asked = asked_again(journal.store, record.key, lease, max_key_length=255)
        other = replace(asked, slot=replace(asked.slot, identity="another claim"))
        journal.effects.claim(other, person_needed=lambda age: False)


@pytest.mark.parametrize(
    "point", ["before effect.reissue", "after effect.reissue", "after effect.claim", "before effect.settle"]
)
def test_a_reissue_that_was_killed_goes_on_under_the_key_it_had_begun(point: str, url: str, tmp_path: Path) -> None:
    with open_journal(url, lease=LEASE) as journal:
        key = World(journal, tmp_path).declined()
    killed(start(_reissue_and_die, url, tmp_path, key, point))
    with open_journal(url, lease=LEASE) as journal:
        world = World(journal, tmp_path)
        world.closed = False
        assert list(journal.audit.verify()) == []
        record = _when_free(journal, world)

    assert record == "settled"
    assert len(world.bank.executed) == 1
    assert key not in {call["key"] for call in world.bank.calls}


def _reissue_and_die(url: str, folder: Path, key: str, point: str) -> None:
    die_at(point)
    with open_journal(url, lease=LEASE) as journal:
        world = World(journal, folder)
        world.closed = False
        reissue(journal, world.pay, key, principal="operator-3")
    os.kill(os.getpid(), signal.SIGTERM)  # not reached


def _when_free(journal: Journal, world: World) -> str:
    """Reissue by whatever key the effect has now, once the victim's lease is over."""

    def attempt() -> str | None:
        [record] = journal.effects.list(thread_id="claim-0042")
        try:
            return reissue(journal, world.pay, record.key, principal="operator-3").state
        except EffectBusy:
            return None

    return until(attempt)
