"""
The sandbox's own database: one SQLite file, held by one sandbox at a time.

All of it is used from one event loop and no statement waits in between, so a transaction is never interleaved with another
request. What was committed is on the disk before an answer leaves (`synchronous=full`).
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SCHEMA = """
create table if not exists transfers (
    number         integer primary key,
    id             text not null unique,
    created        integer not null,
    destination    text not null,
    transfer_group text,
    claim_id       text,
    key            text,
    body           text not null
);
create table if not exists emails (
    number   integer primary key,
    id       text not null unique,
    claim_id text,
    key      text,
    body     text not null
);
create table if not exists tickets (
    number      integer primary key,
    external_id text,
    body        text not null
);
create table if not exists chat_messages (
    channel text not null,
    ts_us   integer not null,
    body    text not null,
    primary key (channel, ts_us)
);
create table if not exists claims (
    id        text primary key,
    reference text not null,
    filed     text not null,
    body      text not null
);
create table if not exists policies (
    number text primary key,
    filed  text not null,
    body   text not null
);
create table if not exists keys (
    service     text not null,
    key         text not null,
    fingerprint text not null,
    status      integer not null,
    body        blob not null,
    request_id  text not null,
    created_ms  integer not null,
    primary key (service, key)
);
create table if not exists calls (
    number     integer primary key,
    at_ms      integer not null,
    request_id text not null,
    method     text not null,
    path       text not null,
    key        text,
    outcome    text not null,
    status     integer,
    executed   integer not null
);
create table if not exists faults (
    number   integer primary key,
    at       text not null,
    kind     text not null,
    method   text,
    match    text,
    seconds  real,
    times    integer not null,
    left     integer not null
);
create table if not exists settings (
    name  text primary key,
    value integer not null
);
"""


class DatabaseUnusable(OSError):
    """The file is no database, cannot be made, or another sandbox holds it; the message says which."""


class SandboxStore:
    """The open database; `close` it at the end. A killed sandbox leaves a file that the next one opens."""

    def __init__(self, path: Path) -> None:
        """Open *path*, made if it is not there, and hold it alone; `DatabaseUnusable` if that cannot be."""
        try:
            self._connection = _opened(path)
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                raise DatabaseUnusable(
                    f"another sandbox uses {path}; end it, or give this one a file of its own"
                ) from error
            raise DatabaseUnusable(f"{path} cannot be held by this sandbox: {error}") from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what happens inside, or nothing of it."""
        self._connection.execute("begin immediate")
        try:
            yield
        except BaseException:
            self._connection.execute("rollback")
            raise
        self._connection.execute("commit")

    def rows(self, sql: str, **values: object) -> list[sqlite3.Row]:
        """Run one statement and return its rows, in its order."""
        return self._connection.execute(sql, values).fetchall()

    def row(self, sql: str, **values: object) -> sqlite3.Row | None:
        """Run one statement and return its first row, `None` without one."""
        return next(iter(self.rows(sql, **values)), None)

    def close(self) -> None:
        """Give the file back."""
        self._connection.close()


def _opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, timeout=0.0)
    connection.row_factory = sqlite3.Row
    try:
        connection.execute("pragma locking_mode=exclusive")
        connection.execute("pragma journal_mode=wal")
        connection.execute("pragma synchronous=full")
        connection.executescript(f"begin exclusive;{SCHEMA}commit;")
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


def now_ms() -> int:
    """Return the time as integer milliseconds, UTC."""
    return time.time_ns() // 1_000_000
