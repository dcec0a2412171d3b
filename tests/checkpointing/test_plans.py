"""
What a worker asks of the database reads what it is about, and not the whole of a table that grows.

The plans are those of a database with some thousands of parked and finished runs, for the statements and parameters as they were really sent.
Postgres has looked at its tables as it does by itself (`analyze`); SQLite has not, as it never does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from procrastinate.sql import queries

from benchmarks.claim import NAME, measured_claim
from benchmarks.copies import copy_of, copy_thread
from checkpointing import Journal, open_journal
from checkpointing.dispatch import ENQUEUE_DUE, TASK, queue_of
from checkpointing.due import DUE, POSTPONE
from checkpointing.leases import RENEW, TAKE
from checkpointing.listing import EVERYTHING, Asked, Sight
from checkpointing.store import Store, Tx
from graph import DurableGraph, thread
from service.throwaway_postgres import throwaway_database
from service.worker import Draining
from service.worker.advancing import advance
from tests.support.plans import Sent, postgres_plan, rows_read, scans, sent, sorts, sqlite_steps

PARKED, DONE = "original-parked", "original-done"
COPIES = 2000
QUEUED = 3000
TEN = 10
SIGHTS = (EVERYTHING, Sight("intake"), Sight(asking=True), Sight("intake", asking=True))

JOBS = """
insert into procrastinate_jobs (queue_name, task_name, queueing_lock, args, status)
select :queue, :task, :state || n, '{}', cast(:state as procrastinate_job_status) from generate_series(1, :count) n
"""
OVERDUE = "update runs set due_ms = 1 where thread_id = :thread_id"
FETCH = "select prosrc from pg_proc where proname = 'procrastinate_fetch_job_v2'"


@pytest.fixture(scope="module")
def full_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DurableGraph]:
    """A graph whose journal has thousands of parked and of finished runs, on SQLite."""
    folder = tmp_path_factory.mktemp("full")
    with filled(f"sqlite:///{folder}/journal.db", folder) as graph:
        yield graph


@pytest.fixture(scope="module")
def full_postgres(postgres_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DurableGraph]:
    """The same on Postgres, with thousands of jobs too that wait and that failed."""
    with throwaway_database(postgres_server) as url, filled(url, tmp_path_factory.mktemp("full")) as graph:
        yield graph


@pytest.fixture
def full(engine: str, request: pytest.FixtureRequest) -> DurableGraph:
    """The full journal's graph, on each engine in turn."""
    graph: DurableGraph = request.getfixturevalue(f"full_{engine}")
    return graph


@contextmanager
def filled(url: str, folder: Path) -> Iterator[DurableGraph]:
    """Fill a new journal."""
    with open_journal(url, artefacts=str(folder / "artefacts")) as journal:
        graph = measured_claim(journal, model_s=0, asks=True)
        for thread_id in (PARKED, DONE):
            graph.invoke({"claim_id": "0042"}, thread(thread_id))
        decide(journal, DONE)
        graph.invoke(None, thread(DONE))
        if journal.store.dialect.dispatches:
            queue(journal)
        for thread_id in (PARKED, DONE):
            copy_thread(journal.store, thread_id, first=1, last=COPIES)
        yield graph


def decide(journal: Journal, thread_id: str) -> None:
    [asked] = journal.approvals.pending(thread_id=thread_id)
    journal.approvals.decide(asked.id, {"type": "approve"}, principal="adjuster-17")


def queue(journal: Journal) -> None:
    """Put jobs into the queue that wait, that failed, and a few that are at work."""
    with journal.store.transaction("test.queue") as tx:
        for state, count in (("todo", QUEUED), ("failed", QUEUED), ("doing", 3)):
            tx.all(JOBS, queue=queue_of(NAME), task=TASK, state=state, count=count)


def what_a_worker_sends(graph: DurableGraph) -> Sent:
    """Record a whole life: submitted, carried on until it parks, decided, carried on to its end, and all that is asked between."""
    journal, thread_id = graph.journal, "claim-0042"
    with sent(journal) as found:
        graph.submit({"claim_id": "0042"}, thread(thread_id))
        for act in (lambda: None, lambda: decide(journal, thread_id)):
            act()
            journal.runs.due(NAME, limit=100)
            assert advance({NAME: graph}, journal, thread_id, Draining()).outcome in ("parked", "done")
            journal.runs.postpone(journal.runs.get(thread_id), wait=timedelta(seconds=1))
            if journal.store.dialect.dispatches:
                journal.runs.enqueue_due(NAME)
        journal.approvals.apply_due(copy_of(PARKED, 7))
        lease = journal.leases.take("thread:another")
        journal.leases.renew(lease)
        journal.leases.give_back(lease)
        journal.approvals.pending()
        journal.runs.list(state="parked", limit=100)
        journal.effects.list(thread_id=thread_id)
    return found


def test_nothing_that_a_worker_sends_reads_a_whole_table(full: DurableGraph) -> None:
    found = what_a_worker_sends(full)

    with full.journal.store.reading() as tx:
        wanted = [DUE, TAKE, RENEW, POSTPONE, *([ENQUEUE_DUE] if tx.dialect.dispatches else [])]
        known = {opening(sql) for sql in found.statements}
        assert {opening(tx.dialect.translate(sql)) for sql in wanted} <= known
        read = {sql: bad for sql, parameters in found.statements.items() if (bad := scans(tx, sql, parameters))}
    assert read == {}


def opening(sql: str) -> str:
    """Return the first words of a statement, which have no parameters in them."""
    return " ".join(sql.split()[:5])


