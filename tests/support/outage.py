"""
Storage that really fails, at a chosen moment, on both engines and without any right on the machine.

    SQLite      the process may not make a file longer (`RLIMIT_FSIZE`), as on a full disk: a commit fails in the middle
    Postgres    the server ends the connections in the middle of a transaction, and lets nobody in while the outage lasts
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg

from checkpointing.store import Store, Tx

ONE_PAGE = 4096
"""Too short for SQLite's log to take one page, and long enough for the traces that a test's world keeps."""


class Outage:
    """
    The end of one journal's storage, in the middle of a transaction.

    Attributes:
        hits: How many transactions were cut.
    """

    def __init__(self, url: str, name: str, *, lasting: bool = False) -> None:
        """Cut the first transaction called *name*; while *lasting*, nothing is written any more until `end`."""
        self.url, self.name, self.lasting = url, name, lasting
        self.hits = 0

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """Let it happen inside; at the end the storage is there again."""
        original = Store.transaction

        @contextmanager
        def transaction(store: Store, name: str) -> Iterator[Tx]:
            cut = False
            try:
                with original(store, name) as tx:
                    if cut := name == self.name and not self.hits:
                        self.hits += 1
                        self.begin()
                    yield tx
            finally:
                if cut and not self.lasting:
                    self.end()

        Store.transaction = transaction  # type: ignore[method-assign]  # for the time of the outage
        try:
            yield
        finally:
            Store.transaction = original  # type: ignore[method-assign]
            self.end()

    def begin(self) -> None:
        """Take the storage away."""
        if self.url.startswith("sqlite"):
            longest_file(ONE_PAGE)
            return
        if self.lasting:
            self._let_in(False)
        self._admin("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", self._database)

    def end(self) -> None:
        """Give the storage back."""
        if self.url.startswith("sqlite"):
            longest_file(None)
        elif self.lasting:
            self._let_in(True)

    @property
    def _database(self) -> str:
        return urlsplit(self.url).path.removeprefix("/")

    def _let_in(self, anybody: bool) -> None:
        self._admin(f"alter database {self._database} with allow_connections {str(anybody).lower()}")

    def _admin(self, sql: str, *values: Any) -> None:
        server = urlunsplit(urlsplit(self.url)._replace(path="/postgres"))
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(sql, values)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]


def longest_file(size_bytes: int | None) -> None:
    """Let this process make files this long at most, or any; Python ignores the signal, so a longer write is an error."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard if size_bytes is None else size_bytes, hard))
