"""
A worker that stands still past its lease (SIGSTOP), while another takes over, and goes on afterwards (SIGCONT).

    first    claim ── stopped ............................ going on: settle ✓, checkpoint ✗
    second                     lease ends, takes over, finishes the run
"""

from __future__ import annotations

import os
import signal
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from checkpointing import open_journal
from checkpointing.errors import RunBusy
from tests.support.bank import Bank
from tests.support.processes import finish, start, until
from tests.support.small_claim import LEASE, THREAD, act, one_process, small_claim


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


def stopped(pid: int) -> bool | None:
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return True if state == "T" else None


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_worker_that_stood_still_past_its_lease_writes_nothing(url: str, tmp_path: Path, when: str) -> None:
    finish(start(one_process, url, tmp_path, "submit"))
    first = start(stops_itself, url, tmp_path, when)
    assert first.pid is not None
    pid = first.pid
    until(lambda: stopped(pid))
    with open_journal(url, lease=timedelta(seconds=30)) as journal:
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
        os.kill(pid, signal.SIGCONT)
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
    first = start(stops_itself, url, tmp_path, "after")
    assert first.pid is not None
    pid = first.pid
    until(lambda: stopped(pid))
    with open_journal(url) as journal:
        until(lambda: True if journal.leases.holder(f"thread:{THREAD}") is None else None)
        os.kill(pid, signal.SIGCONT)
        finish(first)

        assert journal.runs.get(THREAD).state == "done"
    assert len(Bank(tmp_path / "bank").calls) == 1
