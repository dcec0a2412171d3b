"""A run's page, the list of one's own runs, and the operator's page: what they show of whom."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from checkpointing.leases import holding, thread_lease
from checkpointing.tiers import Tier
from graph import approve, thread
from tests.inbox.conftest import Make
from tests.inbox.pages import Pages, asking
from tests.support.clock import MovingClock


def section(page: str, name: str) -> str:
    """Return one section of the operator's page as text."""
    found = re.search(rf'aria-labelledby="{name}">(.*?)</section>', page, re.DOTALL)
    assert found is not None
    return " ".join(re.sub(r"<[^>]*>", " ", found[1]).split())


def test_the_operators_page_sorts_the_runs_by_what_they_need(inbox: Pages, clock: MovingClock) -> None:
    inbox.ask("waits")
    stuck, held = inbox.ask("stuck"), inbox.ask("held")
    for asked in (stuck, held):
        inbox.decide(asked)
    visit = inbox.visit("olga", "operator")
    assert "claim-stuck" not in section(visit.get("/operate"), "stuck")

    clock.move(timedelta(minutes=2))
    with holding(inbox.journal.leases, thread_lease(held.thread_id)):
        page = visit.get("/operate")
    assert "claim-waits for a decision: Payout for claim-waits" in section(page, "waiting")
    assert "claim-stuck ready, and no worker has taken it up for 2 minutes" in section(page, "stuck")
    assert "claim-held by" in section(page, "running")
    assert "claim-held" not in section(page, "stuck")


def test_what_nobody_has_ended_is_stuck(inbox: Pages, clock: MovingClock) -> None:
    inbox.ask("late")
    clock.move(timedelta(days=3, minutes=2))
    page = inbox.visit("olga", "operator").get("/operate")

    assert "claim-late the time to decide is over" in section(page, "stuck")


def test_a_runs_page_draws_what_happened(inbox: Pages, clock: MovingClock) -> None:
    asked = inbox.ask()
    visit = inbox.visit("olga", "operator")
    assert "It waits for a decision: Payout for claim-0042 , 1,840.00 EUR, 3 days left." in (
        visit.get("/run?id=claim-0042") and visit.said
    )
    inbox.graph.invoke(approve(asked), thread(asked.thread_id, principal="ben"))
    visit.get("/run?id=claim-0042")

    assert "done approve submitted by clerk" in visit.said
    for said in ("decision Payout: approved by ben", "effect Pay: done once (1 call)", "Outcome: approve"):
        assert said in visit.said
    assert visit.last.count("<svg class=") == 3
    assert "run.finish" in visit.said


def test_the_record_is_for_operators_and_auditors(inbox: Pages) -> None:
    inbox.ask()
    for name, role, seen in (("olga", "operator", True), ("rita", "auditor", True), ("ada", "approver", False), ("clerk", "submitter", False)):  # fmt: skip
        page = inbox.visit(name, role).get("/run?id=claim-0042")
        assert ("run.admit" in page) is seen, name


def test_a_run_of_another_graph_is_shown_by_its_record(inbox: Pages, tmp_path: Path) -> None:
    other = asking(inbox.journal, tmp_path, name="others")
    other.invoke({"claim_id": "7", "amount": 500, "about": {}}, thread("other-7", principal="clerk"))
    visit = inbox.visit("olga", "operator")
    visit.get("/run?id=other-7")

    assert visit.status == 200
    assert "Another program carries this run on, and shows its steps. The record below is whole." in visit.said
    assert "approval.open" in visit.said


@pytest.mark.parametrize("name", ["a/b", "..", "ü & <b>", 'q"?x=1#y', "%2F%00"])
def test_a_run_may_be_called_anything(inbox: Pages, name: str) -> None:
    asked = inbox.ask(name)
    visit = inbox.visit("olga", "operator", "approver")
    visit.get(f"/approvals/{asked.id}")
    address = re.search(r'href="(/run\?id=[^"]+)"', visit.last)
    assert address is not None
    visit.get(address[1].replace("&amp;", "&"))

    assert visit.status == 200
    assert f"claim-{name}" in visit.said


def test_whoever_submits_sees_their_own_runs(inbox: Pages, clock: MovingClock) -> None:
    inbox.ask("0042")
    clock.move(timedelta(hours=1))
    inbox.ask("0043")
    inbox.ask("0044", by="carl")
    page = inbox.visit("clerk", "submitter").get("/runs")

    assert re.findall(r">claim-(\d+)</a>", page) == ["0043", "0042"]


def test_a_question_says_who_is_asked_next_and_moves_on(make_inbox: Make, clock: MovingClock) -> None:
    tiers = (
        Tier("adjusters", ("group:adjusters",), ttl=timedelta(days=1)),
        Tier("seniors", ("group:seniors",), ttl=timedelta(days=1), quorum=2),
    )
    inbox = make_inbox(tiers=tiers, ttl=None)
    asked = inbox.ask()
    visit = inbox.visit("ada", "approver", groups=["adjusters"])
    visit.get(f"/approvals/{asked.id}")
    assert "Asked now Adjusters (1 of 2) If nobody answers by then Seniors is asked" in visit.said

    clock.move(timedelta(days=1, minutes=1))
    visit = inbox.visit("ada", "approver", groups=["adjusters"])
    visit.get(f"/approvals/{asked.id}")
    assert "The time is over" in visit.said
    assert "Seniors is asked next" in visit.said
    inbox.journal.approvals.apply_due(asked.thread_id)
    visit.get(f"/approvals/{asked.id}")
    assert "This waits for the group seniors." in visit.said
    assert "2 have to approve; one reject is enough" in visit.said
    sue = inbox.visit("sue", "approver", groups=["seniors"])
    assert "1 waits for you" in sue.get("/")
