"""
Killed while people were asked further: votes, more time, the next tier, notes of it all. What was said holds or was never said, and nothing is said twice.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from checkpointing import Approval, Journal, open_journal
from checkpointing.tiers import Tier
from graph import DurableGraph, approve, thread
from tests.support.asking_claim import asking_claim
from tests.support.bank import Bank
from tests.support.clock import MovingClock
from tests.support.points import die_at
from tests.support.processes import finish, killed, start
from tests.support.short_claim import advanced
from tests.support.small_claim import LEASE

DAY = timedelta(days=1)
THREAD = "claim-0042"
TWO_TIERS = (Tier("adjusters", ("ann",), ttl=DAY), Tier("seniors", ("sue",), ttl=DAY))
Act = Callable[[DurableGraph], Any]


def submit(graph: DurableGraph) -> Any:
    return graph.invoke({"claim_id": "0042", "amount": 5}, thread(THREAD))


def bob_approves(graph: DurableGraph) -> Any:
    return graph.invoke(approve(question(graph.journal)), thread(THREAD, principal="bob"))


def ann_approves(graph: DurableGraph) -> Any:
    return graph.invoke(approve(question(graph.journal)), thread(THREAD, principal="ann"))


def ann_extends(graph: DurableGraph) -> Any:
    return graph.journal.approvals.extend(question(graph.journal).id, DAY, principal="ann")


def nudge(graph: DurableGraph) -> Any:
    return graph.invoke(None, thread(THREAD))


def take_off(graph: DurableGraph) -> None:
    [note] = graph.journal.notices.noted()
    graph.journal.notices.told(note.id)


def process(
    url: str, folder: Path, terms: dict[str, Any], act: Act, after: timedelta, point: str | None = None
) -> None:
    """Be a process *after* so much time: do one thing, and die at *point*."""
    if point:
        die_at(point)
    clock = MovingClock()
    clock.move(after)
    with open_journal(url, lease=LEASE, clock=clock if after else None) as journal:
        act(asking_claim(journal, folder, **terms))


def question(journal: Journal) -> Approval:
    return journal.approvals.of_thread(THREAD)[-1]


@pytest.mark.parametrize("point", ["before approval.decide", "committing approval.decide", "after approval.decide"])
def test_killed_while_the_first_of_two_voted(url: str, tmp_path: Path, point: str) -> None:
    terms: dict[str, Any] = {"quorum": 2}
    finish(start(process, url, tmp_path, terms, submit, timedelta()))
    killed(start(process, url, tmp_path, terms, bob_approves, timedelta(), point))

    with open_journal(url, lease=LEASE) as journal:
        graph = asking_claim(journal, tmp_path, **terms)
        assert [one.principal for one in journal.approvals.votes(question(journal).id)] == ["bob"] * point.startswith(
            "after"
        )
        ann_approves(graph)
        assert question(journal).state == ("decided" if point.startswith("after") else "pending")
        bob_approves(graph) if not point.startswith("after") else None
        assert advanced(graph, THREAD) == "done"
        assert len(Bank(tmp_path / "bank").executed) == 1
        assert list(journal.audit.verify()) == []


@pytest.mark.parametrize("point", ["before approval.amend", "committing approval.amend", "after approval.amend"])
def test_killed_while_a_question_was_extended(url: str, tmp_path: Path, point: str) -> None:
    terms = {"ttl": DAY}
    finish(start(process, url, tmp_path, terms, submit, timedelta()))
    killed(start(process, url, tmp_path, terms, ann_extends, timedelta(), point))

    with open_journal(url, lease=LEASE) as journal:
        asked = question(journal)
        assert asked.expires_at
        assert asked.expires_at - asked.opened_at == DAY * (2 if point.startswith("after") else 1)
        assert [note.event for note in journal.notices.noted()].count("approval.extend") == point.startswith("after")
        assert list(journal.audit.verify()) == []


@pytest.mark.parametrize("point", ["before approval.expire", "committing approval.expire", "after approval.expire"])
def test_killed_while_the_next_tier_was_asked(url: str, tmp_path: Path, point: str) -> None:
    terms = {"tiers": TWO_TIERS}
    finish(start(process, url, tmp_path, terms, submit, timedelta(seconds=1)))
    killed(start(process, url, tmp_path, terms, nudge, DAY * 1.5, point))
    finish(start(process, url, tmp_path, terms, nudge, DAY * 1.5))

    with open_journal(url, lease=LEASE) as journal:
        assert (question(journal).state, question(journal).tier) == ("pending", 1)
        events = [entry.event for entry in journal.audit.entries(THREAD)]
        assert events.count("approval.escalate") == 1
        assert [note.event for note in journal.notices.noted()].count("approval.escalate") == 1
        assert list(journal.audit.verify()) == []


@pytest.mark.parametrize("point", ["before notice.told", "committing notice.told", "after notice.told"])
def test_killed_while_a_note_was_taken_off(url: str, tmp_path: Path, point: str) -> None:
    finish(start(process, url, tmp_path, {}, submit, timedelta()))
    killed(start(process, url, tmp_path, {}, take_off, timedelta(), point))

    with open_journal(url, lease=LEASE) as journal:
        assert len(journal.notices.noted()) == (not point.startswith("after"))
