"""Pages: every row once, in order, whatever is added or decided between two pages, and only what somebody may see."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from checkpointing import Approval, Journal
from checkpointing.listing import EVERYTHING, SCANNED, Asked, Mark, Page, Sight
from graph import thread
from tests.support.clock import MovingClock
from tests.support.desk_graph import desk_graph

MOMENT = timedelta(milliseconds=1)


@pytest.fixture
def submit(opened: Callable[..., Journal], clock: MovingClock, tmp_path: Path) -> Callable[..., Journal]:
    """Submits claims by their numbers, each asking for its approval; several of one instant, where the clock is not moved."""
    journal = opened(clock=clock)
    graph = desk_graph(journal, tmp_path)

    def of(*numbers: object, by: str = "intake", moving: bool = True) -> Journal:
        for number in numbers:
            graph.invoke({"claim_id": f"{number}", "documents": []}, thread(f"claim-{number}", principal=by))
            clock.move(MOMENT if moving else timedelta())
        return journal

    return of


def every(ask: Callable[[Mark | None], Page[Any]]) -> list[Any]:
    """Return what stands on all pages."""
    found, mark = [], None
    while True:
        page = ask(mark)
        found += page.items
        mark = page.next
        if mark is None:
            return found


def threads(found: list[Any]) -> list[str]:
    return [getattr(one, "approval", one).thread_id for one in found]


@pytest.mark.parametrize("moving", [True, False])
def test_runs_come_newest_first_each_once(submit: Callable[..., Journal], moving: bool) -> None:
    journal = submit(*range(5), moving=moving)

    found = every(lambda mark: journal.listing.runs(after=mark, limit=2))

    assert threads(found) == [f"claim-{number}" for number in (4, 3, 2, 1, 0)]


def test_a_run_that_is_added_between_two_pages_repeats_nothing(submit: Callable[..., Journal]) -> None:
    journal = submit(0, 1, 2)
    first = journal.listing.runs(limit=2)
    submit(3)

    assert threads(journal.listing.runs(after=first.next, limit=2).items) == ["claim-0"]


def test_a_page_that_is_just_full_is_the_last_one(submit: Callable[..., Journal]) -> None:
    assert submit(0, 1).listing.runs(limit=2).next is None


@pytest.mark.parametrize(
    ("sight", "seen"),
    [
        (EVERYTHING, ["claim-2", "claim-1", "claim-0"]),
        (Sight("ada"), ["claim-1"]),
        (Sight("nobody"), []),
        (Sight(asking=True), ["claim-2", "claim-1", "claim-0"]),
        (Sight("ada", asking=True), ["claim-2", "claim-1", "claim-0"]),
    ],
)
def test_only_runs_that_somebody_may_see_are_listed(
    submit: Callable[..., Journal], sight: Sight, seen: list[str]
) -> None:
    submit(0)
    submit(1, by="ada")
    journal = submit(2)

    assert threads(journal.listing.runs(sight=sight, limit=9).items) == seen
    assert threads(journal.listing.runs(sight=sight, state="parked", reason="approval", limit=9).items) == seen
    assert journal.listing.runs(sight=sight, state="done", limit=9).items == []
    assert journal.listing.runs(sight=sight, graph="others", limit=9).items == []


def test_a_run_that_asks_nothing_is_nobodys_to_approve(journal: Journal, tmp_path: Path) -> None:
    desk_graph(journal, tmp_path).submit({"claim_id": "0", "documents": []}, thread("claim-0"))

    assert journal.listing.runs(sight=Sight(asking=True), limit=9).items == []
    assert not journal.listing.has_asked("claim-0")


def test_what_expires_first_is_asked_first_and_what_waits_for_ever_last(
    opened: Callable[..., Journal], clock: MovingClock, tmp_path: Path
) -> None:
    journal = opened(clock=clock)
    for name, hours in (("a", 3), ("b", None), ("c", 1), ("d", 2), ("e", None)):
        graph = desk_graph(journal, tmp_path, ttl=None if hours is None else timedelta(hours=hours))
        graph.invoke({"claim_id": name, "documents": []}, thread(name))

    found = threads(every(lambda mark: journal.listing.approvals(Asked(), after=mark, limit=2)))

    assert found[:3] == ["c", "d", "a"]
    assert sorted(found[3:]) == ["b", "e"]


def test_a_decision_between_two_pages_hides_nobody_else(submit: Callable[..., Journal]) -> None:
    journal = submit(*range(4))
    first = journal.listing.approvals(Asked(), limit=2)
    journal.approvals.decide(first.items[0].approval.id, {"type": "approve"}, principal="ada")

    assert threads(journal.listing.approvals(Asked(), after=first.next, limit=2).items) == ["claim-2", "claim-3"]


def test_decided_ones_come_last_asked_first(submit: Callable[..., Journal]) -> None:
    journal = submit(*range(4))
    for asked in journal.approvals.pending():
        if asked.thread_id != "claim-1":
            journal.approvals.decide(asked.id, {"type": "approve"}, principal="ada")

    found = every(lambda mark: journal.listing.approvals(Asked("decided"), after=mark, limit=2))

    assert threads(found) == ["claim-3", "claim-2", "claim-0"]
    assert {one.submitted_by for one in found} == {"intake"}


def test_approvals_are_told_apart_by_thread_name_and_amount(submit: Callable[..., Journal]) -> None:
    journal = submit(*range(3))

    def found(**asked: Any) -> list[str]:
        return sorted(threads(journal.listing.approvals(Asked(**asked), limit=9).items))

    everything = ["claim-0", "claim-1", "claim-2"]
    assert found(thread_id="claim-1") == found(state=None, thread_id="claim-1") == ["claim-1"]
    assert found(name="payout") == found(least=5, most=5) == everything
    assert found(name="others") == found(least=6) == found(most=4) == found(state="expired") == []


def test_a_page_of_few_that_are_wanted_goes_on_where_it_stopped(submit: Callable[..., Journal]) -> None:
    journal = submit(*range(5))

    found = every(
        lambda mark: journal.listing.approvals(
            Asked(), after=mark, limit=1, wanted=lambda one: one.approval.thread_id in ("claim-1", "claim-4")
        )
    )

    assert threads(found) == ["claim-1", "claim-4"]


def test_a_page_looks_at_no_more_than_it_may(submit: Callable[..., Journal], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that is asked is wanted: the page ends, empty, and says where to go on."""
    monkeypatch.setattr("checkpointing.listing.SCANNED", 2)
    monkeypatch.setattr("checkpointing.listing.AT_A_TIME", 2)
    journal = submit(*range(5))

    first = journal.listing.approvals(Asked(), limit=1, wanted=lambda _: False)

    assert first.items == []
    assert first.next is not None
    assert every(lambda mark: journal.listing.approvals(Asked(), after=mark, limit=1, wanted=lambda _: False)) == []
    assert SCANNED > 2


