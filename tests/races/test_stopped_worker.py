"""
A worker that stands still past its lease (SIGSTOP), while another takes over, and goes on afterwards (SIGCONT).

    first    claim ── stopped ............................ going on: settle ✓, checkpoint ✗, another claim ✗
    second                     lease ends, takes over, finishes the run
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph

from checkpointing import Journal, open_journal
from checkpointing.errors import EffectInDoubt, RunBusy
from graph import DurableGraph, DurableState, durable, thread
from nodes import effect_node
from tests.support.bank import Bank
from tests.support.points import signal_at
from tests.support.processes import finish, start, stopped, until
from tests.support.small_claim import LEASE, THREAD, act, one_process, small_claim
from tools import Receiver


def stops_itself(url: str, folder: Path, when: str) -> None:
    """Approve the claim, and stand still at the bank: before or after it executed."""
    execute = Bank.execute

    def standing_still(self: Bank, **call: Any) -> dict[str, Any]:
        if self.file.name != "bank":
            return execute(self, **call)
        if when == "before":
            os.kill(os.getpid(), signal.SIGSTOP)
        result = execute(self, **call)
        if when == "after":
            os.kill(os.getpid(), signal.SIGSTOP)
        return result

    Bank.execute = standing_still  # type: ignore[method-assign]  # in this process only
    with open_journal(url, lease=LEASE) as journal:
        act(small_claim(journal, folder), "approve")


@contextmanager
def standing_still(target: Callable[..., None], *arguments: object) -> Iterator[ForkServerProcess]:
    """A process that has stopped itself; it is ended at the end, because one that stands still hears nothing but SIGKILL."""
    process = start(target, *arguments)
    try:
        until(lambda: stopped(process))
        yield process
    finally:
        process.kill()


def goes_on(process: ForkServerProcess) -> None:
    assert process.pid is not None
    os.kill(process.pid, signal.SIGCONT)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_worker_that_stood_still_past_its_lease_writes_nothing(url: str, tmp_path: Path, when: str) -> None:
    finish(start(one_process, url, tmp_path, "submit"))
    with (
        standing_still(stops_itself, url, tmp_path, when) as first,
        open_journal(url, lease=timedelta(seconds=30)) as journal,
    ):
        graph = small_claim(journal, tmp_path)

        def resumed() -> bool | None:
            try:
                act(graph, "resume")
            except RunBusy:
                return None
            return True

        until(resumed)
        assert journal.runs.get(THREAD).state == "done"
        head = journal.saver.head(THREAD)
        entries = journal.audit.entries(THREAD)
        goes_on(first)
        first.join(30)

        # It ended with LeaseLost: its settle found the outcome recorded, and its checkpoint was refused.
        assert first.exitcode == 1
        assert journal.saver.head(THREAD) == head
        assert journal.audit.entries(THREAD) == entries
        assert len(Bank(tmp_path / "bank").executed) == 1
        assert len(Bank(tmp_path / "post").calls) == 1
        assert list(journal.audit.verify()) == []


def test_what_a_stopped_worker_had_called_is_settled_by_it(url: str, tmp_path: Path) -> None:
    """Nobody took over: the lease ran out, but it is still the worker's, and everything it does counts."""
    finish(start(one_process, url, tmp_path, "submit"))
    with standing_still(stops_itself, url, tmp_path, "after") as first, open_journal(url) as journal:
        until(lambda: True if journal.leases.holder(f"thread:{THREAD}") is None else None)
        goes_on(first)
        finish(first)

        assert journal.runs.get(THREAD).state == "done"
    assert len(Bank(tmp_path / "bank").calls) == 1


def stops_before_the_payment(url: str, folder: Path, action: str) -> None:
    """Do *action*, and stand still when the payment is about to be claimed; the claims before it were another process's."""
    signal_at("before effect.claim", signal.SIGSTOP)
    with open_journal(url, lease=LEASE) as journal:
        act(small_claim(journal, folder), action)


def test_a_worker_that_stood_still_begins_no_effect(url: str, tmp_path: Path) -> None:
    """Both stand before the claim, and the one that lost the lease goes on first: it may not even begin."""
    finish(start(one_process, url, tmp_path, "submit"))
    with standing_still(stops_before_the_payment, url, tmp_path, "approve") as first, open_journal(url) as journal:
        until(lambda: True if journal.leases.holder(f"thread:{THREAD}") is None else None)
        with standing_still(stops_before_the_payment, url, tmp_path, "resume") as second:
            before = journal.audit.entries(THREAD)
            goes_on(first)
            first.join(30)

            assert first.exitcode == 1
            assert journal.audit.entries(THREAD) == before
            assert Bank(tmp_path / "bank").calls == []
            goes_on(second)
            finish(second)
            assert journal.runs.get(THREAD).state == "done"
    assert len(Bank(tmp_path / "bank").calls) == 1


class State(DurableState):
    payment: dict[str, Any]


def unanswerable(journal: Journal, folder: Path) -> DurableGraph:
    """Pay at a bank that takes no keys and answers no questions."""
    builder = StateGraph(State)
    pay = Bank(folder / "bank").effect(Receiver(attempts=1))
    arguments = {"claim_id": "0042", "amount": 5}
    builder.add_node("pay", effect_node(pay, journal, arguments=lambda s: arguments, into="payment"))
    builder.add_edge(START, "pay")
    return durable(builder, journal)


def stops_before_it_settles(url: str, folder: Path) -> None:
    signal_at("before effect.settle", signal.SIGSTOP)
    with open_journal(url, lease=LEASE) as journal:
        unanswerable(journal, folder).invoke({}, thread(THREAD))


def test_what_a_stopped_worker_had_called_ends_the_doubt_of_its_successor(url: str, tmp_path: Path) -> None:
    """The successor cannot tell whether it was paid and waits for a person; the worker that was stopped can, and its word is not lost."""
    with standing_still(stops_before_it_settles, url, tmp_path) as first, open_journal(url) as journal:
        graph = unanswerable(journal, tmp_path)

        def in_doubt() -> bool | None:
            try:
                graph.invoke(None, thread(THREAD))
            except RunBusy:
                return None
            except EffectInDoubt:
                return True
            raise AssertionError("somebody guessed")

        until(in_doubt)
        assert journal.runs.get(THREAD).state == "parked"
        head = journal.saver.head(THREAD)
        goes_on(first)
        first.join(30)

        assert first.exitcode == 1
        assert journal.saver.head(THREAD) == head
        assert journal.runs.get(THREAD).state == "admitted"
        assert graph.invoke(None, thread(THREAD))["payment"]["paid"] == 5
        assert journal.runs.get(THREAD).state == "done"
        assert list(journal.audit.verify()) == []
    assert len(Bank(tmp_path / "bank").calls) == 1
