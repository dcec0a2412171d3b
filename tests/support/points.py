"""
Named points at which a process kills itself, stands still or waits for another one, for tests that run it as a subprocess.

    before effect.claim, after effect.claim    the two sides of the commit of a named transaction; every durable write of ours is one
    before call pay, after call pay            the two sides of a call to a receiver: an effect, its look-up, a read
    before artefact.mv, …                      the two sides of what the folder of artefacts is told to do
    before saver.setup, …                      the two sides of LangGraph's making of its tables

`after` is after the commit, or the answer, and before the caller hears of it.
"""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Any

from fsspec.implementations.local import LocalFileSystem

from checkpointing.ledger import Ledger
from checkpointing.savers import PostgresJournalSaver, SqliteJournalSaver
from checkpointing.store import Store, Tx
from tools import perform
from tools.claims_system import ClaimsSystem
from tools.effect import Effect

READS = ("file", "claim", "policy")
"""What the client of the claims system asks, by the names of its methods."""

FOLDER_WRITES = ("makedirs", "pipe_file", "mv")
"""What changes a folder, by fsspec's names."""

Reached = Callable[[str], None]


def at(point: str, do: Callable[[], None]) -> None:
    """Call *do* in this process whenever it reaches *point*: `before`, `committing` (all is written and not yet true) or `after` a name."""

    def reached(name: str) -> None:
        if name == point:
            do()

    name = point.partition(" ")[2]
    if name.startswith("call "):
        _effects(reached)
        for method in READS:
            _around(ClaimsSystem, method, f"call claims.{method}", reached)
    elif name.startswith("artefact."):
        for method in FOLDER_WRITES:
            _around(LocalFileSystem, method, f"artefact.{method}", reached)
    elif name == "saver.setup":
        for saver in (SqliteJournalSaver, PostgresJournalSaver):
            _around(saver, "setup", name, reached)
    else:
        _transactions(reached)


def at_point(point: str, what: Callable[[], None], *, nth: int = 1) -> None:
    """Do *what* when this process reaches *point* for the *nth* time."""
    at(point, _the_nth_time(what, nth))


def signal_at(point: str, signum: signal.Signals, *, nth: int = 1) -> None:
    """Send this process a signal when it reaches *point* for the *nth* time."""
    at_point(point, lambda: os.kill(os.getpid(), signum), nth=nth)


def die_at(point: str, *, nth: int = 1) -> None:
    """Kill this process with SIGKILL when it reaches *point* for the *nth* time."""
    at_point(point, die, nth=nth)


def die_after(target: Any, method: str) -> None:
    """Kill this process right after *method* of *target* has returned."""
    after(target, method, die)


def after(target: Any, method: str, what: Callable[[], None], *, nth: int = 1) -> None:
    """Do *what* when *method* of *target* has returned for the *nth* time, before its caller hears of it."""
    then_do, original = _the_nth_time(what, nth), getattr(target, method)

    def then(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        then_do()
        return result

    setattr(target, method, then)


def die() -> None:
    """Kill this process with SIGKILL."""
    os.kill(os.getpid(), signal.SIGKILL)


def _the_nth_time(what: Callable[[], None], nth: int) -> Callable[[], None]:
    left = count(nth, -1)
    return lambda: what() if next(left) == 1 else None


def _transactions(reached: Reached) -> None:
    original = Store.transaction

    @contextmanager
    def transaction(self: Store, name: str) -> Iterator[Tx]:
        reached(f"before {name}")
        with original(self, name) as tx:
            yield tx
            reached(f"committing {name}")
        reached(f"after {name}")

    Store.transaction = transaction  # type: ignore[method-assign]  # in a process that is about to die, to stop or to race


def _effects(reached: Reached) -> None:
    """Make every tool and look-up say when it is called and when it has answered, by the effect's name."""
    original = perform._obtain

    def obtain(ledger: Ledger, effect: Effect, *rest: Any) -> Any:
        find = effect.find and _telling(effect.find, f"call {effect.name} look-up", reached)
        telling = replace(effect, function=_telling(effect.function, f"call {effect.name}", reached), find=find)
        return (yield from original(ledger, telling, *rest))

    perform._obtain = obtain


def _around(target: Any, method: str, name: str, reached: Reached) -> None:
    setattr(target, method, _telling(getattr(target, method), name, reached))


def _telling(function: Callable[..., Any], name: str, reached: Reached) -> Callable[..., Any]:
    @functools.wraps(function)
    def told(*args: Any, **kwargs: Any) -> Any:
        reached(f"before {name}")
        answer = function(*args, **kwargs)
        reached(f"after {name}")
        return answer

    return told
