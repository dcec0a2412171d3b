"""
A worker killed by SIGKILL at every durable write it makes, and a second one that finishes its claim: one payment, nothing left behind.

On Postgres the killed worker's job is found as well, and finished as failed.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph

from checkpointing import Journal, open_journal
from graph import DurableGraph, DurableState, durable, thread
from tests.crash.points import cases
from tests.crash.test_kill_matrix import check_done, lines
from tests.support.points import die_at
from tests.support.processes import killed, start, until
from tests.support.small_claim import LEASE, THREAD, small_claim
from tests.support.workers import a_worker, change_jobs, jobs, works, works_later

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


@pytest.mark.parametrize("point", ["before queue.sweep", "after queue.sweep"])
def test_killed_while_sweeping(new_postgres: Callable[[], str], tmp_path: Path, point: str) -> None:
    """SQLite has no queue to sweep for."""
    with open_journal(url := new_postgres(), lease=LEASE) as journal:
        submit(small_claim(journal, tmp_path))
        change_jobs(journal, "delete from procrastinate_jobs")
        killed(start(works, url, tmp_path, point))
        with a_worker(works, url, tmp_path):
            to_the_end(journal)

            check_done(journal, tmp_path)
            check_queue(journal)


class State(DurableState):
    claim_id: str


def fails(state: State) -> dict[str, Any]:
    raise OSError("the fuse has blown")


def older(journal: Journal, folder: Path) -> DurableGraph:
    """The graph as it was before it had the nodes of today; its only one fails."""
    builder = StateGraph(State)
    builder.add_node("fails", fails)
    builder.add_edge(START, "fails")
    return durable(builder, journal)


@pytest.mark.parametrize("point", ["before run.postpone", "after run.postpone"])
def test_killed_while_a_run_was_put_off(url: str, tmp_path: Path, point: str) -> None:
    """A worker of an older version cannot carry it on; one of today's does, a minute later."""
    with open_journal(url, lease=LEASE) as journal:
        submit(small_claim(journal, tmp_path))
        with a_worker(works, url, tmp_path):
            is_in(journal, "parked")
        decide(journal)
        killed(start(works, url, tmp_path, point, 1, older))
        with a_worker(works_later, url, tmp_path, timedelta(minutes=1)):
            is_in(journal, "done")

            check_done(journal, tmp_path)
            check_queue(journal)


WRITES_WITH_A_JOB = {
    "submit": "run.admit",
    "decide": "approval.decide",
    "fail": "run.stand_by",
    "redrive": "run.redrive",
}


def acts(url: str, folder: Path, action: str, point: str | None = None) -> None:
    """Do one thing, and die at *point* if one is given."""
    if point:
        die_at(point)
    with open_journal(url, lease=LEASE) as journal:
        match action:
            case "submit":
                submit(small_claim(journal, folder))
            case "decide":
                decide(journal)
            case "redrive":
                journal.runs.redrive(THREAD, principal="operator-3")
            case _:
                older(journal, folder).invoke(None, thread(THREAD))


def prepare(journal: Journal, folder: Path, action: str) -> None:
    """Bring the run to where *action* is possible, with no job for it."""
    if action == "decide":
        small_claim(journal, folder).invoke({"claim_id": "0042"}, thread(THREAD))
    elif action != "submit":
        older(journal, folder).submit({"claim_id": "0042"}, thread(THREAD))
        change_jobs(journal, "delete from procrastinate_jobs")
    if action == "redrive":
        change_jobs(journal, "update runs set state = 'dead', due_ms = null")


@pytest.mark.parametrize("action", WRITES_WITH_A_JOB)
@pytest.mark.parametrize(("side", "count"), [("committing", 0), ("after", 1)])
def test_a_job_is_made_with_what_it_follows(
    new_postgres: Callable[[], str], tmp_path: Path, action: str, side: str, count: int
) -> None:
    """Killed when both are written and not yet true, neither is there; killed right after, both are."""
    with open_journal(url := new_postgres(), lease=LEASE) as journal:
        prepare(journal, tmp_path, action)
        before = journal.runs.find(THREAD)
        killed(start(acts, url, tmp_path, action, f"{side} {WRITES_WITH_A_JOB[action]}"))

        after = journal.runs.find(THREAD)
        assert [job["queueing_lock"] for job in jobs(journal)] == [THREAD] * count
        if count:
            assert after is not None
            assert (after.state, after.due_at is not None) == ("admitted", True)
        else:
            assert (after and after.state) == (before and before.state if action != "fail" else "running")
