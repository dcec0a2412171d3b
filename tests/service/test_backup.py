"""A copy of a journal in use: what SQLite's own backup gives, and what copying its file alone does not."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from checkpointing import Journal, open_journal
from checkpointing.errors import UnknownThread
from graph import thread
from service import backup
from tests.service.conftest import Cli, environment, in_process
from tests.support.copies import file_of
from tests.support.processes import start, until
from tests.support.short_claim import claim, submit, thread_of


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The URL of a journal in a file: a server is copied by its own means."""
    return f"sqlite:///{tmp_path}/claims.db"


@pytest.fixture
def cli(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(tmp_path)  # away from any .env
    return in_process(environment(url, "http://127.0.0.1:9", tmp_path))


def busy(url: str, folder: Path) -> None:
    """Submit and decide claims until somebody ends it."""
    with open_journal(url, artefacts=str(folder / "artefacts")) as journal:
        graph = claim(journal, folder)
        for number in count():
            submit(graph, number)
            [pending] = journal.approvals.pending(thread_id=thread_of(number))
            journal.approvals.decide(pending.id, {"type": "approve"}, principal="adjuster-17")
            graph.invoke(None, thread(thread_of(number)))


def test_a_copy_made_while_a_worker_works_is_whole_and_verifies(url: str, cli: Cli, tmp_path: Path) -> None:
    worker = start(busy, url, tmp_path)
    copies = []
    for number in range(3):
        until(lambda wanted=5 * number + 1: paid(url) >= wanted or None)
        copies.append(tmp_path / f"copy-{number}.db")
        said = cli("backup", str(copies[-1]), "--json").document
        assert (said["copy"], said["bytes"]) == (str(copies[-1]), copies[-1].stat().st_size)
    assert worker.is_alive()
    worker.kill()
    worker.join()

    for number, copy in enumerate(copies):
        assert not Path(f"{copy}-wal").exists()
        assert paid(f"sqlite:///{copy}") >= 5 * number + 1
        assert "whole" in cli("--url", f"sqlite:///{copy}", "audit", "verify").stdout


def paid(url: str) -> int:
    """How many claims are paid in the journal at *url*; 0 while there is none."""
    if not file_of(url).exists():
        return 0
    with closing(sqlite3.connect(file_of(url), timeout=30)) as connection:
        try:
            ((found,),) = connection.execute("select count(*) from effects where state = 'settled'")
        except sqlite3.OperationalError:
            return 0  # its tables are being made
    return int(found)


def test_the_file_alone_lacks_what_was_committed_last(opened: Callable[..., Journal], url: str, tmp_path: Path) -> None:
    """Why there is a command."""
    journal = opened()
    submit(claim(journal, tmp_path), 1)
    shutil.copy(file_of(url), tmp_path / "alone.db")

    with open_journal(f"sqlite:///{tmp_path}/alone.db") as alone, pytest.raises(UnknownThread):
        alone.runs.get(thread_of(1))


def test_an_earlier_copy_is_never_written_over(cli: Cli, opened: Callable[..., Journal], tmp_path: Path) -> None:
    opened()
    said = cli("backup", "copy.db").stdout
    before = (tmp_path / "copy.db").read_bytes()

    assert "counterfoil reconcile --restored --since " in said
    assert "exists; give the copy a name of its own" in cli("backup", "copy.db", code=2).line
    assert (tmp_path / "copy.db").read_bytes() == before
    assert list(tmp_path.glob("*.part")) == []


def test_a_file_that_comes_while_it_is_copied_is_not_written_over(
    opened: Callable[..., Journal], url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened()
    into = tmp_path / "copy.db"
    original = backup._copy

    def meanwhile(journal: Path, part: Path) -> None:
        original(journal, part)
        into.write_text("somebody else's")

    monkeypatch.setattr(backup, "_copy", meanwhile)
    with pytest.raises(backup.CopyInTheWay, match="came meanwhile"):
        backup.copy_sqlite(file_of(url), into)

    assert into.read_text() == "somebody else's"
    assert list(tmp_path.glob("*.part")) == []


def test_what_cannot_be_copied_is_said_and_leaves_nothing(cli: Cli, url: str, tmp_path: Path) -> None:
    assert "no journal at" in cli("backup", "copy.db", code=2).line
    file_of(url).write_text("no database, and long enough to be looked at" * 100)
    assert "not a database" in cli("backup", "copy.db", code=2).line
    assert "there is no folder" in cli("backup", "nowhere/copy.db", code=2).line
    postgres = cli("--url", "postgresql://ada:secret@db.example/claims", "backup", "copy.db", code=2).line
    assert "pg_dump --format=custom --file copy.db" in postgres
    assert "secret" not in postgres
    assert not (tmp_path / "copy.db").exists()
