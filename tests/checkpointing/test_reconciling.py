"""What a comparison with a receiver asks of the ledger, and adopting what the receiver executed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from checkpointing import Journal, reconciling
from checkpointing.effects import Claim, Request
from checkpointing.errors import AlreadySettled, EffectBusy, UnknownEffect
from checkpointing.reconciling import KEYS, adopt, at_slot_of, known, settled_since
from checkpointing.slots import Place, Slot
from tests.support.clock import MovingClock

PAID = {"id": "tr_1", "amount": 5}


@pytest.fixture
def journal(opened: Callable[..., Journal], clock: MovingClock) -> Journal:
    return opened(clock=clock)


def claimed(
    journal: Journal,
    thread_id: str = "a",
    *,
    digest: str = "d",
    once: str | None = None,
    step: str = "pay.0",
    lease: str | None = None,
) -> Claim:
    """Claim a payment under a lease of its own."""
    place = Place(journal.leases.take(lease or f"thread:{thread_id}"), "root", "task", "@root")
    slot = Slot(thread_id, step, "pay", once)
    claim = journal.effects.claim(
        Request(slot, place, "pay", {"amount": 5}, digest, "whole", None, 0), person_needed=lambda _age: False
    )
    assert isinstance(claim, Claim)
    return claim


def left(journal: Journal, claim: Claim) -> str:
    """Let the worker go without an outcome; return the key."""
    journal.leases.give_back(claim.lease)
    return claim.record.key


def taken(journal: Journal, key: str, who: str = "operator-3") -> reconciling.Adopted:
    return adopt(journal.store, key, PAID, executed_id="tr_1", principal=who)


@pytest.mark.parametrize("state", ["claimed", "in_doubt", "released"])
def test_what_nobody_settled_is_adopted_with_who_answers_for_it(journal: Journal, state: str) -> None:
    claim = claimed(journal)
    if state == "in_doubt":
        journal.effects.doubt(claim, why="no answer")
    key = left(journal, claim)
    if state == "released":
        journal.effects.resolve(key, happened=False, principal="operator-1")
    assert journal.effects.get(key).state == state

    made = taken(journal, key)

    assert (made.record.state, made.record.outcome, made.woken) == ("settled", PAID, ())
    entry = journal.audit.entries("a")[-1]
    assert (entry.event, entry.actor, entry.body["executed"], entry.body["was"]) == (
        "effect.resolve",
        "operator-3",
        "tr_1",
        state,
    )
    assert [fault for fault in journal.audit.verify() if "a run" not in fault] == []


def test_a_claim_is_not_adopted_while_its_owner_lives_and_then_is(journal: Journal, clock: MovingClock) -> None:
    claim = claimed(journal)

    with pytest.raises(EffectBusy):
        taken(journal, claim.record.key)
    assert journal.effects.get(claim.record.key).state == "claimed"
    clock.move(timedelta(minutes=1))
    assert taken(journal, claim.record.key).record.state == "settled"


def test_an_outcome_is_never_replaced(journal: Journal) -> None:
    claim = claimed(journal)
    journal.effects.settle(claim, {"id": "tr_0"})

    with pytest.raises(AlreadySettled):
        taken(journal, claim.record.key)
    assert journal.effects.get(claim.record.key).outcome == {"id": "tr_0"}


def test_an_effect_that_nobody_claimed_cannot_be_adopted(journal: Journal) -> None:
    with pytest.raises(UnknownEffect):
        taken(journal, "nobody's")


def test_the_worker_that_comes_back_gets_what_was_adopted(journal: Journal, clock: MovingClock) -> None:
    claim = claimed(journal)
    clock.move(timedelta(minutes=1))
    taken(journal, claim.record.key)

    assert journal.effects.settle(claim, {"id": "tr_other"}).outcome == PAID


def test_a_page_of_keys_is_one_answer(journal: Journal, clock: MovingClock) -> None:
    gone = claimed(journal, "gone")
    clock.move(timedelta(minutes=1))
    live = claimed(journal, "live")
    keys = [gone.record.key, live.record.key, *(f"other-{number}" for number in range(KEYS - 2))]

    found = known(journal.effects, keys)

    assert {key: one.in_progress for key, one in found.items()} == {gone.record.key: False, live.record.key: True}


def test_what_was_settled_since_is_listed_whole_whatever_the_page(
    journal: Journal, clock: MovingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciling, "ROWS", 2)
    claims = []
    for number in range(6):
        claims.append(claimed(journal, f"t-{number}"))
        clock.move(timedelta(seconds=1 if number % 2 else 0))
    clock.move(timedelta(days=1))
    since_ms = journal.store.now_ms()
    for claim in claims[:5]:
        journal.effects.settle(claim, PAID)
    clock.move(timedelta(days=1))
    journal.effects.settle(claimed(journal, "late"), PAID)

    listed = [record.thread_id for record in settled_since(journal.store, "pay", since_ms)]
    assert listed == ["t-0", "t-1", "t-2", "t-3", "t-4", "late"]
    assert [record.thread_id for record in settled_since(journal.store, "pay", since_ms + 1)] == ["late"]
    assert list(settled_since(journal.store, "notify", 0)) == []


def test_the_slot_of_an_unknown_key_is_found_by_identity_and_by_the_claim_on_record(journal: Journal) -> None:
    once = claimed(journal, "a", once="0042")
    old = left(journal, claimed(journal, "b"))
    journal.effects.resolve(old, happened=False, principal="operator-1")
    new = claimed(journal, "b", digest="e")

    by_identity = at_slot_of(journal.effects, "pay", key="stranger", identity="0042")
    by_record = at_slot_of(journal.effects, "pay", key=old, identity=None)

    assert by_identity
    assert by_identity.record.key == once.record.key
    assert by_record
    assert by_record.record.key == new.record.key != old
    assert at_slot_of(journal.effects, "pay", key="stranger", identity=None) is None
    assert at_slot_of(journal.effects, "pay", key=None, identity="0043") is None
