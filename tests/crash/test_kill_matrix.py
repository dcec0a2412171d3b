"""
Killed at every point that matters, by SIGKILL, on both engines: one execution at the receiver, the run ends done, no completed step runs again.

The process dies in one of three acts: while submitting, while approving, or while resuming after an earlier death. Afterwards fresh processes do
what an operator or a worker would do, and the traces outside are counted.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from checkpointing import Journal, open_journal
from checkpointing.errors import RunBusy
from tests.support.bank import Bank
from tests.support.processes import finish, killed, start, until
from tests.support.small_claim import THREAD, act, one_process, small_claim

SUBMITTING = [
    "before run.admit", "after run.admit", "before lease.take", "after lease.take", "before run.start", "after run.start",
    "before checkpoint.put", "after checkpoint.put", "before checkpoint.put_writes", "after checkpoint.put_writes",
    "before effect.claim", "after effect.claim", "before effect.settle", "after effect.settle",
    "before approval.open", "after approval.open", "before run.park", "after run.park",
]  # fmt: skip
APPROVING = [
    "before approval.decide", "after approval.decide", "before lease.take", "after lease.take", "before run.start", "after run.start",
    "before effect.claim", "after effect.claim", "executed", "before effect.settle", "after effect.settle",
    "before checkpoint.put_writes", "after checkpoint.put_writes", "before checkpoint.put", "after checkpoint.put",
    "before run.finish", "after run.finish",
]  # fmt: skip
LATER = [("after checkpoint.put", 2), ("after checkpoint.put", 3), ("after checkpoint.put_writes", 2), ("before effect.claim", 2),
         ("after effect.claim", 2), ("after effect.settle", 2), ("before checkpoint.put", 4)]  # fmt: skip


def run_to_the_end(url: str, folder: Path) -> Journal:
    """Do what is left to do, in this process, as soon as the dead one's lease allows it."""
    journal = open_journal(url)
    graph = small_claim(journal, folder)

    def acted(action: str) -> bool | None:
        try:
            act(graph, action)
        except RunBusy:
            return None
        return True

    until(lambda: acted("submit"))
    if journal.approvals.pending(thread_id=THREAD):
        until(lambda: acted("approve"))
    until(lambda: acted("resume"))
    return journal


def check_once(journal: Journal, folder: Path) -> None:
    """One execution of every effect, one question to the model, no completed step twice, and a whole record."""
    run = journal.runs.get(THREAD)
    assert (run.state, run.error) == ("done", None)
    assert len(Bank(folder / "bank").executed) == 1
    assert len(Bank(folder / "post").executed) == 1
    assert {record.state for record in journal.effects.list(thread_id=THREAD)} == {"settled"}
    assert len(journal.effects.list(thread_id=THREAD)) == 3
    decided = [approval for approval in journal.approvals.of_thread(THREAD) if approval.state == "decided"]
    assert len(decided) == 1
    assert list(journal.audit.verify()) == []
    journal.close()


def lines(folder: Path, file: str) -> int:
    return len((folder / file).read_text().splitlines())


@pytest.mark.parametrize("point", SUBMITTING)
def test_killed_while_submitting(url: str, tmp_path: Path, point: str) -> None:
    killed(start(one_process, url, tmp_path, "submit", point))

    check_once(run_to_the_end(url, tmp_path), tmp_path)
    # Only a model that was asked and whose answer was not recorded is asked again.
    assert lines(tmp_path, "model") == (2 if point == "before effect.settle" else 1)


@pytest.mark.parametrize(("point", "nth"), [(point, 1) for point in APPROVING] + LATER)
def test_killed_while_approving(url: str, tmp_path: Path, point: str, nth: int) -> None:
    finish(start(one_process, url, tmp_path, "submit"))
    killed(start(one_process, url, tmp_path, "approve", point, nth))

    check_once(run_to_the_end(url, tmp_path), tmp_path)
    assert lines(tmp_path, "model") == 1
    assert (tmp_path / "nodes").read_text().splitlines()[0] == "load"
    assert (tmp_path / "nodes").read_text().splitlines().count("load") == 1


def test_killed_again_and_again(url: str, tmp_path: Path) -> None:
    """Every process that takes the claim up dies after the receiver executed, before anything is recorded."""
    finish(start(one_process, url, tmp_path, "submit"))
    killed(start(one_process, url, tmp_path, "approve", "executed"))
    for _ in range(3):
        until(lambda: _resume_and_die(url, tmp_path))

    assert len(Bank(tmp_path / "bank").calls) == 4
    journal = run_to_the_end(url, tmp_path)
    assert journal.runs.get(THREAD).resumes == 4
    check_once(journal, tmp_path)


def _resume_and_die(url: str, folder: Path) -> bool | None:
    before = len(Bank(folder / "bank").calls)
    start(one_process, url, folder, "resume", "executed").join(60)
    return True if len(Bank(folder / "bank").calls) > before else None
