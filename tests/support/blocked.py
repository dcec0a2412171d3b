"""
Seeing a thread wait for a lock that this one holds, so that a race is forced and not hoped for.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from checkpointing import Journal
from tests.support.processes import until

WAITING = """
select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and pid <> pg_backend_pid()
"""
"""Which of a Postgres database's connections wait for a lock."""


class Peer:
    """Does one thing in a thread of its own, which is seen to be blocked."""

    def __init__(self, journal: Journal, work: Callable[[], Any]) -> None:
        """Begin *work*."""
        self.journal = journal
        self._ident = 0
        self._pool = ThreadPoolExecutor(1)
        self._future: Future[Any] = self._pool.submit(self._named, work)
        self._pool.shutdown(wait=False)

    def until_blocked(self) -> None:
        """Wait until it waits for a lock, or is over: then there was no lock in its way, and the test will say so."""
        until(lambda: True if self._future.done() or self._is_blocked() else None)

    def error(self) -> BaseException | None:
        """Return what it raised at its end, or `None`."""
        return self._future.exception(30)

    def result(self) -> Any:
        """Return what came of it."""
        return self._future.result(30)

    def _named(self, work: Callable[[], Any]) -> Any:
        self._ident = threading.get_ident()
        return work()

    def _is_blocked(self) -> bool:
        if self.journal.store.engine.name == "postgres":
            with self.journal.store.reading() as tx:
                return bool(tx.all(WAITING))
        # On SQLite the writer and the write lock are taken at the first lines of a transaction, and the thread stands there.
        frame = sys._current_frames().get(self._ident)
        return frame is not None and frame.f_code.co_name in ("_mine", "writing")
