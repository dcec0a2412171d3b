"""
An approval's life by a clock the tests move: one reminder, one escalation, one expiry, the outcome; several people; more time; other people.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph

from checkpointing import Approval, Journal, open_journal
from checkpointing.errors import (
    AlreadyDecided,
    ApprovalExpired,
    DecisionInvalid,
    NotAllowed,
    PayloadChanged,
    UnknownApproval,
)
from checkpointing.principals import Person
from checkpointing.tiers import Tier
from graph import DurableGraph, DurableState, approve, durable, edit, reject, thread
from nodes import approval_node
from tests.support.asking_claim import asking_claim
from tests.support.clock import MovingClock

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
LADDER = (
    Tier("adjusters", ("group:adjusters",), ttl=3 * DAY, up_to=500_000, remind=DAY),
    Tier("seniors", ("group:seniors",), ttl=2 * DAY, remind=12 * HOUR),
)
ADA = Person("ada", frozenset({"adjusters"}))
BEN = Person("ben", frozenset({"adjusters"}))
SUE = Person("sue", frozenset({"seniors"}))
THREAD = thread("claim-0042")


@pytest.fixture
def clock() -> MovingClock:
    return MovingClock()


@pytest.fixture
def journal(url: str, clock: MovingClock) -> Iterator[Journal]:
    with open_journal(url, clock=clock) as opened:
        yield opened


def asked(graph: DurableGraph, amount: int = 184_000, *, by: str = "clerk") -> Approval:
    graph.invoke({"claim_id": "0042", "amount": amount}, thread("claim-0042", principal=by))
    [pending] = graph.journal.approvals.pending(thread_id="claim-0042")
    return pending


def events(journal: Journal) -> list[str]:
    found = [entry.event for entry in journal.audit.entries("claim-0042")]
    return [event for event in found if event.startswith("approval.")]


def told(journal: Journal) -> list[str]:
    return [notice.event for notice in journal.notices.noted()]


def paid(journal: Journal) -> list[int]:
    return [effect.arguments["amount"] for effect in journal.effects.list(thread_id="claim-0042")]


def faults(journal: Journal) -> list[str]:
    return list(journal.audit.verify())


def test_one_reminder_one_escalation_one_reminder_more_one_expiry_and_the_outcome(
    journal: Journal, clock: MovingClock, tmp_path: Path
) -> None:
    graph = asking_claim(journal, tmp_path, tiers=LADDER, on_expiry="hand_over")
    asked(graph)

    for _ in range(24 * 6):
        clock.move(HOUR)
        graph.invoke(None, THREAD)

    assert events(journal) == [
        "approval.open",
        "approval.remind",
        "approval.escalate",
        "approval.remind",
        "approval.expire",
    ]
    assert sorted(told(journal)) == sorted(events(journal))
    assert graph.invoke(None, THREAD)["outcome"] == "hand_over"
    assert journal.runs.get("claim-0042").state == "done"
    assert faults(journal) == []


def test_a_ladder_that_nobody_looked_at_for_a_month_still_asks_the_next_tier(
    journal: Journal, clock: MovingClock, tmp_path: Path
) -> None:
    """The next tier has its time from the moment it is asked, whenever that is."""
    graph = asking_claim(journal, tmp_path, tiers=LADDER)
    approval = asked(graph)
    clock.move(30 * DAY)

    graph.invoke(None, THREAD)

    now = journal.approvals.get(approval.id)
    assert (now.state, now.at_tier, now.expires_at) == ("pending", LADDER[1], clock() + 2 * DAY)
    assert events(journal) == ["approval.open", "approval.escalate"]


def test_a_tier_decides_in_its_time_and_the_one_before_it_no_more(
    journal: Journal, clock: MovingClock, tmp_path: Path
) -> None:
    graph = asking_claim(journal, tmp_path, tiers=LADDER)
    approval = asked(graph)
    with pytest.raises(NotAllowed, match="group:adjusters"):
        graph.invoke(approve(approval), thread("claim-0042", principal=SUE))
    clock.move(3 * DAY)

    with pytest.raises(NotAllowed, match="group:seniors"):
        graph.invoke(approve(approval), thread("claim-0042", principal=ADA))
    done = graph.invoke(approve(approval), thread("claim-0042", principal=SUE))

    assert done["outcome"] == "approve"
    assert journal.approvals.get(approval.id).decided_by == "sue"
    assert faults(journal) == []


def test_one_overdue_question_does_not_take_the_other_a_tier_up(journal: Journal, clock: MovingClock) -> None:
    slow = (Tier("adjusters", ttl=2 * DAY), Tier("seniors", ttl=DAY))
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(DurableState)
    for name, tiers in (("quick", (Tier("adjusters", ttl=DAY), Tier("seniors", ttl=DAY))), ("slow", slow)):
        builder.add_node(name, approval_node(name, journal, payload=lambda s: {"claim_id": "0042"}, tiers=tiers))
        builder.add_edge(START, name)
    graph = durable(builder, journal)
    graph.invoke({}, THREAD)
    clock.move(DAY)
    graph.invoke(None, THREAD)

    assert {one.name: one.tier for one in journal.approvals.pending()} == {"quick": 1, "slow": 0}


def test_a_large_amount_begins_with_the_tier_that_may_approve_it(journal: Journal, tmp_path: Path) -> None:
    graph = asking_claim(journal, tmp_path, tiers=LADDER)

    assert asked(graph, 500_001).at_tier == LADDER[1]


def test_an_edit_allows_no_more_than_its_tier_and_its_approver_may(journal: Journal, tmp_path: Path) -> None:
    graph = asking_claim(journal, tmp_path, tiers=LADDER)
    approval = asked(graph)
    limited = Person("ada", frozenset({"adjusters"}), limit=200_000)

    with pytest.raises(NotAllowed, match="up to 500000"):
        graph.invoke(edit(approval, {**approval.payload, "amount": 500_001}), thread("claim-0042", principal=ADA))
    with pytest.raises(NotAllowed, match="up to 200000"):
        graph.invoke(edit(approval, {**approval.payload, "amount": 200_001}), thread("claim-0042", principal=limited))

    assert journal.approvals.get(approval.id).state == "pending"
    graph.invoke(edit(approval, {**approval.payload, "amount": 200_000}), thread("claim-0042", principal=limited))
    assert journal.runs.get("claim-0042").state == "done"


def test_whoever_has_a_limit_rejects_anything_and_approves_nothing_without_an_amount(
    journal: Journal, tmp_path: Path
) -> None:
    graph = asking_claim(journal, tmp_path, amount_in=None)
    approval = asked(graph)
    limited = Person("ada", limit=1)

    with pytest.raises(NotAllowed, match="no amount"):
        graph.invoke(approve(approval), thread("claim-0042", principal=limited))
    assert graph.invoke(reject(approval, "no"), thread("claim-0042", principal=limited))["outcome"] == "reject"


def test_two_of_a_group_approve_and_the_record_names_both(journal: Journal, tmp_path: Path) -> None:
    graph = asking_claim(journal, tmp_path, approvers=("group:adjusters",), quorum=2)
    approval = asked(graph)

    parked = graph.invoke(approve(approval), thread("claim-0042", principal=ADA))
    assert "__interrupt__" in parked
    graph.invoke(approve(approval), thread("claim-0042", principal=ADA))
    assert journal.approvals.get(approval.id).state == "pending"
    done = graph.invoke(approve(approval), thread("claim-0042", principal=BEN))

    assert (done["approvals"]["payout"]["by"], done["approvals"]["payout"]["with"]) == ("ben", ["ada"])
    assert [vote.principal for vote in journal.approvals.votes(approval.id)] == ["ada", "ben"]
    assert faults(journal) == []


def test_one_of_two_says_no_and_it_is_no(journal: Journal, tmp_path: Path) -> None:
    graph = asking_claim(journal, tmp_path, quorum=2)
    approval = asked(graph)
    graph.invoke(approve(approval), thread("claim-0042", principal=ADA))

    assert graph.invoke(reject(approval), thread("claim-0042", principal=BEN))["outcome"] == "reject"


def test_votes_for_different_payloads_do_not_add_up_and_may_be_changed(journal: Journal, tmp_path: Path) -> None:
    graph = asking_claim(journal, tmp_path, quorum=2)
    approval = asked(graph)
    less = {**approval.payload, "amount": 100_000}
    graph.invoke(approve(approval), thread("claim-0042", principal=ADA))
    graph.invoke(edit(approval, less), thread("claim-0042", principal=BEN))
    assert journal.approvals.get(approval.id).state == "pending"

    graph.invoke(edit(approval, less), thread("claim-0042", principal=ADA))

    assert paid(journal) == [100_000]
    assert faults(journal) == []


def test_under_four_eyes_nobody_alone_makes_up_what_is_paid(journal: Journal, tmp_path: Path) -> None:
    graph = asking_claim(journal, tmp_path, four_eyes=True)
    approval = asked(graph)
    more = {**approval.payload, "amount": 190_000}

    graph.invoke(edit(approval, more), thread("claim-0042", principal=ADA))
    graph.invoke(edit(approval, more), thread("claim-0042", principal=ADA))
    assert journal.approvals.get(approval.id).state == "pending"
    graph.invoke(edit(approval, more), thread("claim-0042", principal=BEN))

    assert paid(journal) == [190_000]


def test_votes_of_a_tier_do_not_count_on_the_next(journal: Journal, clock: MovingClock, tmp_path: Path) -> None:
    both = Person("ada", frozenset({"adjusters", "seniors"}))
    ladder = (Tier("adjusters", ("group:adjusters",), ttl=DAY, quorum=2), Tier("seniors", ("group:seniors",), quorum=2))
    graph = asking_claim(journal, tmp_path, tiers=ladder)
    approval = asked(graph)
    graph.invoke(approve(approval), thread("claim-0042", principal=both))
    clock.move(DAY)

    graph.invoke(approve(approval), thread("claim-0042", principal=SUE))

    assert journal.approvals.get(approval.id).state == "pending"
    assert graph.invoke(approve(approval), thread("claim-0042", principal=both))["outcome"] == "approve"


def test_the_submitter_never_votes(journal: Journal, tmp_path: Path) -> None:
    graph = asking_claim(journal, tmp_path, quorum=2)
    approval = asked(graph, by="ada")

    with pytest.raises(NotAllowed, match="submitted"):
        graph.invoke(approve(approval), thread("claim-0042", principal=ADA))

    assert journal.approvals.votes(approval.id) == []


def test_more_time_moves_the_reminder_and_the_end(journal: Journal, clock: MovingClock, tmp_path: Path) -> None:
    graph = asking_claim(journal, tmp_path, ttl=2 * DAY, remind=DAY)
    approval = asked(graph)

    longer = journal.approvals.extend(approval.id, DAY, principal=ADA, reason="on leave")

    assert (longer.expires_at, longer.remind_at) == (clock() + 3 * DAY, clock() + 2 * DAY)
    clock.move(2 * DAY + HOUR)
    graph.invoke(None, THREAD)
    assert journal.approvals.get(approval.id).state == "pending"
    assert events(journal) == ["approval.open", "approval.extend", "approval.remind"]
    assert faults(journal) == []


def test_what_does_not_wait_any_more_is_neither_extended_nor_reassigned(
    journal: Journal, clock: MovingClock, tmp_path: Path
) -> None:
    graph = asking_claim(journal, tmp_path, ttl=DAY)
    approval = asked(graph)
    clock.move(DAY)
    for change in (
        lambda: journal.approvals.extend(approval.id, DAY, principal=ADA),
        lambda: journal.approvals.reassign(approval.id, ["ben"], principal=ADA),
    ):
        with pytest.raises(ApprovalExpired):
            change()
    graph.invoke(None, THREAD)
    with pytest.raises(ApprovalExpired):
        journal.approvals.extend(approval.id, DAY, principal=ADA)
    assert events(journal) == ["approval.open", "approval.expire"]


def test_other_people_are_asked_and_the_first_ones_no_more(journal: Journal, tmp_path: Path) -> None:
    graph = asking_claim(journal, tmp_path, approvers=("ada",))
    approval = asked(graph)

    with pytest.raises(NotAllowed):
        journal.approvals.reassign(approval.id, ["ben"], principal=BEN)
    journal.approvals.reassign(approval.id, ["group:seniors"], principal="root", reason="away", operator=True)

    with pytest.raises(NotAllowed):
        graph.invoke(approve(approval), thread("claim-0042", principal="ada"))
    assert graph.invoke(approve(approval), thread("claim-0042", principal=SUE))["outcome"] == "approve"
    assert faults(journal) == []


def test_votes_of_those_who_were_asked_before_do_not_count_for_the_others(journal: Journal, tmp_path: Path) -> None:
    """Whoever stays is asked again too: what they said, they said among others."""
    graph = asking_claim(journal, tmp_path, approvers=("ada", "ben"), quorum=2)
    approval = asked(graph)
    graph.invoke(approve(approval), thread("claim-0042", principal="ada"))
    journal.approvals.reassign(approval.id, ["ben", "sue"], principal="root", operator=True)
    assert journal.approvals.votes(approval.id) == []

    graph.invoke(approve(approval), thread("claim-0042", principal="ben"))

    assert journal.approvals.get(approval.id).state == "pending"
    assert graph.invoke(approve(approval), thread("claim-0042", principal="sue"))["outcome"] == "approve"
    assert (journal.approvals.get(approval.id).decision or {})["with"] == ["ben"]
    assert events(journal).count("approval.vote") == 2
    assert faults(journal) == []


def test_a_question_that_takes_two_is_not_reassigned_to_one(journal: Journal, tmp_path: Path) -> None:
    approval = asked(asking_claim(journal, tmp_path, quorum=2))

    with pytest.raises(DecisionInvalid, match="takes 2 people"):
        journal.approvals.reassign(approval.id, ["ben", "ben"], principal=ADA)
    journal.approvals.reassign(approval.id, ["group:seniors"], principal=ADA)

    assert journal.approvals.get(approval.id).approvers == ("group:seniors",)


@pytest.mark.parametrize("to", [[], [" "], ["a\x00b"]])
def test_nobody_is_no_one_to_ask(journal: Journal, tmp_path: Path, to: list[str]) -> None:
    approval = asked(asking_claim(journal, tmp_path))

    with pytest.raises(DecisionInvalid):
        journal.approvals.reassign(approval.id, to, principal=ADA)
    with pytest.raises(DecisionInvalid):
        journal.approvals.extend(approval.id, timedelta(), principal=ADA)
    with pytest.raises(UnknownApproval):
        journal.approvals.extend("apr_0", DAY, principal=ADA)


def test_a_question_is_not_put_off_for_ever(journal: Journal, tmp_path: Path) -> None:
    approval = asked(asking_claim(journal, tmp_path, ttl=DAY))
    longer = journal.approvals.extend(approval.id, 3659 * DAY, principal=ADA)

    with pytest.raises(DecisionInvalid, match="every wait ends"):
        journal.approvals.extend(approval.id, HOUR, principal=ADA)

    assert journal.approvals.get(approval.id).expires_at == longer.expires_at


def test_less_than_nothing_is_beyond_any_limit(journal: Journal, tmp_path: Path) -> None:
    graph = asking_claim(journal, tmp_path, tiers=LADDER)
    approval = asked(graph)
    limited = Person("ada", frozenset({"adjusters"}), limit=4)

    for who in (limited, ADA):
        with pytest.raises(NotAllowed):
            graph.invoke(edit(approval, {**approval.payload, "amount": -500}), thread("claim-0042", principal=who))


@pytest.mark.parametrize("name", ["ada ", " ada", "\uff41da", "a\u0301da"])
def test_nobody_is_two_people_by_how_a_name_is_written(journal: Journal, tmp_path: Path, name: str) -> None:
    approval = asked(asking_claim(journal, tmp_path, quorum=2))

    with pytest.raises(NotAllowed, match="in one form"):
        journal.approvals.decide(approval.id, {"type": "approve"}, principal=name)


def test_nobody_passes_for_a_group(journal: Journal, tmp_path: Path) -> None:
    approval = asked(asking_claim(journal, tmp_path, approvers=("group:adjusters",)))

    with pytest.raises(NotAllowed, match="names of groups|those of groups"):
        journal.approvals.decide(approval.id, {"type": "approve"}, principal="group:adjusters")


def test_the_next_round_says_which_approval_it_replaces(journal: Journal, tmp_path: Path) -> None:
    graph = asking_claim(journal, tmp_path)
    first = asked(graph)
    (tmp_path / "amount").write_text("190000")
    graph.invoke(approve(first), thread("claim-0042", principal=ADA))

    [second] = journal.approvals.pending()
    with pytest.raises(PayloadChanged) as refused:
        journal.approvals.decide(first.id, {"type": "approve"}, principal=BEN)
    assert (second.replaces, second.amount) == (first.id, 190_000)
    assert second.id in str(refused.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"tiers": (Tier("a"), Tier("b"))},
        {"tiers": (Tier("a", ttl=DAY, up_to=1),)},
        {"tiers": (Tier("a", ttl=DAY), Tier("a"))},
        {"tiers": (Tier("a", ttl=DAY, up_to=2), Tier("b", ttl=DAY, up_to=1), Tier("c"))},
        {"tiers": (Tier("a", ttl=DAY),), "ttl": DAY},
        {"remind": DAY},
        {"ttl": DAY, "remind": DAY},
        {"quorum": 0},
        {"on_expiry": "edit"},
        {"tiers": (Tier("a", ttl=DAY, up_to=1), Tier("b")), "amount_in": None},
    ],
)
def test_a_ladder_without_an_end_is_no_graph(journal: Journal, tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="approval 'payout'"):
        asking_claim(journal, tmp_path, **wrong)


def test_a_first_vote_after_the_end_is_refused(journal: Journal, clock: MovingClock, tmp_path: Path) -> None:
    approval = asked(asking_claim(journal, tmp_path, quorum=2, ttl=DAY))
    clock.move(DAY)

    with pytest.raises(ApprovalExpired):
        journal.approvals.decide(approval.id, {"type": "approve"}, principal=BEN)

    assert journal.approvals.votes(approval.id) == []


def test_a_vote_is_no_decision_for_whoever_comes_too_late(journal: Journal, clock: MovingClock, tmp_path: Path) -> None:
    graph = asking_claim(journal, tmp_path, quorum=2, ttl=DAY)
    approval = asked(graph)
    graph.invoke(approve(approval), thread("claim-0042", principal=ADA))
    clock.move(DAY)

    with pytest.raises(ApprovalExpired):
        journal.approvals.decide(approval.id, {"type": "approve"}, principal=BEN)
    graph.invoke(None, THREAD)
    with pytest.raises((AlreadyDecided, ApprovalExpired)):
        journal.approvals.decide(approval.id, {"type": "approve"}, principal=BEN)

    assert journal.runs.get("claim-0042").state == "done"
    assert [vote.principal for vote in journal.approvals.votes(approval.id)] == ["ada"]
