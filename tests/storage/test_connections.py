"""
What every connection to Postgres is like, ours and the queue's: it notices a cut, holds no lock for long, prepares nothing, and there are not too many.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from procrastinate import PsycopgConnector

from checkpointing import open_journal
from checkpointing.connecting import way_to
from checkpointing.errors import RunBusy, StoreUnreachable
from checkpointing.postgres import PostgresEngine
from graph import thread
from service.worker.jobs import CONNECTIONS, connector
from tests.support.at_work import submit, workers
from tests.support.bank import Bank
from tests.support.points import signal_at
from tests.support.processes import start, stopped, until
from tests.support.small_claim import LEASE, THREAD, act, small_claim

PREPARED = "select count(*) as prepared from pg_prepared_statements"
SESSION = """
select name, setting from pg_settings
where name in ('idle_in_transaction_session_timeout', 'tcp_keepalives_idle', 'tcp_keepalives_interval', 'tcp_keepalives_count')
"""
OF_OURS = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"


@pytest.mark.parametrize(("lease_s", "patience_s", "pause_s"), [(0.4, 1, 5), (9, 3, 9), (30, 10, 30), (600, 10, 600)])
def test_how_soon_a_cut_is_noticed_follows_from_the_lease(
    postgres_server: str, lease_s: float, patience_s: int, pause_s: int
) -> None:
    way = way_to(postgres_server, lease=timedelta(seconds=lease_s), schema=None)
    idle, interval, count = (way.options[f"keepalives_{name}"] for name in ("idle", "interval", "count"))

    assert way.options["tcp_user_timeout"] == patience_s * 1000
    assert idle + interval * count <= max(patience_s, 3)
    assert f"idle_in_transaction_session_timeout={pause_s * 1000}" in way.options["options"]


def test_what_the_url_says_of_it_stands(postgres_server: str) -> None:
    url = f"{postgres_server}{'&' if '?' in postgres_server else '?'}tcp_user_timeout=77000&keepalives_idle=9&options=-c%20idle_in_transaction_session_timeout%3D7s"
    with open_journal(url) as journal, journal.store.reading() as tx:
        engine = journal.store.engine
        assert isinstance(engine, PostgresEngine)
        assert {"tcp_user_timeout", "keepalives_idle"} & engine.options.keys() == set()
        assert {row["name"]: row["setting"] for row in tx.all(SESSION)}["idle_in_transaction_session_timeout"] == "7000"


def test_the_queues_connections_are_like_ours(new_postgres: Callable[[], str]) -> None:
    url = new_postgres()
    with open_journal(url, schema="claims") as journal:
        engine = journal.store.engine
        assert isinstance(engine, PostgresEngine)
        with journal.store.reading() as tx:
            ours = tx.all(SESSION)
        theirs, here, prepared = asyncio.run(asked_of(connector(engine)))

    assert theirs == ours
    assert here == [{"here": "claims"}]
    assert prepared == [{"prepared": 0}]


async def asked_of(queue: PsycopgConnector) -> tuple[list[Any], list[Any], list[Any]]:
    await queue.open_async()
    try:
        here: list[Any] = []
        for _ in range(12):  # psycopg prepares what it has run five times
            here = await queue.execute_query_all_async("select current_schema()::text as here")
        session = await queue.execute_query_all_async(SESSION)
        return session, here, await queue.execute_query_all_async(PREPARED)
    finally:
        await queue.close_async()


def test_no_statement_is_prepared(new_postgres: Callable[[], str]) -> None:
    with open_journal(new_postgres(), connections=2) as journal:
        for _ in range(12):
            journal.effects.list(thread_id="t")
        with journal.store.transaction("test") as tx:
            assert tx.one(PREPARED) == {"prepared": 0}


def one_that_stands_still(url: str, folder: Path) -> None:
    signal_at("committing effect.claim", signal.SIGSTOP)
    with open_journal(url, lease=LEASE) as journal:
        act(small_claim(journal, folder), "submit")


def another_takes_over(url: str, folder: Path) -> None:
    """Have a process stand still inside a transaction, and another one finish its run meanwhile."""
    asleep = start(one_that_stands_still, url, folder)
    until(lambda: stopped(asleep))
    in_the_end = threading.Timer(25, asleep.kill)  # where nobody ends its session, its death does
    in_the_end.start()
    try:
        with open_journal(url, lease=LEASE) as journal:
            graph = small_claim(journal, folder)
            until(lambda: taken_over(lambda: graph.invoke(None, thread(THREAD))))
            assert stopped(asleep), "only its death let go of its locks"
            in_the_end.cancel()
            act(graph, "approve")
            os.kill(asleep.pid or 0, signal.SIGCONT)
            asleep.join(60)
            assert journal.runs.get(THREAD).state == "done"
            assert asleep.exitcode == 1, "it could not go on where it stood still"
    finally:
        in_the_end.cancel()
        asleep.kill()

    assert len(Bank(folder / "bank").executed) == 1


def test_a_process_that_stands_still_in_a_transaction_loses_its_locks(
    new_postgres: Callable[[], str], tmp_path: Path
) -> None:
    """Its row locks would keep everybody from its thread until it is awake again; the server ends its session."""
    another_takes_over(new_postgres(), tmp_path)


def taken_over(call: Callable[[], object]) -> bool | None:
    with suppress(RunBusy, StoreUnreachable):
        call()
        return True
    return None


def test_a_worker_has_no_more_connections_than_it_was_given(new_postgres: Callable[[], str], tmp_path: Path) -> None:
    url, most = new_postgres(), 3
    with open_journal(url, connections=2, artefacts=str(tmp_path / "artefacts")) as journal:
        submit(small_claim(journal, tmp_path), 30)
        with workers(1, url, tmp_path, connections=most), psycopg.connect(url, autocommit=True) as watching:
            seen: list[int] = []

            def all_parked() -> bool | None:
                row = watching.execute(OF_OURS).fetchone()
                assert row is not None
                seen.append(row[0])
                return True if len(journal.runs.list(state="parked")) == 30 else None

            until(all_parked, timeout_s=90)

        assert max(seen) <= 2 + most + CONNECTIONS + 1, (
            "this journal, the worker's, its queue's, and the one that listens"
        )
