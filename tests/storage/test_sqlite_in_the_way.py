"""
The SQLite file is locked by somebody else, or its disk is full: runs wait, or end in an error that says why and go on afterwards.
"""

from __future__ import annotations

import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from checkpointing import open_journal, sqlite
from checkpointing.errors import StoreUnreachable
from graph import thread
from tests.storage.workers import STEPS, Workers, check_all, paid, three_payments
from tests.support.bank import Bank
from tests.support.outage import ONE_PAGE, longest_file
from tests.support.processes import until
from tools import perform

LOCKED_S = 10
RUNS = 8


@contextmanager
def foreign_transaction(file: Path) -> Iterator[sqlite3.Connection]:
    """Write to the journal's file, as somebody who never commits."""
    with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as connection:
        connection.execute("begin immediate")
        yield connection


def lock_after_the_first_payment(monkeypatch: pytest.MonkeyPatch, foreign: Any) -> None:
    """Call *foreign* right after the bank executed for the first time, before the outcome can be recorded."""
    execute = Bank.execute

    def executed(self: Bank, **call: Any) -> dict[str, Any]:
        result = execute(self, **call)
        if len(self.calls) == 1:
            foreign()
        return result

    monkeypatch.setattr(Bank, "execute", executed)


def test_a_run_outlasts_a_foreign_transaction_of_ten_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lease, which is shorter, cannot be renewed meanwhile, and nobody else can take it either."""
    file = tmp_path / "journal.db"
    with open_journal(f"sqlite:///{file}", lease=timedelta(seconds=3)) as journal:
        graph = three_payments(journal, tmp_path)
        locked = foreign_transaction(file)

        def foreign() -> None:
            connection = locked.__enter__()
            threading.Timer(LOCKED_S, connection.rollback).start()

        lock_after_the_first_payment(monkeypatch, foreign)
        graph.invoke({"claim_id": "0"}, thread("run-0"))

        check_all(journal, tmp_path, count=1)
        assert journal.runs.get("run-0").resumes == 0
        locked.__exit__(None, None, None)


def test_a_file_that_stays_locked_is_named_and_the_run_goes_on_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_S", 0.2)
    monkeypatch.setattr(perform, "KEEPING", ())
    file = tmp_path / "journal.db"
    with open_journal(f"sqlite:///{file}") as journal:
        graph = three_payments(journal, tmp_path)
        locked = foreign_transaction(file)
        lock_after_the_first_payment(monkeypatch, locked.__enter__)
        with pytest.raises(StoreUnreachable, match=f"journal {file}: database is locked.*call again"):
            graph.invoke({"claim_id": "0"}, thread("run-0"))
        with pytest.raises(StoreUnreachable, match="wait for whoever writes"):
            graph.invoke({"claim_id": "1"}, thread("run-1"))
        locked.__exit__(None, None, None)

        until(lambda: True if journal.runs.get("run-0").state == "admitted" else None)
        for number in range(2):
            graph.invoke({"claim_id": f"{number}"}, thread(f"run-{number}"))
        check_all(journal, tmp_path, count=2)


class TmpfsDisk:
    """A small disk that is mounted for the test; SQLite's log alone takes four megabytes before it begins anew."""

    says = "full"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", "size=16m", "counterfoil", str(folder)]
        self.mounted = subprocess.run(command, check=False, capture_output=True).returncode == 0

    def fill(self) -> None:
        """Leave no room at all."""
        with (self.folder / "filler").open("wb", buffering=0) as file, suppress(OSError):
            while file.write(b"x" * 65536):
                pass

    def free(self) -> None:
        """Make room again."""
        (self.folder / "filler").unlink()

    def end(self) -> None:
        """Unmount it."""
        subprocess.run(["umount", "--lazy", str(self.folder)], check=True)


class Quota:
    """A limit on the length of this process's files, which takes no right at all."""

    says = "disk I/O error"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir()

    def fill(self) -> None:
        """Let no file grow."""
        longest_file(ONE_PAGE)

    def free(self) -> None:
        """Let files grow again."""
        longest_file(None)

    def end(self) -> None:
        """Leave no limit behind."""
        longest_file(None)


@pytest.fixture(params=["disk", "quota"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TmpfsDisk | Quota]:
    """A disk that a test can fill up: a real one where it may be mounted, and a limit that is real everywhere."""
    mounted = TmpfsDisk(tmp_path / "mounted") if request.param == "disk" else None
    found = mounted if mounted and mounted.mounted else Quota(tmp_path / "limited")
    yield found
    found.end()


def test_a_disk_that_is_full_and_freed_loses_no_run_and_pays_nothing_twice(
    disk: TmpfsDisk | Quota, tmp_path: Path
) -> None:
    file = disk.folder / "journal.db"
    with open_journal(f"sqlite:///{file}", artefacts=str(tmp_path / "artefacts")) as journal:
        workers = Workers(three_payments(journal, tmp_path), runs=RUNS)
        with workers.at_work():
            paid(tmp_path, RUNS * len(STEPS) // 4)
            disk.fill()
            try:
                until(lambda: True if sum(workers.told.values()) >= RUNS else None)
            finally:
                disk.free()

        check_all(journal, tmp_path, count=RUNS)
    assert all(said.startswith(f"journal {file}: ") and disk.says in said for said in workers.told)
