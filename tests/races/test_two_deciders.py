"""
Two processes decide at a barrier: one payment at most, one winner, the loser told who won, and no run left parked with a decided approval.

Rounds: 100, or `COUNTERFOIL_RACE_ROUNDS`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from checkpointing import Journal, open_journal
from checkpointing.errors import AlreadyDecided, RunBusy
from graph import DurableGraph, approve, reject, thread
from tests.support.bank import Bank
from tests.support.processes import context, until
from tests.support.small_claim import small_claim

ROUNDS = int(os.environ.get("COUNTERFOIL_RACE_ROUNDS", "100"))

Verdict = tuple[str, str, str | None]
"""Who; `won`, `lost`, `busy` or `nudged`; and who won as the loser was told."""


def decide(graph: DurableGraph, thread_id: str, kind: str, who: str) -> Verdict:
    """Do what one of the two does, and say how it went."""
    config = thread(thread_id, principal=who)
    if kind == "nudge":
        try:
            graph.invoke(None, config)
        except RunBusy:
            return who, "busy", None
        return who, "nudged", None
    [request] = [a for a in graph.journal.approvals.of_thread(thread_id) if a.name == "payout"]
    try:
        graph.invoke(approve(request) if kind == "approve" else reject(request), config)
    except AlreadyDecided as told:
        return who, "lost", told.decided_by
    return who, "won", None


def decider(url: str, folder: Path, kind: str, who: str, barrier: Any, verdicts: Any) -> None:
    """One of the two processes: for every round wait for the other, then decide at the same moment."""
    with open_journal(url) as journal:
        graph = small_claim(journal, folder)
        for number in range(ROUNDS):
            barrier.wait(60)
            verdicts.put((number, *decide(graph, f"claim-{number}", kind, who)))


def race(url: str, folder: Path, kinds: tuple[str, str]) -> dict[int, list[Verdict]]:
    """Park one claim a round, let two processes at them, and return what each said."""
    spawn = context()
    barrier, verdicts = spawn.Barrier(2), spawn.Queue()
    with open_journal(url) as journal:
        graph = small_claim(journal, folder)
        for number in range(ROUNDS):
            graph.invoke({"claim_id": f"{number}"}, thread(f"claim-{number}"))
    processes = [
        spawn.Process(
            target=decider,
            args=(url, folder, kind, f"{kind}-{side}", barrier, verdicts),
            daemon=True,
        )
        for side, kind in zip(("left", "right"), kinds, strict=True)
    ]
    for process in processes:
        process.start()
    said: dict[int, list[Verdict]] = {}
    for _ in range(2 * ROUNDS):
        number, *verdict = verdicts.get(timeout=120)
        said.setdefault(number, []).append(tuple(verdict))
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    return said


def payments(folder: Path) -> dict[str, int]:
    counted: dict[str, int] = {}
    for call in Bank(folder / "bank").executed:
        counted[call["claim_id"]] = counted.get(call["claim_id"], 0) + 1
    return counted


def finished(journal: Journal, folder: Path, number: int) -> None:
    """Nobody nudges any more: a decided run is done, or ready for the next call, and never parked."""
    thread_id = f"claim-{number}"
    assert journal.runs.get(thread_id).state in ("done", "admitted")
    graph = small_claim(journal, folder)
    until(lambda: advanced(graph, thread_id))
    assert journal.runs.get(thread_id).state == "done"


def advanced(graph: DurableGraph, thread_id: str) -> bool | None:
    try:
        graph.invoke(None, thread(thread_id))
    except RunBusy:
        return None
    return True


@pytest.mark.parametrize("kinds", [("approve", "approve"), ("approve", "reject")])
def test_two_approvers_have_one_winner_and_one_payment(url: str, tmp_path: Path, kinds: tuple[str, str]) -> None:
    said = race(url, tmp_path, kinds)
    paid = payments(tmp_path)

    with open_journal(url) as journal:
        for number in range(ROUNDS):
            winners = [who for who, how, _ in said[number] if how == "won"]
            losers = [told for _, how, told in said[number] if how == "lost"]
            assert len(winners) == 1
            assert losers == winners
            finished(journal, tmp_path, number)
            approved = winners[0].startswith("approve")
            assert paid.get(f"{number}", 0) == int(approved)
            [row] = journal.approvals.of_thread(f"claim-{number}")
            assert row.decided_by == winners[0]
        assert list(journal.audit.verify()) == []


def test_a_nudge_at_the_same_moment_neither_decides_nor_loses_the_decision(url: str, tmp_path: Path) -> None:
    said = race(url, tmp_path, ("approve", "nudge"))
    paid = payments(tmp_path)

    with open_journal(url) as journal:
        for number in range(ROUNDS):
            assert [how for who, how, _ in said[number] if who.startswith("approve")] == ["won"]
            finished(journal, tmp_path, number)
            paid = payments(tmp_path)
            assert paid[f"{number}"] == 1
        assert list(journal.audit.verify()) == []
