"""
A journal through PgBouncer that pools transactions: the whole life of runs, and nothing that is left in a session, which is somebody else's next.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from checkpointing import open_journal
from checkpointing.errors import JournalUnusable
from checkpointing.granting import grant
from checkpointing.migrate import alone
from checkpointing.postgres import PostgresEngine
from service.worker.jobs import connector
from tests.checkpointing.test_opening import opened_at_once
from tests.storage.test_connections import another_takes_over
from tests.support.at_work import LEASE, all_in, approve_all, one_worker, paid_once_each, submit, workers
from tests.support.pgbouncer import pgbouncer, through
from tests.support.processes import killed, start
from tests.support.roles import Role
from tests.support.small_claim import small_claim

RUNS = 12
SETTINGS = """
select current_setting('synchronous_commit') as flush, current_setting('idle_in_transaction_session_timeout') as pause,
    current_setting('search_path') as path
"""


@pytest.fixture(scope="module")
def proxy(postgres_server: str) -> Iterator[str]:
    with pgbouncer(postgres_server) as url:
        yield url


@pytest.fixture
def direct(new_postgres: Callable[[], str]) -> str:
    """A database past the proxy."""
    return new_postgres()


@pytest.fixture
def proxied(proxy: str, direct: str) -> str:
    """The same database through it."""
    return through(proxy, direct)


def engine_of(journal: object) -> PostgresEngine:
    engine = journal.store.engine  # type: ignore[attr-defined]
    assert isinstance(engine, PostgresEngine)
    return engine


def test_runs_live_through_a_pooling_proxy(proxied: str, tmp_path: Path) -> None:
    """Migrated, submitted, carried on by two workers of which one is killed, decided, and paid once each."""
    with open_journal(proxied, lease=LEASE, artefacts=str(tmp_path / "artefacts")) as journal:
        assert engine_of(journal).behind_proxy
        threads = submit(small_claim(journal, tmp_path), RUNS)
        killed(start(one_worker, proxied, tmp_path, "after effect.claim"))
        with workers(2, proxied, tmp_path) as at_work:
            all_in(journal, "parked", RUNS)
            at_work[0].kill()
            approve_all(journal)
            all_in(journal, "done", RUNS)

        paid_once_each(journal, tmp_path, threads)


def test_a_run_that_was_killed_is_resumed_through_a_pooling_proxy(proxied: str, tmp_path: Path) -> None:
    with open_journal(proxied, lease=LEASE, artefacts=str(tmp_path / "artefacts")) as journal:
        threads = submit(small_claim(journal, tmp_path), 1)
        with workers(1, proxied, tmp_path):
            all_in(journal, "parked", 1)
        approve_all(journal)
        killed(start(one_worker, proxied, tmp_path, "after effect.claim"))
        with workers(1, proxied, tmp_path):
            all_in(journal, "done", 1)

        paid_once_each(journal, tmp_path, threads)
        assert journal.runs.get(threads[0]).resumes == 1


def test_nothing_is_left_in_a_session_of_the_server(direct: str, proxied: str) -> None:
    """A claim is flushed though the database was told to be faster, and a process that stands still holds its locks for a while only."""
    faster(direct)
    with open_journal(proxied) as journal, journal.store.transaction("test") as tx:
        assert tx.one(SETTINGS) == {"flush": "on", "pause": "30s", "path": '"$user", public'}

    with psycopg.connect(proxied, autocommit=True) as next_client:
        assert next_client.execute(SETTINGS).fetchone() == ("off", "0", '"$user", public')


def faster(direct: str) -> None:
    with psycopg.connect(direct, autocommit=True) as admin:
        admin.execute(
            "do $$ begin execute format('alter database %I set synchronous_commit = off', current_database()); end $$"
        )


def test_what_the_role_has_anyway_is_not_said_in_each_transaction(
    direct: str, postgres_server: str, new_role: Callable[[str], Role]
) -> None:
    role = new_role(direct)
    role.set("idle_in_transaction_session_timeout", "20s")
    role.set("synchronous_commit", "on")
    with pgbouncer(postgres_server, users=[role.name]) as proxy:
        role.let_create("public")
        with open_journal(role.by(through(proxy, direct))) as journal:
            assert engine_of(journal)._in_each == ()
            with journal.store.transaction("test") as tx:
                assert tx.one(SETTINGS) == {"flush": "on", "pause": "20s", "path": '"$user", public'}


def test_no_lock_outlives_the_migration(direct: str, proxied: str) -> None:
    """A lock of the session would stay with a connection that the proxy lends to others, and keep everybody out."""
    count = "select count(*) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())"
    with open_journal(proxied) as journal, psycopg.connect(direct, autocommit=True) as watching:
        after_opening = watching.execute(count).fetchone()
        with alone(journal.store):
            inside = watching.execute(count).fetchone()
        afterwards = watching.execute(count).fetchone()

    assert (after_opening, inside, afterwards) == ((0,), (1,), (0,))


def test_a_process_that_stands_still_behind_a_proxy_loses_its_locks(proxied: str, tmp_path: Path) -> None:
    another_takes_over(proxied, tmp_path)


def test_of_processes_that_open_an_empty_database_through_a_proxy_one_migrates(
    new_postgres: Callable[[], str], proxy: str
) -> None:
    opened_at_once(through(proxy, new_postgres()))


def test_a_prepared_statement_would_fail_here(proxied: str) -> None:
    """What keeps the journal's connections from preparing any is needed: this proxy really lends another session."""
    with psycopg.connect(proxied, autocommit=True, prepare_threshold=0) as one:
        one.execute("select 1")
        with (
            psycopg.connect(proxied, autocommit=True, prepare_threshold=0) as other,
            pytest.raises(psycopg.errors.DuplicatePreparedStatement),
        ):
            other.execute("select 1")


