"""Deciding on the pages: what is recorded, as whose, and what those are told who were late."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from graph import thread
from tests.inbox.conftest import Make
from tests.inbox.pages import Pages, asking, payload_of
from tests.support.clock import MovingClock


def test_an_approval_is_recorded_as_whoever_is_logged_in_whatever_the_form_says(inbox: Pages) -> None:
    asked = inbox.ask()
    visit = inbox.visit("ada", "approver")
    visit.get(f"/approvals/{asked.id}")
    visit.post(
        f"/approvals/{asked.id}",
        type="approve",
        payload_hash=asked.payload_hash,
        principal="eve",
        decided_by="eve",
        approval="apr_other",
    )

    decided = inbox.journal.approvals.get(asked.id)
    assert (decided.decided_by, decided.decision) == ("ada", {"type": "approve"})
    assert "You have approved this" in visit.said
    assert inbox.journal.runs.get(asked.thread_id).state == "admitted"


def test_a_reject_takes_a_reason(inbox: Pages) -> None:
    asked = inbox.ask()
    visit = inbox.visit("ada", "approver")
    visit.get(f"/approvals/{asked.id}")
    visit.post(f"/approvals/{asked.id}", type="reject", payload_hash=asked.payload_hash, reason="  ")
    assert (visit.status, "Say why" in visit.said) == (422, True)
    assert inbox.journal.approvals.get(asked.id).state == "pending"

    visit.post(
        f"/approvals/{asked.id}", type="reject", payload_hash=asked.payload_hash, reason="Not this car.\r\nSorry."
    )
    decided = inbox.journal.approvals.get(asked.id)
    assert decided.decision == {"type": "reject", "reason": "Not this car.\nSorry."}


def test_an_edit_keeps_the_kinds_of_the_payload(inbox: Pages) -> None:
    asked = inbox.ask()
    visit = inbox.visit("ada", "approver")
    visit.get(f"/approvals/{asked.id}")
    given = {
        "field.1": "1,234.50",
        "field.4": "later",
        "field.5": "true",
        "field.6": "less",
        "field.7": "4",
        "field.9": '["b"]',
    }
    visit.post(f"/approvals/{asked.id}", {**given, "field.0": "0099"}, type="edit", payload_hash=asked.payload_hash)

    decided = inbox.journal.approvals.get(asked.id)
    changed = {"amount": 123_450, "speed": "later", "urgent": True, "note": "less", "days": 4, "tags": ["b"]}
    assert decided.decision == {"type": "edit", "payload": {**asked.payload, **changed}}
    assert "1,840.00 EUR" in visit.said
    assert "1,234.50 EUR" in visit.said
    inbox.graph.invoke(None, thread(asked.thread_id))
    assert inbox.journal.runs.get(asked.thread_id).state == "done"


def test_an_edit_that_cannot_be_read_is_said_beside_its_field_and_loses_nothing(inbox: Pages) -> None:
    asked = inbox.ask()
    visit = inbox.visit("ada", "approver")
    visit.get(f"/approvals/{asked.id}")
    given = {"field.1": "12.345", "field.6": "kept", "reason": "because of this"}
    visit.post(f"/approvals/{asked.id}", given, type="edit", payload_hash=asked.payload_hash)

    assert visit.status == 422
    assert "EUR has 2 decimals" in visit.said
    assert 'value="12.345"' in visit.last
    assert 'value="kept"' in visit.last
    assert "because of this" in visit.last
    assert '<details class="other" id="edit" open>' in visit.last
    assert inbox.journal.approvals.get(asked.id).state == "pending"


def test_an_edit_keeps_within_bounds_and_changes_something(inbox: Pages) -> None:
    asked = inbox.ask()
    visit = inbox.visit("ada", "approver")
    visit.get(f"/approvals/{asked.id}")
    for amount, said in (("0.00", "Out of bounds"), ("10000.01", "Out of bounds"), ("1840.00", "Nothing was changed")):
        visit.post(f"/approvals/{asked.id}", {"field.1": amount}, type="edit", payload_hash=asked.payload_hash)

        assert (visit.status, said in visit.said) == (422, True), amount
        assert inbox.journal.approvals.get(asked.id).state == "pending"


def test_whoever_is_slower_is_told_who_was_faster_and_what_they_decided(inbox: Pages) -> None:
    asked = inbox.ask()
    visit = inbox.visit("ada", "approver")
    visit.get(f"/approvals/{asked.id}")
    inbox.decide(asked, by="ben")
    visit.post(f"/approvals/{asked.id}", type="reject", payload_hash=asked.payload_hash, reason="I would not")

    assert visit.status == 409
    assert "ben was faster" in visit.said
    assert "ben has approved it just now" in visit.said
    assert "You wanted to reject it; that was not recorded. You wrote: I would not" in visit.said
    assert inbox.journal.approvals.get(asked.id).decided_by == "ben"


def test_the_same_answer_twice_is_one_answer(inbox: Pages) -> None:
    """A double click, or a browser that sends again what it got no answer to."""
    asked = inbox.ask()
    visit = inbox.visit("ada", "approver")
    visit.get(f"/approvals/{asked.id}")
    for _ in range(2):
        visit.post(f"/approvals/{asked.id}", type="approve", payload_hash=asked.payload_hash)
        assert (visit.status, "You have approved this" in visit.said) == (200, True)


def test_another_answer_of_the_same_kind_is_not_the_same_answer(inbox: Pages) -> None:
    asked = inbox.ask()
    visit = inbox.visit("ada", "approver")
    visit.get(f"/approvals/{asked.id}")
    visit.post(f"/approvals/{asked.id}", type="reject", payload_hash=asked.payload_hash, reason="The wrong car.")
    visit.post(f"/approvals/{asked.id}", type="reject", payload_hash=asked.payload_hash, reason="The wrong driver.")

    assert (visit.status, "that was not recorded" in visit.said) == (409, True)


def test_an_answer_after_the_end_is_told_what_it_came_to(inbox: Pages, clock: MovingClock) -> None:
    asked = inbox.ask()
    visit = inbox.visit("ada", "approver")
    visit.get(f"/approvals/{asked.id}")
    clock.move(timedelta(hours=11))
    clock.move(timedelta(days=3))
    visit = inbox.visit("ada", "approver")
    visit.post(f"/approvals/{asked.id}", type="approve", payload_hash=asked.payload_hash)
    assert (visit.status, "The time is over" in visit.said) == (409, True)
    assert "You wanted to approve it; that was not recorded" in visit.said

    inbox.journal.approvals.apply_due(asked.thread_id)
    visit.get(f"/approvals/{asked.id}")
    assert "So it is rejected" in visit.said


def test_a_withdrawn_question_says_who_took_it_back_and_why(inbox: Pages) -> None:
    asked = inbox.ask()
    visit = inbox.visit("ada", "approver")
    visit.get(f"/approvals/{asked.id}")
    inbox.journal.approvals.withdraw(asked.id, principal="clerk", reason="Asked in error.")
    visit.post(f"/approvals/{asked.id}", type="approve", payload_hash=asked.payload_hash)

    assert visit.status == 409
    assert "clerk took it back" in visit.said
    assert "Asked in error." in visit.said


def test_a_stale_page_decides_nothing_and_leads_to_the_new_question_that_says_what_changed(
    inbox: Pages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = inbox.ask(about={"facts": {"Estimate": "1840.00"}})
    visit = inbox.visit("ada", "approver")
    visit.get(f"/approvals/{asked.id}")

    def grown(state: Any) -> dict[str, Any]:
        return {**payload_of(state), "amount": 214_000}

    monkeypatch.setattr("tests.inbox.pages.payload_of", grown)
    changed = asking(inbox.journal, tmp_path)
    with inbox.journal.store.transaction("test.wake") as tx:
        tx.all("update runs set state = 'admitted', due_ms = 0 where thread_id = :thread_id", thread_id=asked.thread_id)
    changed.invoke(None, thread(asked.thread_id))
    visit.post(f"/approvals/{asked.id}", type="approve", payload_hash=asked.payload_hash)

    assert (visit.status, "The facts have changed" in visit.said) == (409, True)
    [newest] = inbox.journal.approvals.pending(thread_id=asked.thread_id)
    assert f'href="/approvals/{newest.id}"' in visit.last
    visit.get(f"/approvals/{newest.id}")
    assert "What changed since it was asked before" in visit.said
    assert "Amount 1,840.00 EUR 2,140.00 EUR +300.00" in visit.said


def test_a_form_for_another_payload_is_refused(inbox: Pages) -> None:
    asked = inbox.ask()
    visit = inbox.visit("ada", "approver")
    visit.get(f"/approvals/{asked.id}")
    visit.post(f"/approvals/{asked.id}", type="approve", payload_hash="0" * 64)
    assert (visit.status, "Look at it again" in visit.said) == (409, True)

    visit.post(f"/approvals/{asked.id}", type="approve")
    assert (visit.status, inbox.journal.approvals.get(asked.id).state) == (409, "pending")


def test_an_amount_above_ones_limit_is_refused_in_words(inbox: Pages) -> None:
    asked = inbox.ask()
    visit = inbox.visit("ada", "approver", limit=100_000)
    visit.get(f"/approvals/{asked.id}")
    assert "You may approve up to 1,000.00 EUR" in visit.said
    visit.post(f"/approvals/{asked.id}", type="approve", payload_hash=asked.payload_hash)

    assert (visit.status, inbox.journal.approvals.get(asked.id).state) == (403, "pending")


def test_several_people_see_how_many_have_said_so(make_inbox: Make) -> None:
    inbox = make_inbox(quorum=2)
    asked = inbox.ask()
    ada, ben = inbox.visit("ada", "approver"), inbox.visit("ben", "approver")
    ada.get(f"/approvals/{asked.id}")
    ada.post(f"/approvals/{asked.id}", type="approve", payload_hash=asked.payload_hash)
    assert "You have said: approved" in ada.said
    assert "1 of 2" in ada.said

    ben.get(f"/approvals/{asked.id}")
    assert "ada: approved" in ben.said
    ben.post(f"/approvals/{asked.id}", type="approve", payload_hash=asked.payload_hash)
    assert "With them: ada" in ben.said
    assert inbox.journal.approvals.get(asked.id).state == "decided"


def test_a_change_that_takes_two_says_what_the_first_one_wants(make_inbox: Make) -> None:
    inbox = make_inbox(four_eyes=True)
    asked = inbox.ask()
    ada, ben = inbox.visit("ada", "approver"), inbox.visit("ben", "approver")
    ada.get(f"/approvals/{asked.id}")
    assert "A change takes 2 people who want exactly the same" in ada.said
    ada.post(f"/approvals/{asked.id}", {"field.1": "1500"}, type="edit", payload_hash=asked.payload_hash)
    assert inbox.journal.approvals.get(asked.id).state == "pending"

    ben.get(f"/approvals/{asked.id}")
    assert "ada: changed and approved Amount: 1,840.00 EUR → 1,500.00 EUR" in ben.said
    ben.post(f"/approvals/{asked.id}", {"field.1": "1500"}, type="edit", payload_hash=asked.payload_hash)
    assert "You have changed and approved this" in ben.said
    assert "With them: ada" in ben.said


def test_the_decision_on_another_graphs_run_is_recorded_and_wakes_it(inbox: Pages, tmp_path: Path) -> None:
    other = asking(inbox.journal, tmp_path, name="others")
    other.invoke({"claim_id": "7", "amount": 500, "about": {}}, thread("other-7", principal="clerk"))
    [asked] = inbox.journal.approvals.pending(thread_id="other-7")
    visit = inbox.visit("ada", "approver")
    visit.get(f"/approvals/{asked.id}")
    visit.post(f"/approvals/{asked.id}", type="approve", payload_hash=asked.payload_hash)

    assert "You have approved this" in visit.said
    assert inbox.journal.runs.get("other-7").state == "admitted"


def test_after_a_decision_the_next_one_is_at_hand(inbox: Pages, clock: MovingClock) -> None:
    first = inbox.ask("0042")
    clock.move(timedelta(hours=1))
    second = inbox.ask("0043", amount=300_000)
    visit = inbox.visit("ada", "approver")
    visit.get(f"/approvals/{first.id}")
    visit.post(f"/approvals/{first.id}", type="approve", payload_hash=first.payload_hash)
    assert f'href="/approvals/{second.id}" data-key="n"' in visit.last

    visit.get(f"/approvals/{second.id}")
    assert "Of the last 1: 1 approved" in visit.said
    visit.post(f"/approvals/{second.id}", type="approve", payload_hash=second.payload_hash)
    assert "Nothing else waits for you" in visit.said
