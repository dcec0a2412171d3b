"""
Two workers, or a worker and whoever gives it work, at one run at the same moment: it is carried on once, and no wake-up is lost.

The two are processes that meet right before they write; each looks at the run as a worker does.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from checkpointing import Journal, open_journal
from checkpointing.dispatch import TASK, queue_of
from graph import DurableGraph, thread
from service.worker import Draining
from service.worker.advancing import advance
from tests.support.processes import until
from tests.support.races import FEW, ROUNDS, Side, race
from tests.support.short_claim import claim, payments, thread_of
from tests.support.workers import change_jobs, jobs

DUE_RUNS = 20


def submits(graph: DurableGraph, number: int) -> str:
    graph.submit({"claim_id": f"{number}"}, thread(thread_of(number)))
    return "submitted"


def looks(graph: DurableGraph, number: int) -> str:
    return advance({graph.name: graph}, graph.journal, thread_of(number), Draining()).outcome


def decides(graph: DurableGraph, number: int) -> str:
    """Decide as soon as the question is asked, and leave the rest to the workers."""
    approvals = graph.journal.approvals
    [asked] = until(lambda: approvals.pending(thread_id=thread_of(number)) or None)
    approvals.decide(asked.id, {"type": "approve"}, principal="ann")
    return "decided"


def is_decided(graph: DurableGraph, number: int) -> str:
    submits(graph, number)
    looks(graph, number)
    return decides(graph, number)


def check_work_left(journal: Journal, thread_id: str) -> None:
    """A worker that looks by itself finds the run, and one that waits for jobs has one."""
    assert journal.runs.get(thread_id).state == "admitted"
    assert thread_id in journal.runs.due("", limit=10 * ROUNDS)
    if journal.store.dialect.dispatches:
        assert [job["status"] for job in jobs(journal) if job["queueing_lock"] == thread_id] == ["todo"]


def test_two_workers_at_one_run_carry_it_on_once(url: str, tmp_path: Path) -> None:
    left, right = (Side(looks, meets="lease.take", prepare=is_decided) for _ in range(2))
    said = race(url, tmp_path, claim, left, right, FEW)

    assert {("done", "busy"), ("busy", "done")} & set(said)
    assert set(said) <= {("done", "busy"), ("busy", "done"), ("done", "done")}
    with open_journal(url) as journal:
        for number in range(FEW):
            run = journal.runs.get(thread_of(number))
            assert (run.state, run.resumes) == ("done", 0)
            assert payments(tmp_path)[f"{number}"] == 1
        assert list(journal.audit.verify()) == []


def test_a_decision_against_the_park_is_not_lost(url: str, tmp_path: Path) -> None:
    """Either the worker that parks sees the decision and goes on, or the decision finds the run parked and wakes it."""
    left = Side(looks, meets="run.park", prepare=submits)
    said = race(url, tmp_path, claim, left, Side(decides, meets="approval.decide", prepare=submits), FEW)

    outcomes = {looked for looked, _ in said}
    assert "done" in outcomes
    assert outcomes & {"parked", "admitted"}
    with open_journal(url) as journal:
        graph = claim(journal, tmp_path)
        for number, (looked, _) in enumerate(said):
            if looked != "done":
                check_work_left(journal, thread_of(number))
                assert looks(graph, number) == "done"
            assert payments(tmp_path)[f"{number}"] == 1
        assert list(journal.audit.verify()) == []


def sweeps(graph: DurableGraph, number: int) -> str:
    return str(graph.journal.runs.enqueue_due(""))


def test_a_submission_against_the_sweep_has_one_job(new_postgres: Callable[[], str], tmp_path: Path) -> None:
    left = Side(submits, meets="run.admit")
    race(url := new_postgres(), tmp_path, claim, left, Side(sweeps, meets="queue.sweep"), FEW)

    with open_journal(url) as journal:
        waiting = sorted(job["queueing_lock"] for job in jobs(journal) if job["status"] == "todo")
        assert waiting == sorted(map(thread_of, range(FEW)))


def loses_its_jobs(graph: DurableGraph, number: int) -> str:
    change_jobs(graph.journal, "delete from procrastinate_jobs")
    return sweeps(graph, number)


def test_two_sweeps_at_once_give_each_run_one_job(new_postgres: Callable[[], str], tmp_path: Path) -> None:
    with open_journal(url := new_postgres()) as journal:
        for number in range(DUE_RUNS):
            submits(claim(journal, tmp_path), number)
        race(url, tmp_path, claim, Side(loses_its_jobs, meets="queue.sweep"), Side(sweeps, meets="queue.sweep"), FEW)
        sweeps(claim(journal, tmp_path), 0)

        assert [job["status"] for job in jobs(journal)] == ["todo"] * DUE_RUNS


def has_an_old_job(graph: DurableGraph, number: int) -> str:
    """Park the run; a job that was meant for something else stands there still."""
    submits(graph, number)
    return looks(graph, number)


FETCH = """
update procrastinate_jobs set status = 'doing' where id = (
    select id from procrastinate_jobs where queueing_lock = :thread_id and queue_name = :queue and task_name = :task
    and status = 'todo' and coalesce(scheduled_at, now()) <= now() for update skip locked) returning id
"""
"""As Procrastinate fetches, but this thread's job."""


def takes_the_old_job(graph: DurableGraph, number: int) -> str:
    """Take the job and look at the run, as a worker begins, and end the job; say what was to be seen."""
    journal, thread_id = graph.journal, thread_of(number)
    with journal.store.transaction("job.fetch") as tx:
        found = tx.all(FETCH, thread_id=thread_id, queue=queue_of(""), task=TASK)
    if not found:
        return "no job"
    state = journal.runs.get(thread_id).state
    change_jobs(journal, "delete from procrastinate_jobs where id = :id", id=found[0]["id"])
    return state


def test_a_decision_is_not_lost_on_a_job_that_is_just_being_taken(
    new_postgres: Callable[[], str], tmp_path: Path
) -> None:
    """A worker that took the old job and saw the run parked does nothing: the decision must have a job of its own."""
    left = Side(decides, meets="approval.decide", prepare=has_an_old_job)
    right = Side(takes_the_old_job, meets="job.fetch", prepare=has_an_old_job)
    said = race(url := new_postgres(), tmp_path, claim, left, right, ROUNDS)

    assert {seen for _, seen in said} & {"parked"}
    with open_journal(url) as journal:
        for number, (_, seen) in enumerate(said):
            if seen != "admitted":
                check_work_left(journal, thread_of(number))
