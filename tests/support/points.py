"""
Named points at which a process kills itself, stands still or waits for another one, for tests that run it as a subprocess.

Every durable write of ours is one named transaction, so `before effect.claim` and `after effect.claim` are the two sides of that commit; the
receiver's execution and LangGraph's own writes are points too. `after` is after the commit and before the caller hears of it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from checkpointing.store import Store, Tx


def at(point: str, do: Callable[[], None]) -> None:
    """Call *do* in this process whenever it reaches *point*: `before`, `committing` (all is written and not yet true) or `after` a name."""
    original = Store.transaction

    def reached(name: str) -> None:
        if name == point:
            do()

    @contextmanager
    def transaction(self: Store, name: str) -> Iterator[Tx]:
        reached(f"before {name}")
        with original(self, name) as tx:
            yield tx
            reached(f"committing {name}")
        reached(f"after {name}")

    Store.transaction = transaction  # type: ignore[method-assign]  # in a process that is about to die, to stop or to race


def signal_at(point: str, signum: signal.Signals, *, nth: int = 1) -> None:
    """Send this process a signal when it reaches *point* for the *nth* time."""
    left = count(nth, -1)
    at(point, lambda: os.kill(os.getpid(), signum) if next(left) == 1 else None)


def die_at(point: str, *, nth: int = 1) -> None:
    """Kill this process with SIGKILL when it reaches *point* for the *nth* time."""
    signal_at(point, signal.SIGKILL, nth=nth)


def die_after(target: Any, method: str) -> None:
    """Kill this process right after *method* of *target* has returned."""
    original = getattr(target, method)

    def then_die(*args: Any, **kwargs: Any) -> None:
        original(*args, **kwargs)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(target, method, then_die)
