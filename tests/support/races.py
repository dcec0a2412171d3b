"""
Two processes that race, round after round, each round on a thread of its own.

Both live as long as the race. In every round each goes on its own until it stands before a transaction of its choice, waits there for the other at
a barrier, and then goes on; so both have read what they act on before either has written. One of them lags behind by a few milliseconds, first the
one and then the other, so that the rounds sweep over the ways in which the two can meet.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from checkpointing import Journal, open_journal
from graph import DurableGraph
from tests.support.clock import MovingClock
from tests.support.points import at
from tests.support.processes import context

ROUNDS = int(os.environ.get("COUNTERFOIL_RACE_ROUNDS", "100"))
FEW = max(40, ROUNDS // 4)
"""Rounds of a race that is a variant of another one."""

PATIENCE_S = 300
LAGS_MS = (0, 1, -1, 3, -3, 6, -6, 0.3, -0.3, 12, -12)
"""How much later than the other the left one goes on, round by round; below zero it is the right one."""

MakeGraph = Callable[[Journal, Path], DurableGraph]
Act = Callable[[DurableGraph, int], str]
"""Does one round's work and says how it went."""


@dataclass(frozen=True, slots=True)
class Side:
    """
    One of the two, as it is sent to its process; functions are those of a module.

    Attributes:
        act: What it does in a round.
        meets: The transaction before which it waits for the other; by default it waits before the whole of *act*.
        prepare: What is done for a round beforehand; each side prepares half of the rounds.
        later: How far its own clock has moved on when the race begins; `None`: it has no clock of its own.
    """

    act: Act
    meets: str | None = None
    prepare: Act | None = None
    later: timedelta | None = None


class Gate:
    """Lets a process pass once a round, when the other stands at its own gate."""

    def __init__(self, barrier: Any, meets: str | None) -> None:
        """Stand before the transaction *meets*, or at once where there is none."""
        self.barrier = barrier
        self.meets = meets
        self.armed = False
        self.lag_s = 0.0
        if meets:
            at(f"before {meets}", self._pass)

    def close(self, lag_s: float) -> None:
        """Begin a round; whoever passes goes on *lag_s* later than the other."""
        self.armed, self.lag_s = True, lag_s
        if self.meets is None:
            self._pass()

    def _pass(self) -> None:
        if not self.armed:
            return
        self.armed = False
        self.barrier.wait(PATIENCE_S)
        threading.Event().wait(self.lag_s)


def race(
    url: str, folder: Path, make: MakeGraph, left: Side, right: Side, rounds: int = ROUNDS
) -> list[tuple[str, str]]:
    """Let the two race, and return what they said of each round."""
    spawn = context()
    barrier = spawn.Barrier(2)
    ends = []
    for number, side in enumerate((left, right)):
        mine, theirs = spawn.Pipe(duplex=False)
        process = spawn.Process(
            target=_racer, args=(url, folder, make, side, number, rounds, barrier, theirs), daemon=True
        )
        process.start()
        theirs.close()
        ends.append((process, mine))
    said = [_heard(process, end) for process, end in ends]
    return list(zip(*said, strict=True))


def _racer(*given: Any) -> None:
    barrier = given[-2]
    try:
        _run(*given)
    except BaseException:
        barrier.abort()  # the other one would wait for nobody
        raise


def _run(
    url: str, folder: Path, make: MakeGraph, side: Side, number: int, rounds: int, barrier: Any, end: Connection
) -> None:
    clock = MovingClock() if side.later is not None else None
    with open_journal(url, clock=clock) as journal:
        graph = make(journal, folder)
        for one in range(number, rounds, 2):
            if side.prepare:
                side.prepare(graph, one)
        if clock and side.later:
            clock.move(side.later)
        barrier.wait(PATIENCE_S)
        gate = Gate(barrier, side.meets)
        said = []
        for one in range(rounds):
            lag_s = LAGS_MS[one % len(LAGS_MS)] / 1000 * (-1 if number else 1)
            gate.close(max(0.0, lag_s))
            said.append(side.act(graph, one))
            assert not gate.armed, f"round {one} never came to {side.meets}: there was no race"
        end.send(said)


def _heard(process: Any, end: Connection) -> list[str]:
    try:
        said: list[str] = end.recv()
    except EOFError:
        process.join(PATIENCE_S)
        raise AssertionError(f"{process} ended with {process.exitcode} before it had said how it went") from None
    process.join(PATIENCE_S)
    assert process.exitcode == 0
    return said
