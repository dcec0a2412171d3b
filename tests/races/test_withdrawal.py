"""
An approval that is taken back while its effect claims: paid and too late to withdraw, or withdrawn and not paid, and never both.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from checkpointing import open_journal
from checkpointing.errors import AlreadyDecided, EffectNotApproved
from graph import DurableGraph, thread
from tests.support.races import Side, race
from tests.support.short_claim import claim, payments, submit, thread_of


def approved(graph: DurableGraph, number: int) -> str:
    """Park one claim and record its approval; nobody has carried it on yet."""
    submit(graph, number)
    [asked] = graph.journal.approvals.of_thread(thread_of(number))
    graph.journal.approvals.decide(asked.id, {"type": "approve"}, principal="ann")
    return "approved"


def carries_on(graph: DurableGraph, number: int) -> str:
    try:
        graph.invoke(None, thread(thread_of(number)))
    except EffectNotApproved:
        return "refused"
    return "paid"


def withdraws(graph: DurableGraph, number: int) -> str:
    [asked] = graph.journal.approvals.of_thread(thread_of(number))
    try:
        graph.journal.approvals.withdraw(asked.id, principal="ann", reason="wrong claim")
    except AlreadyDecided:
        return "too late"
    return "withdrawn"


def test_a_withdrawal_against_its_effect_has_one_outcome(url: str, tmp_path: Path) -> None:
    said = race(
        url,
        tmp_path,
        claim,
        Side(carries_on, meets="effect.claim", prepare=approved),
        Side(withdraws, meets="approval.withdraw", prepare=approved),
    )

    assert set(Counter(said)) == {("paid", "too late"), ("refused", "withdrawn")}
    paid = payments(tmp_path)
    with open_journal(url) as journal:
        for number, (carried_on, _) in enumerate(said):
            assert paid[f"{number}"] == int(carried_on == "paid")
            run = journal.runs.get(thread_of(number))
            assert (run.state, run.reason) == (
                ("done", None) if carried_on == "paid" else ("dead", "effect_not_approved")
            )
        assert list(journal.audit.verify()) == []
