"""
New, empty databases to measure in: a SQLite file on disk, or a database of a Postgres server that flushes every commit.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
from psycopg import sql

from service.throwaway_postgres import FASTER, throwaway_database, throwaway_postgres

HERE = Path(__file__).parent


class Engine(StrEnum):
    """Where a journal is kept."""

    SQLITE = "sqlite"
    POSTGRES = "postgres"


@dataclass(frozen=True, slots=True)
class Place:
    """
    Where databases are made.

    Attributes:
        words: The engine for people, with its version.
        new: Makes an empty one and provides its URL for as long as the block runs.
    """

    name: str
    words: str
    new: Callable[[], AbstractContextManager[str]]


@contextmanager
def places(engines: Sequence[Engine], given: str | None) -> Iterator[list[Place]]:
    """Provide a place for each of the *engines*; Postgres is the server *given*, or one that is started."""
    with ExitStack() as stack:
        found: list[Place] = []
        if Engine.SQLITE in engines:
            found.append(Place("sqlite", f"SQLite {sqlite3.sqlite_version}", new_sqlite))
        if Engine.POSTGRES in engines:
            url = stack.enter_context(server(given))
            found.append(Place("postgres", described(url), partial(throwaway_database, url)))
        yield found


@contextmanager
def new_sqlite() -> Iterator[str]:
    """Provide the URL of a journal in a folder beside this file, which is on a disk where `/tmp` may be in memory."""
    with TemporaryDirectory(prefix=".measured-", dir=HERE) as folder:
        yield f"sqlite:///{folder}/journal.db"


@contextmanager
def server(given: str | None) -> Iterator[str]:
    """Provide the URL of a Postgres server: the one *given*, or one of its own that is as durable as a server is by default."""
    if given:
        yield given
        return
    with TemporaryDirectory(prefix="counterfoil-") as folder, throwaway_postgres(Path(folder)) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            for setting in FASTER:
                connection.execute(sql.SQL("alter system reset {}").format(sql.Identifier(setting)))
            connection.execute("select pg_reload_conf()")
        yield url


def described(server_url: str) -> str:
    """Name the server's version and whether it flushes commits to the disk."""
    with psycopg.connect(server_url) as connection:
        row = connection.execute("select current_setting('server_version'), current_setting('fsync')").fetchone()
    assert row is not None
    return f"Postgres {row[0]}, fsync {row[1]}"