def test_what_was_decided_of_the_like_is_listed_without_itself(
    submit: Callable[..., Journal], clock: MovingClock
) -> None:
    journal = submit(*range(4))
    decided: list[Approval] = []
    for asked in journal.approvals.pending()[:3]:
        clock.move(MOMENT)
        decided.append(journal.approvals.decide(asked.id, {"type": "approve"}, principal="ada"))

    found = every(lambda mark: journal.listing.similar(decided[1], after=mark, limit=1))

    assert threads(found) == ["claim-2", "claim-0"]


def test_effects_come_in_the_order_they_were_claimed(
    submit: Callable[..., Journal], opened: Callable[..., Journal], clock: MovingClock, tmp_path: Path
) -> None:
    journal = submit(*range(3))
    graph = desk_graph(journal, tmp_path)
    for asked in journal.approvals.pending():
        journal.approvals.decide(asked.id, {"type": "approve"}, principal="ada")
        graph.invoke(None, thread(asked.thread_id))
        clock.move(MOMENT)

    found = every(lambda mark: journal.listing.effects(after=mark, limit=2))

    assert threads(found) == ["claim-0", "claim-1", "claim-2"]
    assert threads(journal.listing.effects(thread_id="claim-1", state="settled", limit=9).items) == ["claim-1"]
    assert threads(journal.listing.effects(thread_id="claim-1", limit=9).items) == ["claim-1"]
    assert journal.listing.effects(state="in_doubt", limit=9).items == []


def test_the_audit_is_read_in_pages(submit: Callable[..., Journal]) -> None:
    journal = submit(0)

    found = every(lambda mark: journal.listing.entries("claim-0", after=mark, limit=1))

    assert found == journal.audit.entries("claim-0")
    assert len(found) > 2
