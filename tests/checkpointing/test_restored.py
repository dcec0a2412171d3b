"""What was executed before a journal was restored answers whoever asks for it first, and nothing is called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from checkpointing import EffectRecord, Journal
from checkpointing.budget import Caps
from checkpointing.effects import Claim, Request
from checkpointing.errors import EffectConflict
from checkpointing.restored import Execution, newest_ms, record, recorded, thread_of
from checkpointing.slots import Place, Slot, make_key
from tests.support.clock import MovingClock

DIGEST = "0123456789abcdef"
PAID = {"id": "tr_1", "claim_id": "0042", "amount": 5, "currency": "EUR"}
ASKED = {"claim_id": "0042", "amount": 5, "currency": "eur"}


@pytest.fixture
def journal(opened: Callable[..., Journal], clock: MovingClock) -> Journal:
    return opened(clock=clock)


def lost(key: str | None, *, identity: str | None = None, **other: Any) -> Execution:
    """An execution that the ledger does not know."""
    made = Execution("pay", "tr_1", key, identity, PAID, 1_000, taken_back=False, recorded_by="operator-3")
    return replace(made, **other)


def asked(journal: Journal, thread_id: str = "a", *, once: str | None = None, **other: Any) -> Request:
    """A request under a lease of its own."""
    place = Place(journal.leases.take(f"thread:{thread_id}"), "root", "task", "@root")
    made = Request(Slot(thread_id, "pay.0", "pay", once), place, "pay", ASKED, DIGEST, "whole", None, 5)
    return replace(made, **other)


def answered(journal: Journal, request: Request) -> Claim | EffectRecord:
    return journal.effects.claim(request, person_needed=lambda _age: False)


def test_the_request_that_was_sent_is_answered_as_a_replay(journal: Journal) -> None:
    request = asked(journal)
    assert record(journal.store, lost(request.key))

    found = answered(journal, request)

    assert isinstance(found, EffectRecord)
    assert (found.state, found.outcome, found.key, found.calls, found.replays) == ("settled", PAID, request.key, 0, 1)
    entry = journal.audit.entries("a")[-1]
    assert (entry.event, entry.subject, entry.actor) == ("effect.adopt", request.key, request.place.held.owner)
    assert (entry.body["executed"], entry.body["recorded_by"]) == ("tr_1", "operator-3")
    assert [fault for fault in journal.audit.verify() if "a run" not in fault] == []
    with journal.store.reading() as tx:
        assert tx.all("select cost, spent_money from effects") == [{"cost": 5, "spent_money": 5}]
    assert answered(journal, request) == replace(found, replays=1)


@pytest.mark.parametrize("generation", [1, 2, 8])
@pytest.mark.parametrize("longest", [255, 40, 0])
def test_every_key_that_the_request_may_have_been_sent_with_is_known(
    journal: Journal, generation: int, longest: int
) -> None:
    """A reissue that is lost too sent a later key, and a receiver that took less got the short form."""
    key = make_key(Slot("a", "pay.0", "pay"), DIGEST, max_length=longest, generation=generation)
    record(journal.store, lost(key))

    found = answered(journal, asked(journal, max_key_length=40))

    assert isinstance(found, EffectRecord)
    assert (found.key, found.generation) == (key, generation)


def test_a_cap_does_not_refuse_what_was_spent_before_the_restore(journal: Journal) -> None:
    request = asked(journal)
    capped = replace(request, place=replace(request.place, caps=Caps(money=0)))
    record(journal.store, lost(request.key))

    found = answered(journal, capped)

    assert isinstance(found, EffectRecord)
    assert found.outcome == PAID


def test_another_request_is_claimed_and_called(journal: Journal) -> None:
    record(journal.store, lost(asked(journal, "b").key))

    assert isinstance(answered(journal, asked(journal)), Claim)


def test_what_was_taken_back_answers_for_nothing(journal: Journal) -> None:
    request = asked(journal)
    assert record(journal.store, lost(request.key))
    assert not record(journal.store, lost(request.key))
    assert record(journal.store, lost(request.key, taken_back=True))

    assert isinstance(answered(journal, request), Claim)


def test_a_slot_that_was_released_before_the_copy_is_answered_too(journal: Journal) -> None:
    request = asked(journal)
    claim = answered(journal, request)
    assert isinstance(claim, Claim)
    journal.effects.release(claim, why="the receiver refused it")
    repaired = replace(request, digest="f" * 16, arguments={**ASKED, "amount": 6})
    record(journal.store, lost(repaired.key))

    found = answered(journal, repaired)

    assert isinstance(found, EffectRecord)
    assert (found.state, found.key, found.arguments) == ("settled", repaired.key, repaired.arguments)
    assert [fault for fault in journal.audit.verify() if "a run" not in fault] == []


@pytest.mark.parametrize("key", [f"b:pay.0:pay:{DIGEST}", f"b:pay.0:pay:{DIGEST}.2", "cf_" + "0" * 32, None])
def test_another_threads_execution_for_the_same_identity_and_arguments_answers(
    journal: Journal, key: str | None
) -> None:
    """By the digest in its key, or by all its facts where the key does not tell."""
    record(journal.store, lost(key, identity="0042"))
    request = asked(journal, once="0042")

    found = answered(journal, request)

    assert isinstance(found, EffectRecord)
    assert (found.outcome, found.key) == (PAID, key or request.key)


@pytest.mark.parametrize(
    "outcome", [{**PAID, "amount": 6}, {**PAID, "currency": "USD"}, {name: PAID[name] for name in ("id", "amount")}]
)
def test_anything_else_for_the_same_identity_is_a_conflict_and_not_called(
    journal: Journal, outcome: dict[str, Any]
) -> None:
    record(journal.store, lost(f"b:pay.0:pay:{'f' * 16}", identity="0042", outcome=outcome))

    with pytest.raises(EffectConflict, match="was executed as 'tr_1' with other arguments"):
        answered(journal, asked(journal, once="0042"))
    assert journal.effects.list() == []


def test_an_identity_is_nothing_to_an_effect_that_declares_none(journal: Journal) -> None:
    record(journal.store, lost(None, identity="0042"))

    assert isinstance(answered(journal, asked(journal)), Claim)


def test_a_key_that_the_ledger_has_is_not_recorded(journal: Journal) -> None:
    """A worker was faster, and its call was honoured by the receiver."""
    request = asked(journal)
    answered(journal, request)

    assert not record(journal.store, lost(request.key))
    assert recorded(journal.store, "pay", "tr_1") is None


def test_who_recorded_it_is_in_the_audit_of_the_thread_where_there_is_one(journal: Journal) -> None:
    assert newest_ms(journal.store) is None
    key = asked(journal).key
    with journal.store.transaction("test.begin") as tx:
        tx.all("insert into audit_heads (thread_id, seq, hash) values ('a', 0, '')")
    record(journal.store, lost(key))
    record(journal.store, lost(asked(journal, "b").key, id="tr_2"))

    [entry] = journal.audit.entries("a")
    assert (entry.event, entry.actor, entry.subject, entry.body["executed"]) == (
        "execution.record",
        "operator-3",
        key,
        "tr_1",
    )
    assert newest_ms(journal.store) == entry.at_ms
    assert journal.audit.entries("b") == []


@pytest.mark.parametrize(
    ("key", "thread_id"),
    [
        (f"a:pay.0:pay:{DIGEST}", "a"),
        (f"a:b:sub/pay.2:pay:{DIGEST}.3", "a:b"),
        (f"a:pay.0:notify:{DIGEST}", None),
        ("cf_" + "0" * 32, None),
        (None, None),
    ],
)
def test_the_thread_stands_in_the_key(key: str | None, thread_id: str | None) -> None:
    assert thread_of(lost(key)) == thread_id
