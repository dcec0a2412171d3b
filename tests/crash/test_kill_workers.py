"""
A worker killed by SIGKILL at every durable write it makes, and a second one that finishes its claim: one payment, nothing left behind.

On Postgres the killed worker's job is found as well, and finished as failed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from checkpointing import Journal, open_journal
from graph import DurableGraph, thread
from tests.crash.points import cases
from tests.crash.test_kill_matrix import check_done, lines
from tests.support.processes import killed, start, until
from tests.support.small_claim import LEASE, THREAD, small_claim
from tests.support.workers import a_worker, jobs, works

CALLERS = {"run.admit", "approval.decide"}
"""What whoever submits and decides writes, and no worker does."""


def workers(story: str) -> list[tuple[str, int]]:
    """Return the points that a worker passes in this story."""
    return [(point, nth) for _, point, nth in cases(story) if point.partition(" ")[2] not in CALLERS]


LATER = [("executed", 1), ("after checkpoint.put", 2), ("before effect.claim", 2), ("after effect.settle", 2)]


def submit(graph: DurableGraph) -> None:
    graph.submit({"claim_id": "0042"}, thread(THREAD))


def decide(journal: Journal) -> None:
    [pending] = journal.approvals.pending(thread_id=THREAD)
    journal.approvals.decide(pending.id, {"type": "approve"}, principal="adjuster-17")


def is_in(journal: Journal, state: str) -> None:
    """Wait until a worker has brought the run there, and has nothing more to do."""
    until(lambda: True if journal.runs.get(THREAD).state == state else None)
    until(lambda: True if not [job for job in jobs(journal) if job["status"] in ("todo", "doing")] else None)


def to_the_end(journal: Journal) -> None:
    """Answer the question when it is asked, and wait for the end."""
    is_in(journal, "parked")
    decide(journal)
    is_in(journal, "done")


def check_queue(journal: Journal) -> None:
    """What the dead worker was doing is on record as failed, and nothing else is left."""
    assert {job["status"] for job in jobs(journal)} <= {"failed"}


@pytest.mark.parametrize(("point", "nth"), workers("submitting"))
def test_a_worker_killed_on_the_way_to_the_question(url: str, tmp_path: Path, point: str, nth: int) -> None:
    with open_journal(url, lease=LEASE) as journal:
        submit(small_claim(journal, tmp_path))
        killed(start(works, url, tmp_path, point, nth))
        with a_worker(works, url, tmp_path):
            to_the_end(journal)

            check_done(journal, tmp_path)
            check_queue(journal)
    assert lines(tmp_path, "model") == (2 if point == "before effect.settle" else 1)


@pytest.mark.parametrize(("point", "nth"), [*workers("approving"), *LATER])
def test_a_worker_killed_on_the_way_from_the_decision(url: str, tmp_path: Path, point: str, nth: int) -> None:
    with open_journal(url, lease=LEASE) as journal:
        submit(small_claim(journal, tmp_path))
        with a_worker(works, url, tmp_path):
            is_in(journal, "parked")
        decide(journal)
        killed(start(works, url, tmp_path, point, nth))
        with a_worker(works, url, tmp_path):
            is_in(journal, "done")

            check_done(journal, tmp_path)
            check_queue(journal)
    assert lines(tmp_path, "model") == 1
