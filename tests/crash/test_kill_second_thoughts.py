"""
Killed at the writes that only take something back, refuse, or keep who submitted: nothing is paid twice, and what was said holds or was never said.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from langchain.agents import create_agent

from checkpointing import Journal, open_journal
from checkpointing.errors import RunBusy
from graph import DurableGraph, durable, thread
from nodes import EffectTools
from service.door import admit_run
from tests.support.bank import KEYED, Bank
from tests.support.points import die_at
from tests.support.processes import finish, killed, start, until
from tests.support.scripted import ScriptedModel, calls
from tests.support.small_claim import LEASE, THREAD, act, one_process, small_claim

SUBMITTED = {"thread_id": "t-1", "kwargs": {"input": {"claim_id": "0042"}}}


def carried_on(graph: DurableGraph, thread_id: str) -> str:
    """Resume until the dead one's lease is over, and return the run's state."""

    def rested() -> bool | None:
        with suppress(RunBusy):
            graph.invoke(None, thread(thread_id))
            return True
        return None

    until(rested)
    return graph.journal.runs.get(thread_id).state


def withdraw(url: str, point: str) -> None:
    die_at(point)
    with open_journal(url, lease=LEASE) as journal:
        [asked] = journal.approvals.pending(thread_id=THREAD)
        journal.approvals.withdraw(asked.id, principal="adjuster-17", reason="asked twice")


@pytest.mark.parametrize(("point", "paid"), [("before approval.withdraw", 1), ("after approval.withdraw", 0)])
def test_killed_while_a_question_was_withdrawn(url: str, tmp_path: Path, point: str, paid: int) -> None:
    finish(start(one_process, url, tmp_path, "submit"))
    killed(start(withdraw, url, point))

    with open_journal(url, lease=LEASE) as journal:
        graph = small_claim(journal, tmp_path)
        if paid:
            act(graph, "approve")
        assert carried_on(graph, THREAD) == "done"
        assert len(Bank(tmp_path / "bank").executed) == paid
        assert list(journal.audit.verify()) == []


def other_words(url: str, folder: Path, point: str | None = None) -> None:
    """Let a model plan a payment that another thread has made, with another amount."""
    if point:
        die_at(point)
    with open_journal(url, lease=timedelta(milliseconds=400)) as journal:
        planned(journal, folder, amount=6).invoke({"messages": [{"role": "user", "content": "pay"}]}, thread("second"))


def planned(journal: Journal, folder: Path, *, amount: int) -> DurableGraph:
    pay = Bank(folder / "bank").effect(KEYED, once=lambda arguments: arguments["claim_id"])
    script = [calls(("c1", "pay", {"claim_id": "1", "amount": amount}))]
    model = ScriptedModel(script=script, file=folder / f"asked-{amount}")
    return durable(create_agent(model, middleware=[EffectTools(journal, [pay])]), journal, attempts=9)


@pytest.mark.parametrize("point", ["before effect.conflict", "after effect.conflict"])
def test_killed_while_a_payment_in_other_words_was_refused(url: str, tmp_path: Path, point: str) -> None:
    with open_journal(url) as journal:
        planned(journal, tmp_path, amount=5).invoke({"messages": [{"role": "user", "content": "pay"}]}, thread("first"))
    killed(start(other_words, url, tmp_path, point))

    with open_journal(url) as journal:
        assert carried_on(planned(journal, tmp_path, amount=6), "second") == "done"
        assert [call["amount"] for call in Bank(tmp_path / "bank").calls] == [5]
        assert "effect.conflict" in {entry.event for entry in journal.audit.entries("second")}
        assert list(journal.audit.verify()) == []


def submit(url: str, point: str) -> None:
    die_at(point)
    with open_journal(url) as journal:
        admit_run(journal, "intake", SUBMITTED)


@pytest.mark.parametrize(("point", "kept"), [("before server.submit", 0), ("after server.submit", 1)])
def test_killed_while_a_server_kept_who_submitted(url: str, point: str, kept: int) -> None:
    killed(start(submit, url, point))

    with open_journal(url) as journal:
        assert [entry.actor for entry in journal.audit.entries("t-1")] == ["intake"] * kept
        admit_run(journal, "intake", SUBMITTED)
        assert {entry.actor for entry in journal.audit.entries("t-1")} == {"intake"}
        assert list(journal.audit.verify()) == []
