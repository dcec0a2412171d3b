"""
Postgres as an engine: a pool of autocommit connections, read committed, one connection a transaction.

A pooled connection is checked when it is lent, so a server that was restarted costs one reconnect and not the run. No statement is prepared, and
nothing is left in a session: a proxy may lend it to somebody else after each transaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import psycopg
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool, PoolTimeout

from checkpointing.connecting import Way, first_line, longest_pause_ms, way_to
from checkpointing.errors import StoreUnreachable

WAIT_S = 30.0
"""How long a transaction waits for a connection, in seconds; so long does the pool ask a server that went away, before it begins anew."""

CONNECTIONS = 16
"""How many connections a journal has at most, if nothing else is said."""

AWAY = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.errors.ReadOnlySqlTransaction,  # after a failover, a connection to what is the standby now
    psycopg.errors.IdleInTransactionSessionTimeout,
)
"""What a driver raises where the server is in the way and not the statement."""

MAY_NOT = psycopg.errors.InsufficientPrivilege
"""What a driver raises where the role lacks a right."""

IN_THE_WAY = (psycopg.errors.DuplicateTable, psycopg.errors.DuplicateObject, psycopg.errors.DuplicateFunction)
"""What a driver raises where somebody else's table has the name of one that is to be made."""

FLUSH = "select set_config('synchronous_commit', 'on', true)"
PAUSE = "select set_config('idle_in_transaction_session_timeout', '{pause_ms}', true)"

Pool = ConnectionPool[psycopg.Connection[DictRow]]


class PostgresEngine:
    """One Postgres database."""

    name = "postgres"
    shared_clock = True

    def __init__(
        self, url: str, *, lease: timedelta, schema: str | None = None, connections: int = CONNECTIONS
    ) -> None:
        """
        Connect, with a pool of at most *connections*; errors as `way_to`.

        Args:
            url: the database.
            lease: how soon its connections have to notice that the other side is gone.
            schema: where the tables are, if it is not the role's own.
            connections: how many at most.
        """
        self.way = way_to(url, lease=lease, schema=schema)
        self.url, self.place = url, self.way.place
        self.options, self.behind_proxy = self.way.options, self.way.behind_proxy
        self._in_each = _said_in_each(self.way, lease) if self.behind_proxy else ()
        self.pool: Pool = ConnectionPool(
            url,
            connection_class=psycopg.Connection[DictRow],
            kwargs={"autocommit": True, "row_factory": dict_row, **self.options},
            min_size=1,
            max_size=connections,
            check=_check,
            configure=_read_committed if self.behind_proxy else _flush_every_commit,
            timeout=WAIT_S,
            reconnect_timeout=WAIT_S,
            open=True,
        )

    @contextmanager
    def writing(self) -> Iterator[psycopg.Cursor[DictRow]]:
        """Lend a connection in a transaction."""
        with (
            self.lent() as connection,
            connection.transaction(),
            connection.cursor(binary=True) as cursor,
        ):
            for statement in self._in_each:
                cursor.execute(statement)
            yield cursor

    @contextmanager
    def reading(self) -> Iterator[psycopg.Cursor[DictRow]]:
        """Lend a connection; every statement is a transaction of its own."""
        with self.lent() as connection, connection.cursor(binary=True) as cursor:
            yield cursor

    def close(self) -> None:
        """Close the pool."""
        self.pool.close()

    @contextmanager
    def lent(self) -> Iterator[psycopg.Connection[DictRow]]:
        """
        Lend a connection.

        Raises:
            StoreUnreachable: the server went away, or no connection became free.
        """
        try:
            with self.pool.connection() as connection:
                yield connection
        except PoolTimeout as error:
            raise self._unreachable(self._why_nobody_answers()) from error
        except AWAY as error:
            raise self._unreachable(first_line(error)) from error

    def _unreachable(self, why: str) -> StoreUnreachable:
        return StoreUnreachable(f"{self.place}: {why}. Nothing is lost; call again when it answers")

    def _why_nobody_answers(self) -> str:
        """Ask once more, for the reason, which the pool keeps to itself."""
        try:
            psycopg.connect(self.url, **self.options).close()
        except psycopg.Error as error:
            return first_line(error)
        return f"no connection to it became free within {WAIT_S:g} s"


def _check(connection: psycopg.Connection[DictRow]) -> None:
    """Find out whether the server still answers on this connection; the pool replaces one where it does not."""
    connection.execute("")


def _read_committed(connection: psycopg.Connection[DictRow]) -> None:
    """Begin every transaction as every statement here expects it, whatever the database's default is; `begin` says so."""
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED


def _flush_every_commit(connection: psycopg.Connection[DictRow]) -> None:
    """Make a commit that returned survive the server's crash, also where the database was told to be faster."""
    _read_committed(connection)
    connection.execute(
        "select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'"
    )


def _said_in_each(way: Way, lease: timedelta) -> tuple[bytes, ...]:
    """Return what each transaction says through a proxy: what a session of our own is told once, where the role does not have it anyway."""
    longest = longest_pause_ms(lease)
    flush = (FLUSH.encode(),) if way.slack else ()
    return flush if 0 < way.pause_ms <= longest else (*flush, PAUSE.format(pause_ms=longest).encode())
