"""The audit finds what was changed, removed, added or cut off, and what never was in it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from checkpointing import Journal
from checkpointing.admissions import Admission
from checkpointing.audit import append
from checkpointing.questions import Question
from checkpointing.slots import Place
from graph import thread
from tests.support.small_claim import THREAD, act, small_claim

COPY = """
insert into runs (thread_id, state, reason, waits_for, error, input_type, input, input_digest, submission, turn, attempts,
    resumes, head, submitted_by, graph, created_ms, updated_ms) select 'c', state, reason, waits_for, error, input_type, input, input_digest, submission, turn, attempts,
    resumes, head, submitted_by, graph, created_ms, updated_ms
from runs where thread_id = 'a'
"""


@pytest.fixture
def whole(journal: Journal) -> Journal:
    """A journal with two threads and a decided approval."""
    for thread_id in ("a", "b"):
        journal.runs.admit(Admission(thread_id, "json", b"{}", "digest", "", "clerk-1", graph="", takes_turns=False))
        asked = journal.approvals.open(
            Question(thread_id, "approve", "payout", 0, {"amount": 5}, ("approve", "reject")),
            place=Place(None, "root", "task", "@root"),
        )
        journal.approvals.decide(asked.id, {"type": "approve", "reason": "fine"}, principal="adjuster-17")
    return journal


def test_a_whole_record(whole: Journal) -> None:
    entries = whole.audit.entries("a")

    assert [entry.event for entry in entries] == ["run.admit", "approval.open", "approval.decide"]
    assert entries[2].actor == "adjuster-17"
    assert entries[2].body["reason"] == "fine"
    assert list(whole.audit.verify()) == []


@pytest.mark.parametrize(
    ("tampering", "found"),
    [
        ("update audit set actor = 'somebody' where thread_id = 'a' and seq = 2", "entry 2 (approval.open) was changed"),
        ("update audit set body = '{}' where thread_id = 'a' and seq = 3", "entry 3 (approval.decide) was changed"),
        ("update audit set at_ms = at_ms + 1 where thread_id = 'a' and seq = 1", "entry 1 (run.admit) was changed"),
        ("delete from audit where thread_id = 'a' and seq = 2", "entry 2 is missing"),
        ("delete from audit where thread_id = 'a' and seq = 3", "the chain ends at entry 2 and its head is 3"),
        ("delete from audit_heads where thread_id = 'a'", "its entries is not in the audit"),
        (COPY, "a run is not in the audit"),
        ("update approvals set decided_by = 'mallory' where thread_id = 'a'", "has another decision than was recorded"),
        ("update approvals set payload = '{\"amount\": 6}' where thread_id = 'a'", "asks about another payload than was recorded"),
        ("update approvals set on_expiry = 'approve' where thread_id = 'a'", "has other terms than were recorded: who may decide what until when"),
        ("update runs set submitted_by = null where thread_id = 'a'", "its run has another submitter, turn or input than was recorded"),
        ("delete from runs where thread_id = 'a'", "its run is in the audit and not among the runs"),
        ("delete from approvals where thread_id = 'a'", "is in the audit and not among the approvals"),
    ],
)  # fmt: skip
def test_tampering_is_found(whole: Journal, tampering: str, found: str) -> None:
    with whole.store.transaction("test.tamper") as tx:
        tx.all(tampering)

    faults = list(whole.audit.verify())
    assert [fault.endswith(found) for fault in faults[:1]] == [True]
    assert all("'b'" not in fault for fault in faults)


FORGED = "insert into approval_votes (approval_id, principal, tier, decision, approved, voted_ms) select id, 'ben', 0, '{\"type\": \"approve\"}', payload_hash, 0 from approvals"


@pytest.mark.parametrize("voters", [("ada",), ("ada", "carl")])
@pytest.mark.parametrize(
    ("tampering", "found"),
    [
        (FORGED, "has other votes than were recorded"),
        ("update approval_votes set principal = 'zed' where principal = 'ada'", "has other votes than were recorded"),
        ("update approval_votes set decision = '{\"type\": \"edit\"}'", "has other votes than were recorded"),
        ("delete from approval_votes where principal = 'ada'", "has other votes than were recorded"),
        ("update approvals set about = '{\"why\": \"small\"}'", "shows something else beside its payload than was recorded"),
        ("update approvals set payload_hash = 'ff'", "asks about another payload than was recorded"),
    ],
)  # fmt: skip
def test_a_vote_that_was_cast_by_hand_is_found(
    journal: Journal, voters: tuple[str, ...], tampering: str, found: str
) -> None:
    question = Question("a", "approve", "payout", 0, {"amount": 5}, ("approve",), quorum=2, about={"why": "large"})
    asked = journal.approvals.open(question, place=Place(None, "root", "task", "@root"))
    for name in voters:
        journal.approvals.decide(asked.id, {"type": "approve"}, principal=name)
    assert list(journal.audit.verify()) == []

    with journal.store.transaction("test.tamper") as tx:
        tx.all(tampering)

    [fault] = journal.audit.verify()
    assert fault.endswith(found)


@pytest.mark.parametrize("state", ["decided", "expired"])
def test_a_question_that_was_decided_by_hand_is_found(journal: Journal, state: str) -> None:
    asked = Question("a", "approve", "payout", 0, {"amount": 5}, ("approve", "reject"))
    journal.approvals.open(asked, place=Place(None, "root", "task", "@root"))
    with journal.store.transaction("test.tamper") as tx:
        tx.all(
            "update approvals set state = :state, decision = '{\"type\": \"approve\"}', decided_by = 'boss'",
            state=state,
        )

    [fault] = journal.audit.verify()
    assert fault.endswith("was decided, and by nobody on record")


def test_a_thread_that_moves_while_it_is_verified_raises_no_alarm(journal: Journal, tmp_path: Path) -> None:
    graph = small_claim(journal, tmp_path)
    act(graph, "submit")
    faults: list[str] = []
    stop = threading.Event()

    def verify() -> None:
        while not stop.is_set():
            faults.extend(journal.audit.verify())

    verifier = threading.Thread(target=verify)
    verifier.start()
    act(graph, "approve")
    for number in range(10):
        graph.invoke({"claim_id": str(number)}, thread(f"other-{number}"))
    stop.set()
    verifier.join(60)

    assert faults == []


def test_a_second_decision_on_record_is_found(journal: Journal, tmp_path: Path) -> None:
    """No code writes one; a journal that was put together from two might have it."""
    graph = small_claim(journal, tmp_path)
    act(graph, "submit")
    act(graph, "approve")
    [decided] = [one for one in journal.audit.entries(THREAD) if one.event == "approval.decide"]
    with journal.store.transaction("test") as tx:
        append(tx, THREAD, "approval.decide", actor=decided.actor, subject=decided.subject, **decided.body)

    assert [f"approval {decided.subject!r} was decided twice" in fault for fault in journal.audit.verify()] == [True]


def test_a_thread_that_was_erased_from_the_audit_is_missed(whole: Journal) -> None:
    with whole.store.transaction("test.tamper") as tx:
        tx.all("delete from audit where thread_id = 'a'")
        tx.all("delete from audit_heads where thread_id = 'a'")

    assert len(list(whole.audit.verify())) == 2


def test_no_payload_is_in_the_audit(whole: Journal) -> None:
    assert "amount" not in str(whole.audit.entries("a"))


@pytest.mark.parametrize(
    ("tampering", "found"),
    [
        (
            "update effects set outcome = '{\"paid\": 6}'",
            "is settled with another outcome than was recorded",
        ),
        (
            "update effects set state = 'in_doubt'",
            "is in_doubt with another outcome than was recorded",
        ),
        ("update effects set digest = 'other'", "has other arguments, or another approval, than were recorded"),
        ("update effects set state = 'released'", "is released with another outcome than was recorded"),
        ("delete from effects", "is in the audit and not in the ledger"),
    ],
)
def test_an_effect_that_was_changed_by_hand_is_found(
    journal: Journal, tmp_path: Path, tampering: str, found: str
) -> None:
    graph = small_claim(journal, tmp_path)
    act(graph, "submit")
    act(graph, "approve")
    assert list(journal.audit.verify()) == []
    with journal.store.transaction("test.tamper") as tx:
        tx.all(tampering)

    faults = list(journal.audit.verify())
    assert len(faults) == 3
    assert all(fault.endswith(found) for fault in faults)