def test_the_look_for_what_is_due_reads_nothing_that_is_parked(full: DurableGraph) -> None:
    """A plan that uses the index is not enough: it may still read every parked run's entry in it, and throw it away."""
    with pulled_back(full.journal.store) as tx:
        if not tx.dialect.dispatches:  # which does not count what it reads
            assert by_time(sqlite_steps(tx, DUE, looking(tx))) == ["graph=? AND due_ms<?"]
            return
        nothing_due = [rows_read(plan) for plan in looked(tx)]
        for number in range(TEN):
            tx.all(OVERDUE, thread_id=copy_of(PARKED, number + 1))
        ten_due = [rows_read(plan) for plan in looked(tx)]

    assert all(sum(read.values()) == 0 for read in nothing_due), nothing_due
    assert [(read["runs"], read["leases"]) for read in ten_due] == [(TEN, TEN), (TEN, TEN)]
    assert [read.get("procrastinate_jobs", 0) for read in ten_due] == [0, 0]


def test_without_its_index_the_look_for_what_is_due_is_found_out(full: DurableGraph) -> None:
    with pulled_back(full.journal.store) as tx:
        tx.all("drop index runs_due")
        found = [scans(tx, tx.dialect.translate(look), looking(tx)) for look in looks(tx)]

    assert all(found), found


def test_what_the_queue_itself_asks_reads_no_whole_table(full_postgres: DurableGraph) -> None:
    """The statements of Procrastinate: the next job, the jobs of dead workers, the jobs to be aborted. It is on Postgres only."""
    with full_postgres.journal.store.reading() as tx:
        asked = {
            fetching(tx): {"queues": [queue_of(NAME)], "worker": 1},
            queries["select_stalled_jobs_by_heartbeat"]: {
                "queue": queue_of(NAME),
                "task_name": None,
                "seconds_since_heartbeat": 30,
            },
            queries["list_jobs_to_abort"]: {"queue_name": None},
        }
        read = {sql: bad for sql, parameters in asked.items() if (bad := scans(tx, sql, parameters))}
    assert read == {}


def turn_pages(graph: DurableGraph) -> Sent:
    """Record what is sent for two pages of every list."""
    listing, asked = graph.journal.listing, graph.journal.approvals.pending(limit=1)[0]
    lists = [
        *(partial(listing.runs, sight=sight, state=state) for sight in SIGHTS for state in (None, "parked")),
        *(partial(listing.approvals, Asked(state)) for state in ("pending", "decided", "expired")),
        *(partial(listing.approvals, Asked(state, thread_id=asked.thread_id)) for state in (None, "pending")),
        partial(listing.similar, asked),
        *(partial(listing.effects, state=state) for state in (None, "settled", "in_doubt")),
        *(partial(listing.effects, thread_id=asked.thread_id, state=state) for state in (None, "settled")),
        partial(listing.entries, asked.thread_id),
    ]
    with sent(graph.journal) as found:
        for pages in lists:
            if following := pages(limit=TEN).next:
                pages(limit=TEN, after=following)
        listing.has_asked(asked.thread_id)
    return found


def test_no_page_reads_a_whole_table(full: DurableGraph) -> None:
    found = turn_pages(full)

    with full.journal.store.reading() as tx:
        read = {sql: bad for sql, parameters in found.statements.items() if (bad := scans(tx, sql, parameters))}
        sorted_first = {
            sql: plan
            for sql, parameters in found.statements.items()
            if "thread_id = " not in sql and (plan := sorts(tx, sql, parameters))
        }
    assert len(found.statements) > TEN
    assert (read, sorted_first) == ({}, {})


def test_a_page_reads_no_more_rows_than_it_has(full_postgres: DurableGraph) -> None:
    """On Postgres, which counts them: a page of ten, and the row that says whether there is more; other tables are joined row by row."""
    found = turn_pages(full_postgres)

    with full_postgres.journal.store.reading() as tx:
        read = {
            sql: rows_read(postgres_plan(tx, sql, parameters, run=True)) for sql, parameters in found.statements.items()
        }
    assert {sql: rows for sql, rows in read.items() if max(rows.values(), default=0) > TEN + 1} == {}


def looks(tx: Tx) -> list[str]:
    """Return the statements that look for what is due, on this engine."""
    return [DUE, ENQUEUE_DUE] if tx.dialect.dispatches else [DUE]


def looking(tx: Tx) -> dict[str, Any]:
    """Return their parameters."""
    return {"graph": NAME, "until": tx.now_ms(), "limit": 1000, "queue": queue_of(NAME), "task": TASK, "priority": 10}


def looked(tx: Tx) -> list[dict[str, Any]]:
    """Look for what is due, on Postgres, and return what each statement really did."""
    return [postgres_plan(tx, tx.dialect.translate(look), looking(tx), run=True) for look in looks(tx)]


def by_time(steps: list[str]) -> list[str]:
    """Return what SQLite looks up in the index of what is due."""
    return [step.partition("runs_due (")[2].rstrip(")") for step in steps if "runs_due" in step]


def fetching(tx: Tx) -> str:
    """Return the statement inside the function with which a worker gets its next job."""
    [row] = tx.all(FETCH)
    body = str(row["prosrc"]).partition("BEGIN")[2].partition("INTO found_jobs")[0]
    return body.replace("target_queue_names", "%(queues)s::varchar[]").replace("p_worker_id", "%(worker)s::bigint")


@contextmanager
def pulled_back(store: Store) -> Iterator[Tx]:
    """Provide a transaction that is rolled back at the end of the block."""

    class PulledBack(Exception):
        pass

    with suppress(PulledBack), store.transaction("test.explain") as tx:
        yield tx
        raise PulledBack
