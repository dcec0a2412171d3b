"""
The store: named transactions over SQLite or Postgres, and the only place that knows a driver's errors.

Every durable write of Counterfoil is one `transaction(name)`. The name says what becomes true at its commit
(`effect.claim`, `run.park`), which is also where a test kills the process: before it, or after it.

A crash inside a transaction leaves nothing of it. Transactions do not nest: a second one inside the first is an error, because
on SQLite it would wait for itself.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from checkpointing.clock import Clock, to_ms
from checkpointing.dialect import Dialect
from checkpointing.errors import CounterfoilError

Row = dict[str, Any]
"""One row as the driver returned it: column name to value."""


class Cursor(Protocol):
    """What both drivers' cursors have in common."""

    description: Any

    def execute(self, sql: Any, parameters: Any = ..., /) -> Any:
        """Run one statement."""
        ...

    def fetchall(self) -> list[Any]:
        """Return the rows of the last statement."""
        ...


class Engine(Protocol):
    """A database: two ways in, and its dialect's name."""

    name: str
    shared_clock: bool

    def writing(self) -> AbstractContextManager[Any]:
        """Return a context manager with a cursor in a transaction: committed at its end, rolled back on an error."""
        ...

    def reading(self) -> AbstractContextManager[Any]:
        """Return a context manager with a cursor that only reads."""
        ...

    def close(self) -> None:
        """Give every connection back."""
        ...


@dataclass(frozen=True, slots=True)
class Tx:
    """One transaction, and its time."""

    cursor: Cursor
    dialect: Dialect
    clock: Clock

    def all(self, sql: str, /, **parameters: Any) -> list[Row]:
        """Run one statement and return its rows; none for a statement that returns none."""
        if ":now" in sql and not self.dialect.database_clock:
            parameters["now"] = to_ms(self.clock())
        self.cursor.execute(self.dialect.translate(sql), parameters)
        if self.cursor.description is None:
            return []
        return [_row(self.cursor, row) for row in self.cursor.fetchall()]

    def one(self, sql: str, /, **parameters: Any) -> Row | None:
        """Run one statement and return its first row, or `None`."""
        rows = self.all(sql, **parameters)
        return rows[0] if rows else None

    def now_ms(self) -> int:
        """Return the store's time, the one `:now` is."""
        row = self.one("select :now as now")
        assert row is not None
        return int(row["now"])


class Store:
    """Transactions over one engine."""

    def __init__(self, engine: Engine, clock: Clock, *, own_clock: bool) -> None:
        """
        Use *engine*, with *clock* for `:now` where the engine has no clock that all hosts share.

        Args:
            engine: the database.
            clock: where time comes from.
            own_clock: the clock was given by the caller and counts even against the database's.
        """
        self.engine = engine
        self.clock = clock
        self.dialect = Dialect(engine.name, database_clock=engine.shared_clock and not own_clock)
        self._open = threading.local()

    @contextmanager
    def transaction(self, name: str) -> Iterator[Tx]:
        """
        Make everything inside true at once, or nothing of it.

        Raises:
            JournalUnusable: the file is damaged.
            StoreUnreachable: the database did not answer. Before the commit nothing happened; if the commit itself got no
                answer it may have happened, and every transition is written so that doing it again is safe.
        """
        if held := getattr(self._open, "name", None):
            raise CounterfoilError(f"transaction {name!r} began inside transaction {held!r}; they do not nest")
        self._open.name = name
        try:
            with self.engine.writing() as cursor:
                yield Tx(cursor, self.dialect, self.clock)
        finally:
            self._open.name = None

    @contextmanager
    def reading(self) -> Iterator[Tx]:
        """Read without writing; sees what was committed when each statement began."""
        with self.engine.reading() as cursor:
            yield Tx(cursor, self.dialect, self.clock)

    def now_ms(self) -> int:
        """Return the store's time."""
        if not self.dialect.database_clock:
            return to_ms(self.clock())
        with self.reading() as tx:
            return tx.now_ms()

    def close(self) -> None:
        """Give every connection back; the store is of no use afterwards."""
        self.engine.close()


def _row(cursor: Cursor, row: Any) -> Row:
    if isinstance(row, Mapping):
        return dict(row)
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}
