"""
Several people and a clock at one question: the last two votes, a decision against an escalation, more time against the end. Each has one winner.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path

from checkpointing import Approval, Journal, open_journal
from checkpointing.errors import AlreadyDecided, ApprovalExpired, NotAllowed
from checkpointing.tiers import Tier
from graph import DurableGraph, approve, thread
from tests.support.asking_claim import asking_claim
from tests.support.bank import Bank
from tests.support.clock import MovingClock
from tests.support.races import FEW, ROUNDS, Side, race
from tests.support.short_claim import TTL, advanced, nudges, payments, thread_of

MOMENT = TTL / 3_600_000
DAY = timedelta(days=1)
TIERS = (Tier("adjusters", ("ann",), ttl=TTL), Tier("seniors", ("sue",), ttl=TTL))


def two_of_three(journal: Journal, folder: Path) -> DurableGraph:
    return asking_claim(journal, folder, quorum=2)


def laddered(journal: Journal, folder: Path) -> DurableGraph:
    return asking_claim(journal, folder, tiers=TIERS)


def ending(journal: Journal, folder: Path) -> DurableGraph:
    return asking_claim(journal, folder, ttl=TTL)


def submit(graph: DurableGraph, number: int) -> str:
    graph.invoke({"claim_id": f"{number}", "amount": 5}, thread(thread_of(number)))
    return "parked"


def submit_with_a_vote(graph: DurableGraph, number: int) -> str:
    submit(graph, number)
    graph.invoke(approve(question(graph, number)), thread(thread_of(number), principal="zoe"))
    return "parked"


def question(graph: DurableGraph, number: int) -> Approval:
    return graph.journal.approvals.of_thread(thread_of(number))[-1]


def says_yes(graph: DurableGraph, number: int, who: str) -> str:
    try:
        graph.journal.approvals.decide(question(graph, number).id, {"type": "approve"}, principal=who)
    except AlreadyDecided:
        return "late"
    except (ApprovalExpired, NotAllowed) as no:
        return type(no).__name__
    return "said"


def ann(graph: DurableGraph, number: int) -> str:
    return says_yes(graph, number, "ann")


def bob(graph: DurableGraph, number: int) -> str:
    return says_yes(graph, number, "bob")


def extends(graph: DurableGraph, number: int) -> str:
    try:
        graph.journal.approvals.extend(question(graph, number).id, DAY, principal="ann")
    except ApprovalExpired:
        return "late"
    return "longer"


def events(journal: Journal, number: int) -> list[str]:
    return [entry.event for entry in journal.audit.entries(thread_of(number))]


def test_the_last_two_votes_make_one_decision(url: str, tmp_path: Path) -> None:
    """One vote is there, two come at once: one of them decides, and the other is told that it is decided."""
    left = Side(ann, meets="approval.decide", prepare=submit_with_a_vote)
    said = race(url, tmp_path, two_of_three, left, Side(bob, meets="approval.decide", prepare=submit_with_a_vote), FEW)

    assert set(said) == {("said", "late"), ("late", "said")}
    with open_journal(url) as journal:
        graph = two_of_three(journal, tmp_path)
        for number, (by_ann, _) in enumerate(said):
            assert advanced(graph, thread_of(number)) == "done"
            decided = question(graph, number)
            assert decided.decided_by == ("ann" if by_ann == "said" else "bob")
            assert events(journal, number).count("approval.decide") == 1
            assert payments(tmp_path)[f"{number}"] == 1
        assert list(journal.audit.verify()) == []


def test_the_first_two_votes_of_two_both_count(url: str, tmp_path: Path) -> None:
    """Two are needed and two come at once: neither misses the other, so that nobody waits for a third."""
    left = Side(ann, meets="approval.decide", prepare=submit)
    said = race(url, tmp_path, two_of_three, left, Side(bob, meets="approval.decide", prepare=submit), ROUNDS)

    assert set(said) == {("said", "said")}
    with open_journal(url) as journal:
        graph = two_of_three(journal, tmp_path)
        last = Counter(question(graph, number).decided_by for number in range(ROUNDS))
        assert set(last) == {"ann", "bob"}
        for number in range(ROUNDS):
            assert advanced(graph, thread_of(number)) == "done"
            assert [call["claim_id"] for call in Bank(tmp_path / "bank").executed].count(f"{number}") == 1
        assert list(journal.audit.verify()) == []


def test_a_decision_against_an_escalation_has_one_outcome(url: str, tmp_path: Path) -> None:
    said = race(
        url,
        tmp_path,
        laddered,
        Side(ann, meets="approval.decide", prepare=submit, later=TTL - MOMENT),
        Side(nudges, meets="approval.expire", prepare=submit, later=TTL),
        FEW,
    )

    assert {by_ann for by_ann, _ in said} == {"said", "NotAllowed"}
    clock = MovingClock()
    clock.move(TTL)
    with open_journal(url, clock=clock) as journal:
        graph = laddered(journal, tmp_path)
        for number, (by_ann, _) in enumerate(said):
            asked = question(graph, number)
            assert (asked.state, asked.tier) == (("decided", 0) if by_ann == "said" else ("pending", 1))
            assert events(journal, number).count("approval.escalate") == int(by_ann != "said")
        assert list(journal.audit.verify()) == []


def test_more_time_against_the_end_has_one_outcome(url: str, tmp_path: Path) -> None:
    said = race(
        url,
        tmp_path,
        ending,
        Side(extends, meets="approval.amend", prepare=submit, later=TTL - MOMENT),
        Side(nudges, meets="approval.expire", prepare=submit, later=TTL),
        FEW,
    )

    assert {longer for longer, _ in said} == {"longer", "late"}
    with open_journal(url) as journal:
        graph = ending(journal, tmp_path)
        for number, (longer, _) in enumerate(said):
            assert question(graph, number).state == ("pending" if longer == "longer" else "expired")
        assert list(journal.audit.verify()) == []