@pytest.mark.parametrize("further", ["", "ignore_startup_parameters = options\n"], ids=["refused", "dropped"])
def test_a_schema_that_a_proxy_keeps_from_a_session_is_the_roles(
    direct: str, postgres_server: str, new_role: Callable[[str], Role], further: str
) -> None:
    role = new_role(direct)
    with open_journal(direct, schema="claims") as journal:
        grant(journal.store, role.name)
    with pgbouncer(postgres_server, users=[role.name], further=further) as proxy:
        url = role.by(through(proxy, direct))
        with pytest.raises(JournalUnusable, match=f"alter role {role.name} in database .* set search_path = claims"):
            open_journal(url, schema="claims")

        role.set("search_path", "claims")
    with pgbouncer(postgres_server, users=[role.name], further=further) as proxy:
        url = role.by(through(proxy, direct))
        with open_journal(url, schema="claims") as journal, journal.store.reading() as tx:
            assert engine_of(journal).behind_proxy
            assert tx.one("select current_schema()::text as here") == {"here": "claims"}


def test_a_socket_is_told_how_soon_to_notice_a_cut(proxied: str) -> None:
    """Ours and the queue's, as the lease says; a server in the tests may be reached by a file, and the proxy never is."""
    with open_journal(proxied, lease=timedelta(seconds=9)) as journal:
        with engine_of(journal).lent() as connection:
            ours = told_to(connection.fileno())
        theirs = asyncio.run(told_to_queue(engine_of(journal)))

    assert ours == theirs == {"keepalive": 1, "idle": 1, "interval": 1, "count": 2, "timeout_ms": 3000}


async def told_to_queue(engine: PostgresEngine) -> dict[str, int]:
    queue = connector(engine)
    await queue.open_async()
    try:
        async with queue.pool.connection() as connection:
            return told_to(connection.fileno())
    finally:
        await queue.close_async()


def told_to(fileno: int) -> dict[str, int]:
    with socket.socket(fileno=os.dup(fileno)) as same:
        return {
            "keepalive": same.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE),
            "idle": same.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE),
            "interval": same.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL),
            "count": same.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT),
            "timeout_ms": same.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT),
        }
