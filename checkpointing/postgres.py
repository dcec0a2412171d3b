"""
Postgres as an engine: a pool of autocommit connections, read committed, one connection a transaction.

A pooled connection is checked when it is lent, so a server that was restarted costs one reconnect and not the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool, PoolTimeout

from checkpointing.errors import JournalUnreachable, JournalUnusable, StoreUnreachable

CONNECT_S = 5
"""How long to wait for the server when the journal is opened, in seconds."""

WAIT_S = 30.0
"""How long a transaction waits for a connection, in seconds; so long does the pool ask a server that went away, before it begins anew."""

CONNECTIONS = 16

AWAY = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.errors.ReadOnlySqlTransaction,  # after a failover, a connection to what is the standby now
    psycopg.errors.IdleInTransactionSessionTimeout,
)
"""What a driver raises where the server is in the way and not the statement."""

NOBODY_THERE = ("Connection refused", "timeout", "No route to host", "Network is unreachable", "starting up")
"""What libpq says where no server took the connection yet, in words, for it gives no codes; a server that lets us not in says FATAL."""

Pool = ConnectionPool[psycopg.Connection[DictRow]]


class PostgresEngine:
    """One Postgres database."""

    name = "postgres"
    shared_clock = True

    def __init__(self, url: str) -> None:
        """
        Connect, with a pool of at most `CONNECTIONS`.

        Raises:
            JournalUnreachable: no server answers there.
            JournalUnusable: the URL is malformed, or there is no such host, or the server lets us not in. Neither names the password.
        """
        self.place = _place(url)
        self.url = url
        self.options: dict[str, Any] = {"connect_timeout": CONNECT_S}
        try:
            with psycopg.connect(url, **self.options) as connection:
                self.behind_proxy = _behind_proxy(connection)
        except psycopg.Error as error:
            said = "no such host" if "resolve host" in str(error) else _first_line(error)
            kind = JournalUnreachable if any(word in said for word in NOBODY_THERE) else JournalUnusable
            raise kind(f"cannot open {self.place}: {said}") from error
        self.pool: Pool = ConnectionPool(
            url,
            connection_class=psycopg.Connection[DictRow],
            kwargs={
                "autocommit": True,
                "row_factory": dict_row,
                **self.options,
                # A statement that was prepared before a migration fails after it, on every connection that is open.
                "prepare_threshold": None,
            },
            min_size=1,
            max_size=CONNECTIONS,
            check=_check,
            configure=_flush_every_commit,
            timeout=WAIT_S,
            reconnect_timeout=WAIT_S,
            open=True,
        )

    @contextmanager
    def writing(self) -> Iterator[psycopg.Cursor[DictRow]]:
        """Lend a connection in a transaction."""
        with (
            self._lent() as connection,
            connection.transaction(),
            connection.cursor(binary=True) as cursor,
        ):
            yield cursor

    @contextmanager
    def reading(self) -> Iterator[psycopg.Cursor[DictRow]]:
        """Lend a connection; every statement is a transaction of its own."""
        with self._lent() as connection, connection.cursor(binary=True) as cursor:
            yield cursor

    def close(self) -> None:
        """Close the pool."""
        self.pool.close()

    @contextmanager
    def _lent(self) -> Iterator[psycopg.Connection[DictRow]]:
        try:
            with self.pool.connection() as connection:
                yield connection
        except PoolTimeout as error:
            raise self._unreachable(self._why_nobody_answers()) from error
        except AWAY as error:
            raise self._unreachable(_first_line(error)) from error

    def _unreachable(self, why: str) -> StoreUnreachable:
        return StoreUnreachable(f"{self.place}: {why}. Nothing is lost; call again when it answers")

    def _why_nobody_answers(self) -> str:
        """Ask once more, for the reason, which the pool keeps to itself."""
        try:
            psycopg.connect(self.url, connect_timeout=CONNECT_S).close()
        except psycopg.Error as error:
            return _first_line(error)
        return f"no connection to it became free within {WAIT_S:g} s"


def _behind_proxy(connection: psycopg.Connection[Any]) -> bool:
    """Tell whether the process that answers is another than the one which took the connection: a pooling proxy stands between."""
    row = connection.execute("select pg_backend_pid()").fetchone()
    return row is None or row[0] != connection.info.backend_pid


def _check(connection: psycopg.Connection[DictRow]) -> None:
    """Find out whether the server still answers on this connection; the pool replaces one where it does not."""
    connection.execute("")


def _flush_every_commit(connection: psycopg.Connection[DictRow]) -> None:
    """Make a commit that returned survive the server's crash, also where the database was told to be faster."""
    connection.execute(
        "select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'"
    )


def _place(url: str) -> str:
    """Name the database for people, without user or password."""
    try:
        parts: dict[str, Any] = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        # The error's own words may hold a part of the password.
        raise JournalUnusable("not a Postgres URL: one is postgresql://user@host:5432/database") from error
    # An unescaped `@` in a password ends up in front of the host.
    host = str(parts.get("host", "localhost")).rpartition("@")[2]
    return f"postgres database {parts.get('dbname', '')!r} at {host}:{parts.get('port', 5432)}"


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
