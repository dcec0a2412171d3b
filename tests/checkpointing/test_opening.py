"""Opening a journal: what cannot hold one gets one clear line, and of several processes that open an empty database one migrates."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from checkpointing import open_journal
from checkpointing.errors import CounterfoilError, JournalUnreachable, JournalUnusable, SchemaTooNew
from checkpointing.migrate import migrations
from tests.support.processes import context

NOBODY = 65534


def fails(url: str) -> str:
    """Return the one line that opening *url* fails with."""
    with pytest.raises(JournalUnusable) as told:
        open_journal(url)
    line = str(told.value)
    assert "\n" not in line
    return line


@pytest.mark.parametrize(
    "url",
    [
        "",
        "claims.db",
        "mysql://localhost/x",
        "sqlite://claims.db",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite:///a%00b.db",
        "http://[x",
        "postgresql:///%zz",
    ],
)
def test_a_bad_url(url: str) -> None:
    assert fails(url)


def test_an_unreachable_server_is_named_without_its_password() -> None:
    url = "postgresql://claims:hunter2@127.0.0.1:1/claims"
    line = fails(url)

    assert "127.0.0.1:1" in line
    assert "hunter2" not in line
    with pytest.raises(JournalUnreachable):
        open_journal(url)


@pytest.mark.parametrize(
    "url", ["postgresql://claims:hun%zzter2@h/x", "postgresql://claims:hunter2@[h/x", "postgresql://a:hunter2@h:port/x"]
)
def test_a_malformed_url_does_not_give_its_password_away(url: str) -> None:
    line = fails(url)

    assert "ter2" not in line


def test_artefacts_where_nothing_can_be_kept(url: str) -> None:
    with pytest.raises(JournalUnusable, match="nowhere://"):
        open_journal(url, artefacts="nowhere://secret@host/x")


def test_a_database_that_does_not_exist(postgres_server: str) -> None:
    url = urlunsplit(urlsplit(postgres_server)._replace(path="/nowhere"))

    assert "nowhere" in fails(url)
    with pytest.raises(JournalUnusable) as told:
        open_journal(url)
    assert not isinstance(told.value, JournalUnreachable), "a server that answers is not away"


def test_a_file_that_is_not_a_database(tmp_path: Path) -> None:
    file = tmp_path / "notes.db"
    file.write_text("this is not a database, however long it may be" * 100)

    assert "not a database" in fails(f"sqlite:///{file}")
    assert file.read_text().startswith("this is not")


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    assert "no folder" in fails(f"sqlite:///{tmp_path}/nowhere/claims.db")


def test_a_file_that_is_a_folder(tmp_path: Path) -> None:
    assert "cannot open" in fails(f"sqlite:///{tmp_path}")


@pytest.mark.parametrize("existing", [False, True])
def test_a_folder_that_may_not_be_written(tmp_path: Path, existing: bool) -> None:
    folder = tmp_path / "readonly"
    folder.mkdir()
    file = folder / "claims.db"
    if existing:
        open_journal(f"sqlite:///{file}").close()
        file.chmod(0o444)
    folder.chmod(0o555)
    for parent in (tmp_path, *tmp_path.parents[:3]):
        parent.chmod(parent.stat().st_mode | 0o055)
    if os.geteuid() != 0:
        assert "cannot" in fails(f"sqlite:///{file}")
        return
    os.seteuid(NOBODY)  # root may write anywhere
    try:
        line = fails(f"sqlite:///{file}")
    finally:
        os.seteuid(0)
    assert "cannot" in line


def test_a_lease_too_short_to_be_renewed(url: str) -> None:
    with pytest.raises(JournalUnusable, match="too short"):
        open_journal(url, lease=timedelta(milliseconds=5))


def test_opening_again_changes_nothing(url: str) -> None:
    for _ in range(3):
        open_journal(url).close()

    assert applied(url) == [migration.version for migration in migrations()]


def test_a_schema_newer_than_the_code_is_refused(url: str) -> None:
    with open_journal(url) as journal, journal.store.transaction("test.newer") as tx:
        tx.all("insert into counterfoil_schema (version) values (999)")

    with pytest.raises(SchemaTooNew, match="999"):
        open_journal(url)


def open_at(url: str, barrier: Any, said: Any) -> None:
    barrier.wait(60)
    try:
        open_journal(url).close()
    except CounterfoilError as error:
        said.put(str(error))
    else:
        said.put("opened")


def opened_at_once(url: str) -> None:
    """Open an empty database in three processes at once."""
    spawn = context()
    barrier, said = spawn.Barrier(3), spawn.Queue()
    processes = [spawn.Process(target=open_at, args=(url, barrier, said), daemon=True) for _ in range(3)]
    for process in processes:
        process.start()

    assert [said.get(timeout=60) for _ in processes] == ["opened"] * 3
    for process in processes:
        process.join(60)
    assert applied(url) == [migration.version for migration in migrations()]


def test_of_three_processes_that_open_an_empty_database_one_migrates(
    new_url: Callable[[], str],
) -> None:
    for _ in range(5):
        opened_at_once(new_url())


def applied(url: str) -> list[int]:
    """Read the versions with the bare driver."""
    query = "select version from counterfoil_schema order by version"
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        rows = connection.execute(query).fetchall()
        connection.close()
        return [row[0] for row in rows]
    with psycopg.connect(url) as other:
        return [row[0] for row in other.execute(query).fetchall()]


def test_transactions_do_not_nest(url: str) -> None:
    with (
        open_journal(url) as journal,
        journal.store.transaction("outer"),
        pytest.raises(CounterfoilError, match="inside"),
        journal.store.transaction("inner"),
    ):
        pass
