"""The queue on Postgres: jobs that are lost, doubled, late, early or for nothing, and those of workers that died or stood still."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from procrastinate import App, PsycopgConnector
from structlog.testing import capture_logs

from checkpointing import Journal, open_journal
from checkpointing.admissions import Admission
from checkpointing.dispatch import TASK, queue_of
from checkpointing.postgres import PostgresEngine
from graph import DurableGraph, DurableState, durable, thread
from service.worker import Draining, work
from service.worker.jobs import _Queue
from tests.support.bank import Bank
from tests.support.points import at_point
from tests.support.processes import finish, start, until
from tests.support.small_claim import LEASE, THREAD, act, small_claim
from tests.support.workers import RHYTHM, a_worker, carry_on, change_jobs, jobs, works

BY_HAND = """
insert into procrastinate_jobs (queue_name, task_name, queueing_lock, args)
values (:queue, :task, :lock, jsonb_build_object('thread_id', cast(:thread_id as text)))
"""


@pytest.fixture
def url(new_postgres: Callable[[], str]) -> str:
    """SQLite has no queue."""
    return new_postgres()


@pytest.fixture
def journal(url: str) -> Iterator[Journal]:
    with open_journal(url, lease=LEASE) as opened:
        yield opened


@pytest.fixture
def graph(journal: Journal, tmp_path: Path) -> DurableGraph:
    return small_claim(journal, tmp_path)


def add_by_hand(journal: Journal, thread_id: str, lock: str) -> None:
    change_jobs(journal, BY_HAND, queue=queue_of(""), task=TASK, lock=lock, thread_id=thread_id)


def submit(graph: DurableGraph, thread_id: str = THREAD) -> None:
    graph.submit({"claim_id": thread_id.removeprefix("claim-")}, thread(thread_id))


def decide(journal: Journal, thread_id: str = THREAD) -> None:
    [pending] = journal.approvals.pending(thread_id=thread_id)
    journal.approvals.decide(pending.id, {"type": "approve"}, principal="adjuster-17")


def becomes(journal: Journal, state: str, thread_id: str = THREAD) -> None:
    until(lambda: True if journal.runs.get(thread_id).state == state else None)


def ended(journal: Journal) -> list[str]:
    """Wait until no job is left to do, and return how those ended that are still on record."""
    until(lambda: True if not [job for job in jobs(journal) if job["status"] in ("todo", "doing")] else None)
    return [job["status"] for job in jobs(journal)]


def waiting(journal: Journal) -> list[Any]:
    """When the jobs to do are scheduled; `None` is at once."""
    return [job["scheduled_at"] for job in jobs(journal) if job["status"] == "todo"]


def test_a_submission_a_decision_and_a_redrive_have_their_job(journal: Journal, graph: DurableGraph) -> None:
    submit(graph)
    assert waiting(journal) == [None]
    change_jobs(journal, "delete from procrastinate_jobs")
    act(graph, "resume")
    assert waiting(journal) == []
    decide(journal)
    assert waiting(journal) == [None]
    change_jobs(journal, "delete from procrastinate_jobs")
    change_jobs(journal, "update runs set state = 'dead'")
    journal.runs.redrive(THREAD, principal="operator-3")

    assert waiting(journal) == [None]


class State(DurableState):
    claim_id: str


def fails(state: State) -> dict[str, Any]:
    raise OSError("the fuse has blown")


def failing(journal: Journal) -> DurableGraph:
    builder = StateGraph(State)
    builder.add_node("node", fails)
    builder.add_edge(START, "node")
    return durable(builder, journal)


def test_a_run_that_failed_has_a_job_for_its_next_attempt(journal: Journal) -> None:
    with pytest.raises(OSError, match="fuse"):
        failing(journal).invoke({"claim_id": "0042"}, thread(THREAD))

    run = journal.runs.get(THREAD)
    planned = waiting(journal)
    assert len(planned) == 1
    assert run.due_at is not None
    assert abs((planned[0] - run.due_at).total_seconds()) < 0.5


@pytest.mark.parametrize("how", ["decided", "redriven"])
def test_what_a_person_does_brings_an_older_job_forward(journal: Journal, graph: DurableGraph, how: str) -> None:
    """A retry was planned for later; meanwhile the run was carried on by hand, and its job stands there still."""
    submit(graph)
    change_jobs(journal, "update procrastinate_jobs set scheduled_at = now() + interval '1 hour'")
    act(graph, "resume")
    [planned] = waiting(journal)
    if how == "decided":
        decide(journal)
    else:
        change_jobs(journal, "update runs set state = 'dead'")
        journal.runs.redrive(THREAD, principal="operator-3")

    assert planned is not None
    assert waiting(journal) == [None]


def test_a_retry_does_not_put_off_a_job_that_is_due(journal: Journal) -> None:
    submit(graph := failing(journal))
    with pytest.raises(OSError, match="fuse"):
        graph.invoke(None, thread(THREAD))

    assert waiting(journal) == [None]


def test_a_lost_job_is_found_by_the_sweep(url: str, journal: Journal, graph: DurableGraph, tmp_path: Path) -> None:
    submit(graph)
    change_jobs(journal, "delete from procrastinate_jobs")
    with a_worker(works, url, tmp_path):
        becomes(journal, "parked")
        decide(journal)
        change_jobs(journal, "delete from procrastinate_jobs where status = 'todo' and queueing_lock = 'claim-0042'")
        becomes(journal, "done")
    assert len(Bank(tmp_path / "bank").calls) == 1


def test_no_threads_job_is_in_the_sweeps_way(url: str, journal: Journal, graph: DurableGraph, tmp_path: Path) -> None:
    """A thread may be called as the sweep's lock would be; its job, which waits where no worker looks, must not keep the sweep away."""
    change_jobs(
        journal, BY_HAND, queue="graph:none", task=TASK, lock=f"sweep {queue_of('')}", thread_id=f"sweep {queue_of('')}"
    )
    submit(graph)
    change_jobs(journal, "delete from procrastinate_jobs where queueing_lock = :lock", lock=THREAD)

    with a_worker(works, url, tmp_path):
        becomes(journal, "parked")


