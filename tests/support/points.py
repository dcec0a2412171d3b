"""
Named points at which a process kills itself, for tests that run it as a subprocess.

Every durable write of ours is one named transaction, so `before effect.claim` and `after effect.claim` are the two sides of that commit; the
receiver's execution and LangGraph's own writes are points too. `after` is after the commit and before the caller hears of it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from checkpointing.store import Store, Tx


def die_at(point: str, *, nth: int = 1) -> None:
    """Kill this process with SIGKILL when it reaches *point* for the *nth* time."""
    left = [nth]
    original = Store.transaction

    def reached(name: str) -> None:
        if name == point:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    @contextmanager
    def transaction(self: Store, name: str) -> Iterator[Tx]:
        reached(f"before {name}")
        with original(self, name) as tx:
            yield tx
        reached(f"after {name}")

    Store.transaction = transaction  # type: ignore[method-assign]  # a process that is about to die


def die_after(target: Any, method: str) -> None:
    """Kill this process right after *method* of *target* has returned."""
    original = getattr(target, method)

    def then_die(*args: Any, **kwargs: Any) -> None:
        original(*args, **kwargs)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(target, method, then_die)
