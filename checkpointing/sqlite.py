"""
SQLite as an engine: one file, one writer at a time, readers that never wait.

Write transactions begin `immediate`, so they queue at their first statement and never fail half-way. In one process a lock makes
the queue; between processes SQLite's own lock does, for up to `BUSY_S`. `synchronous = full`: a commit that returned survives
a power cut.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from checkpointing.errors import JournalUnusable, StoreUnreachable

BUSY_S = 30.0
"""How long a transaction waits for another process's, in seconds."""


class SqliteEngine:
    """One SQLite file."""

    name = "sqlite"
    shared_clock = False

    def __init__(self, path: Path) -> None:
        """
        Open the file, or make it.

        Raises:
            JournalUnusable: the folder is missing or may not be written, or the file is not a database.
        """
        self.path = path
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._all: list[sqlite3.Connection] = []
        if not path.parent.is_dir():
            raise JournalUnusable(f"cannot open {path}: there is no folder {path.parent}")
        try:
            self._writer = self.connect()
            self._switch_to_wal()
            self._try_to_write()
        except sqlite3.DatabaseError as error:
            self.close()
            raise JournalUnusable(f"cannot open {path}: {_plain(error)}") from error
        except BaseException:
            self.close()
            raise

    def connect(self) -> sqlite3.Connection:
        """Return a new connection in autocommit mode, usable from any thread."""
        connection = sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        self._all.append(connection)
        connection.execute("pragma synchronous = full")
        return connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Cursor]:
        """Hold the one write transaction of this file."""
        with self._mine(), translated(self.path), closing(self._writer.cursor()) as cursor:
            try:
                # Inside the try: a signal may arrive when the transaction has begun and before the next line.
                cursor.execute("begin immediate")
                yield cursor
                self._writer.commit()
            finally:
                if self._writer.in_transaction:
                    self._writer.rollback()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Cursor]:
        """Lend a connection that sees the last commit and waits for nobody."""
        with translated(self.path):
            connection = self._idle.pop() if self._idle else self.connect()
            try:
                with closing(connection.cursor()) as cursor:
                    yield cursor
            finally:
                self._idle.append(connection)

    def close(self) -> None:
        """Close every connection; the last one folds the write-ahead log back into the file."""
        with self._lock:
            while self._all:
                self._all.pop().close()
            self._idle.clear()

    @contextmanager
    def _mine(self) -> Iterator[None]:
        """Hold the writer, which the threads of this process share; wait no longer for it than for another process."""
        if not self._lock.acquire(timeout=BUSY_S):
            raise _unreachable(self.path, f"this process's other threads have held it for {BUSY_S:g} s")
        try:
            yield
        finally:
            self._lock.release()

    def _switch_to_wal(self) -> None:
        """Turn the write-ahead log on; SQLite's own waiting does not cover this one statement, so it is asked again."""
        patience = time.monotonic() + BUSY_S
        while True:
            try:
                self._writer.execute("pragma journal_mode = wal")
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > patience:
                    raise
                time.sleep(0.01)
            else:
                return

    def _try_to_write(self) -> None:
        """Find a read-only file or folder now, with one clear line, instead of at the first payment."""
        try:
            with self.writing():
                pass
        except StoreUnreachable as error:
            raise JournalUnusable(f"cannot write {self.path}: {error.__cause__}") from error


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into ours where the file is in the way of the call: locked, full, gone; a wrong statement stays one."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_ERROR and "begin" not in str(error):
            raise
        raise _unreachable(path, _plain(error)) from error
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise
        raise JournalUnusable(f"journal {path}: {_plain(error)}; restore it from a copy") from error


def _unreachable(path: Path, why: str) -> StoreUnreachable:
    return StoreUnreachable(f"journal {path}: {why}. Nothing is lost; {_mend(why)}, then call again")


def _mend(why: str) -> str:
    """Return what to do about it."""
    if "locked" in why or "held" in why:
        return "wait for whoever writes to it"
    if "full" in why:
        return "make room on its disk"
    return "look at the file and its disk"


def _plain(error: sqlite3.Error) -> str:
    text = str(error)
    return "the file is not a database" if "not a database" in text else text
