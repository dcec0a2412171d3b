"""
Two at one question: one decision at most, one payment at most, the loser told who won, and no run left parked with an outcome.

The two are processes that meet right before they write, in 100 rounds or `COUNTERFOIL_RACE_ROUNDS`.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from checkpointing import Approval, open_journal
from checkpointing.errors import AlreadyDecided, ApprovalExpired
from graph import DurableGraph, approve, reject, thread
from tests.support.clock import MovingClock
from tests.support.races import FEW, ROUNDS, Act, Side, race
from tests.support.short_claim import TTL, advanced, claim, expiring_claim, nudges, payments, submit, thread_of

MOMENT = TTL / 3_600_000
"""A millisecond, the least by which two clocks can differ."""


def question(graph: DurableGraph, number: int) -> Approval:
    [found] = graph.journal.approvals.of_thread(thread_of(number))
    return found


def decide(graph: DurableGraph, number: int, kind: str, who: str) -> str:
    """Decide one claim, and say `won`, or who won."""
    asked = question(graph, number)
    command = approve(asked) if kind == "approve" else reject(asked)
    try:
        graph.invoke(command, thread(thread_of(number), principal=who))
    except AlreadyDecided as told:
        return f"lost to {told.decided_by}"
    except ApprovalExpired:
        return "lost to the clock"
    return "won"


def ann_approves(graph: DurableGraph, number: int) -> str:
    return decide(graph, number, "approve", "ann")


def bob_approves(graph: DurableGraph, number: int) -> str:
    return decide(graph, number, "approve", "bob")


def bob_rejects(graph: DurableGraph, number: int) -> str:
    return decide(graph, number, "reject", "bob")


@pytest.mark.parametrize(("other", "rounds"), [(bob_approves, ROUNDS), (bob_rejects, FEW)])
def test_two_approvers_have_one_winner_and_one_payment(url: str, tmp_path: Path, other: Act, rounds: int) -> None:
    left = Side(ann_approves, meets="approval.decide", prepare=submit)
    said = race(url, tmp_path, claim, left, Side(other, meets="approval.decide", prepare=submit), rounds)

    # Each won at least once, and whoever lost had read the question while it was pending: this was a race.
    assert set(said) == {("won", "lost to ann"), ("lost to bob", "won")}
    with open_journal(url) as journal:
        graph = claim(journal, tmp_path)
        for number, verdict in enumerate(said):
            assert advanced(graph, thread_of(number)) == "done"
            winner = "ann" if verdict[0] == "won" else "bob"
            assert question(graph, number).decided_by == winner
            approved = winner == "ann" or other is bob_approves
            assert payments(tmp_path)[f"{number}"] == int(approved)
        assert list(journal.audit.verify()) == []


def test_an_approval_against_its_expiry_has_one_outcome(url: str, tmp_path: Path) -> None:
    """
    One host's clock stands a moment before the expiry, the other's at it: so one may decide and the other may expire, at once.
    """
    said = race(
        url,
        tmp_path,
        expiring_claim,
        Side(ann_approves, meets="approval.decide", prepare=submit, later=TTL - MOMENT),
        Side(nudges, meets="approval.expire", prepare=submit, later=TTL),
    )

    outcomes = Counter(decided for decided, _ in said)
    assert set(outcomes) == {"won", "lost to the clock"}
    clock = MovingClock()
    clock.move(TTL)
    with open_journal(url, clock=clock) as journal:
        graph = expiring_claim(journal, tmp_path)
        for number, (decided, _) in enumerate(said):
            thread_id = thread_of(number)
            assert advanced(graph, thread_id) == "done"
            row, won = question(graph, number), decided == "won"
            assert (row.state, row.decided_by) == (("decided", "ann") if won else ("expired", None))
            record = graph.get_state(thread(thread_id)).values["approvals"]["payout"]
            assert (record["type"], record.get("expired", False)) == (("approve", False) if won else ("reject", True))
            outcome = [
                e.event for e in journal.audit.entries(thread_id) if e.event in ("approval.decide", "approval.expire")
            ]
            assert outcome == ["approval.decide" if won else "approval.expire"]
            assert payments(tmp_path)[f"{number}"] == int(won)
        assert list(journal.audit.verify()) == []


def test_a_nudge_at_the_same_moment_neither_decides_nor_loses_the_decision(url: str, tmp_path: Path) -> None:
    left = Side(ann_approves, meets="approval.decide", prepare=submit)
    said = race(url, tmp_path, claim, left, Side(nudges, prepare=submit), FEW)

    assert {decided for decided, _ in said} == {"won"}
    with open_journal(url) as journal:
        graph = claim(journal, tmp_path)
        for number in range(FEW):
            assert advanced(graph, thread_of(number)) == "done"
            assert payments(tmp_path)[f"{number}"] == 1
        assert list(journal.audit.verify()) == []
