"""A run's job is one that Procrastinate could have deferred itself, waits once a thread, and is only ever brought forward. Postgres only: SQLite has no jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from procrastinate import App, SyncPsycopgConnector

from checkpointing import Journal, open_journal
from checkpointing.admissions import Admission
from checkpointing.dispatch import TASK, WOKEN, enqueue, queue_of

JOBS = "select queue_name, task_name, priority, lock, queueing_lock, args, cast(status as text), scheduled_at, attempts from procrastinate_jobs order by id"
NAMES = ("", "claims", "a" * 32, "a" * 33, "straße", "x y", "#" * 200, "graph:claims", "a.b-c_d")


@pytest.fixture
def url(new_postgres: Callable[[], str]) -> str:
    return new_postgres()


@pytest.fixture
def journal(url: str) -> Iterator[Journal]:
    with open_journal(url) as opened:
        yield opened


def put(journal: Journal, thread_id: str, **options: Any) -> None:
    with journal.store.transaction("test") as tx:
        enqueue(tx, thread_id, graph="claims", **options)


def jobs(journal: Journal) -> list[dict[str, Any]]:
    with journal.store.reading() as tx:
        return tx.all(JOBS)


def waits_s(journal: Journal) -> float | None:
    with journal.store.reading() as tx:
        row = tx.one("select extract(epoch from scheduled_at - now()) as left_s from procrastinate_jobs")
    assert row is not None
    return None if row["left_s"] is None else float(row["left_s"])


def test_the_job_is_the_one_that_procrastinate_would_have_deferred(journal: Journal, url: str) -> None:
    put(journal, "one", priority=WOKEN)
    app = App(connector=SyncPsycopgConnector(conninfo=url))
    with app.open():
        app.configure_task(
            TASK, queue=queue_of("claims"), queueing_lock="two", priority=WOKEN, task_kwargs={"thread_id": "two"}
        ).defer()
    ours, theirs = jobs(journal)

    assert (ours.pop("queueing_lock"), ours.pop("args")) == ("one", {"thread_id": "one"})
    assert (theirs.pop("queueing_lock"), theirs.pop("args")) == ("two", {"thread_id": "two"})
    assert ours == theirs


def test_a_thread_has_one_job_that_waits(journal: Journal) -> None:
    for _ in range(3):
        put(journal, "one")

    assert len(jobs(journal)) == 1


def test_a_job_for_now_is_not_put_off(journal: Journal) -> None:
    put(journal, "one")
    put(journal, "one", delay_ms=60_000)

    assert waits_s(journal) is None


def test_a_job_for_later_is_brought_forward(journal: Journal) -> None:
    put(journal, "one", delay_ms=600_000)
    put(journal, "one", delay_ms=60_000)
    first = waits_s(journal)
    put(journal, "one", delay_ms=300_000)
    put(journal, "one")

    assert first is not None
    assert first <= 60
    assert waits_s(journal) is None


def test_a_job_that_is_being_done_does_not_keep_the_next_one_out(journal: Journal) -> None:
    put(journal, "one")
    with journal.store.transaction("test") as tx:
        tx.all("update procrastinate_jobs set status = 'doing'")
    put(journal, "one")

    assert sorted(job["status"] for job in jobs(journal)) == ["doing", "todo"]


@pytest.mark.parametrize("name", NAMES)
def test_every_graphs_queue_can_be_listened_to(journal: Journal, url: str, name: str) -> None:
    """Postgres takes no channel of more than 63 bytes, and would refuse the whole transaction."""
    with psycopg.connect(url, autocommit=True) as listening:
        listening.execute(f'listen "procrastinate_queue_v1#{queue_of(name)}"')  # pyright: ignore[reportArgumentType, reportCallIssue]
        with journal.store.transaction("test") as tx:
            enqueue(tx, "one", graph=name)
        heard = list(listening.notifies(timeout=30, stop_after=1))

    assert len(heard) == 1


def test_two_graphs_have_two_queues() -> None:
    assert len({queue_of(name) for name in NAMES}) == len(NAMES)


def test_a_run_that_ends_leaves_no_job_behind(journal: Journal) -> None:
    journal.runs.admit(Admission("one", "json", b"{}", "digest", "", None, "claims", takes_turns=False), queued=True)
    lease = journal.leases.take("thread:one")
    journal.runs.start(lease, "one", head="")
    before = len(jobs(journal))
    journal.runs.finish(lease, "one")

    assert (before, jobs(journal)) == (1, [])
