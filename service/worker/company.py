"""
Who is under way together in one worker. A run that ends its process takes along whatever else the process had under way, and all of them become due
at the same moment; carried on side by side again, an innocent one would use up its attempts beside the one that is poison.

So a run that was taken along more than once goes on alone: it waits until the others have ended, and others wait for it. Neither waits for longer than
`PATIENCE_S`; nothing of this is stored, and a process that dies while one waits has not touched that run.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from checkpointing import Journal, Run
from checkpointing.leases import thread_lease

PATIENCE_S = 30.0
"""How long one waits for the other, in seconds; what has lived that long is no poison, or must not hold up everybody."""
DEATHS = 2
"""Workers that died at one checkpoint of a run before it goes on alone."""


class Company:
    """The runs under way in this process; for any thread."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        """Nobody is."""
        self._patience_s = patience_s
        self._others = 0
        self._alone = threading.Lock()
        self._changed = threading.Condition()

    @contextmanager
    def place(self, *, alone: bool) -> Iterator[None]:
        """Hold a place for one run: beside the others, or *alone*."""
        if not alone:
            with self._among_others():
                yield
            return
        held = self._alone.acquire(timeout=self._patience_s)
        try:
            with self._changed:
                self._changed.wait_for(lambda: self._others == 0, self._patience_s)
            yield
        finally:
            if held:
                self._alone.release()

    @contextmanager
    def _among_others(self) -> Iterator[None]:
        if self._alone.acquire(timeout=self._patience_s):
            self._alone.release()
        with self._changed:
            self._others += 1
        try:
            yield
        finally:
            with self._changed:
                self._others -= 1
                self._changed.notify_all()


def is_suspect(run: Run, journal: Journal) -> bool:
    """Tell whether workers died more than once at the checkpoint where *run* stands: it is running, by its row, and nobody holds it."""
    if run.state != "running" or run.attempts < DEATHS:
        return False
    return journal.leases.holder(thread_lease(run.thread_id)) is None