def test_a_sweep_that_fails_is_heard(
    url: str, journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A column that is missing, say: nobody would know that runs of killed workers are not found any more."""
    change_jobs(journal, "alter table runs rename column due_ms to due")
    draining = Draining()
    with capture_logs() as heard:
        working = threading.Thread(
            target=lambda: work([small_claim(journal, tmp_path)], draining=draining, rhythm=RHYTHM)
        )
        working.start()
        try:
            until(lambda: True if any(one["event"] == "sweep_failed" for one in heard) else None)
        finally:
            draining.ask()
            working.join()


def test_a_retry_is_not_woken_before_it_is_due(journal: Journal) -> None:
    """A job that fires too early is for nothing, and the run would wait for a sweep."""
    for number in range(20):
        thread_id = f"errand-{number}"
        journal.runs.admit(Admission(thread_id, "json", b"{}", "digest", "", None, "", takes_turns=False), queued=False)
        lease = journal.leases.take(f"thread:{thread_id}")
        journal.runs.start(lease, thread_id, head="")
        journal.runs.stand_by(lease, thread_id, error="late", refund=False, wait=timedelta(milliseconds=250))
        [job] = [one for one in jobs(journal) if one["queueing_lock"] == thread_id]
        due_at = journal.runs.get(thread_id).due_at

        assert due_at is not None
        assert job["scheduled_at"] >= due_at


def test_a_redrive_goes_before_what_was_submitted(journal: Journal, graph: DurableGraph) -> None:
    submit(graph)
    change_jobs(journal, "update runs set state = 'dead'")
    change_jobs(journal, "delete from procrastinate_jobs")
    submit(graph, "claim-0043")
    journal.runs.redrive(THREAD, principal="operator-3")

    priorities = change_jobs(journal, "select queueing_lock, priority from procrastinate_jobs order by priority desc")
    assert [one["queueing_lock"] for one in priorities] == [THREAD, "claim-0043"]


def test_a_sweep_gives_one_job_to_what_is_due_and_none_to_what_is_not(journal: Journal, graph: DurableGraph) -> None:
    for number in range(3):
        submit(graph, f"claim-{number}")
    act(graph, "submit")
    change_jobs(journal, "delete from procrastinate_jobs")

    assert journal.runs.enqueue_due("") == 3
    assert journal.runs.enqueue_due("") == 0
    assert sorted(job["queueing_lock"] for job in jobs(journal)) == ["claim-0", "claim-1", "claim-2"]


def test_a_sweep_leaves_a_run_alone_that_a_worker_holds(journal: Journal, graph: DurableGraph) -> None:
    submit(graph)
    change_jobs(journal, "delete from procrastinate_jobs")
    lease = journal.leases.take(f"thread:{THREAD}")
    journal.runs.start(lease, THREAD, head="")

    assert journal.runs.enqueue_due("") == 0
    until(lambda: journal.runs.enqueue_due("") or None)
    assert waiting(journal) == [None]


def test_a_doubled_job_meets_the_lease_or_finds_nothing_to_do(
    url: str, journal: Journal, graph: DurableGraph, tmp_path: Path
) -> None:
    submit(graph)
    for lock in ("one", "two", "three"):
        add_by_hand(journal, THREAD, lock)
    with a_worker(works, url, tmp_path), a_worker(works, url, tmp_path):
        becomes(journal, "parked")
        assert ended(journal) == []
        decide(journal)
        for lock in ("one", "two", "three"):
            add_by_hand(journal, THREAD, lock)
        becomes(journal, "done")
        assert ended(journal) == []
    assert len(Bank(tmp_path / "bank").calls) == 1
    assert (tmp_path / "nodes").read_text().split() == ["load", "close"]
    assert list(journal.audit.verify()) == []


def test_a_job_for_nothing_ends_well_and_harms_nothing(
    url: str, journal: Journal, graph: DurableGraph, tmp_path: Path
) -> None:
    """For a thread that does not exist, is done, is dead, or is another graph's; a claim submitted after them is carried on."""
    act(graph, "submit")
    act(graph, "approve")
    submit(graph, "claim-dead")
    change_jobs(journal, "update runs set state = 'dead', due_ms = null where thread_id = 'claim-dead'")
    durable(graph.compiled.builder, journal, name="another").submit({"claim_id": "1"}, thread("another's"))
    change_jobs(journal, "delete from procrastinate_jobs")
    threads = ("nobody", THREAD, "claim-dead", "another's")
    entries = {one: journal.audit.entries(one) for one in threads}
    for one in threads:
        add_by_hand(journal, one, one)
    submit(graph, "claim-last")
    with a_worker(works, url, tmp_path):
        becomes(journal, "parked", "claim-last")
        assert ended(journal) == []

    assert {one: journal.audit.entries(one) for one in threads} == entries
    assert len(Bank(tmp_path / "bank").calls) == 1


def stands_still(url: str, folder: Path) -> None:
    """Be a worker that stands still before its first payment."""
    at_point("before effect.claim", lambda: os.kill(os.getpid(), signal.SIGSTOP), nth=2)
    carry_on(url, folder, small_claim)


@contextmanager
def stopped_worker(url: str, folder: Path) -> Iterator[Any]:
    process = start(stands_still, url, folder)
    try:
        yield process
    finally:
        process.kill()


def test_a_worker_that_stood_still_finds_its_job_taken_and_works_on(
    url: str, journal: Journal, graph: DurableGraph, tmp_path: Path
) -> None:
    """Its worker's row is gone, its job is finished as failed, its run is another worker's: none of it ends it."""
    submit(graph)
    with stopped_worker(url, tmp_path) as first:
        becomes(journal, "parked")
        decide(journal)
        until(lambda: True if "T" in Path(f"/proc/{first.pid}/stat").read_text().split(")")[1].split()[0] else None)
        with a_worker(works, url, tmp_path):
            becomes(journal, "done")
            until(lambda: True if "failed" in [job["status"] for job in jobs(journal)] else None)
        entries = journal.audit.entries(THREAD)
        os.kill(first.pid, signal.SIGCONT)
        submit(graph, "claim-next")
        becomes(journal, "parked", "claim-next")
        assert journal.audit.entries(THREAD) == entries
        first.terminate()
        finish(first)
    assert ended(journal) == ["failed"]
    assert len(Bank(tmp_path / "bank").calls) == 1


def test_two_sweeps_at_once_both_do_their_work(journal: Journal, graph: DurableGraph) -> None:
    """Both find the same jobs of a dead worker, and one of them is always the second to finish one."""
    for number in range(5):
        submit(graph, f"claim-{number}")
    change_jobs(journal, "update procrastinate_jobs set status = 'doing'")
    engine = journal.store.engine
    assert isinstance(engine, PostgresEngine)
    queue = _Queue(journal, engine, [""], print, Draining(), 1, RHYTHM, look=lambda: 0)

    async def twice() -> list[object]:
        app = App(connector=PsycopgConnector(conninfo=engine.url))
        async with app.open_async():
            return list(await asyncio.gather(queue._sweep(app, ""), queue._sweep(app, ""), return_exceptions=True))

    assert asyncio.run(twice()) == [None, None]
    assert [job["status"] for job in jobs(journal)] == ["failed"] * 5 + ["todo"] * 5
