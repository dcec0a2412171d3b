"""
Telling a history: let each event happen to one run, check the model after each, bring the run to its end, and leave a script if it broke.

What does not die happens in this process, which is fast; what dies, and what races, in processes of its own.
"""

from __future__ import annotations

import os
import signal
from itertools import count
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from tests.properties.acts import Actor, attempts_of, process
from tests.properties.faults import planted
from tests.properties.history import Event, Part
from tests.properties.model import Model
from tests.properties.seen import Seen, look
from tests.properties.world import LEASE, THREAD, World
from tests.support.processes import context, start, stopped, until

PATIENCE = 40
"""How often operators try before a run counts as one that does not end."""


class Story:
    """One run's history as it is told."""

    def __init__(self, url: str, folder: Path, parts: list[Part], *, fault: str | None = None) -> None:
        """Begin with an empty journal at *url*, and leave traces in *folder*."""
        self.world = World(url, folder, parts, fault)
        self.told: list[Event] = []
        self.numbers = count(1)
        self.journal = self.world.open()
        self.graph = self.world.graph(self.journal)
        self.model = Model(parts, self.look())

    def close(self) -> None:
        """Give the journal back."""
        self.journal.close()

    def look(self) -> Seen:
        """Look at the run."""
        return look(self.journal, self.world.folder, THREAD, self.world.desk.calls())

    def tell(self, event: Event) -> None:
        """Let *event* happen, and check what must be true after it."""
        self.told.append(event)
        number = next(self.numbers)
        match event.verb:
            case "later":
                self.world.later(event.choice)
            case "mood":
                self.world.desk.add_mood(event.what)
            case "two":
                self._race(event, number)
            case "overtaken":
                self._overtake(event, number)
            case _ if event.crash:
                _join(self._start(event, number, "left"))
                self.world.later(event.crash.then_s)
            case _:
                self._here(event, number)
        self._check(event, number)

    def end(self) -> None:
        """Do what operators and workers would until the run has ended, and check the end."""
        self.world.desk.cheer_up()
        for _ in range(PATIENCE):
            self.world.later(int(LEASE.total_seconds()) * 2)
            for event in (Event("redrive"), Event("submit"), Event("resolve"), Event("decide")):
                number = next(self.numbers)
                self._here(event, number)
                self._check(event, number)
            run = self.journal.runs.get(THREAD)
            if run.state == "done" or self.model.may_end_so(run):
                break
        self.model.ended(self.look())

    def _check(self, event: Event, number: int) -> None:
        self.model.check(event, attempts_of(self.world.folder, number), self.look())

    def _here(self, event: Event, number: int, side: str = "left") -> None:
        with planted(self.world.fault):
            Actor(self.world, self.journal, self.graph, number, side).act(event)

    def _start(self, event: Event, number: int, side: str, barrier: object = None) -> ForkServerProcess:
        return start(process, self.world, event, number, side, barrier)

    def _race(self, event: Event, number: int) -> None:
        """Two decide at the same moment."""
        barrier = context().Barrier(2)
        for started in [self._start(event, number, side, barrier) for side in ("left", "right")]:
            _join(started)
        self.world.later(event.crash.then_s if event.crash else 0)

    def _overtake(self, event: Event, number: int) -> None:
        """
        One worker stands still past its lease while the run goes on without it, and then goes on itself.

            first    ...... stopped .................................. going on: writes nothing
            others           lease ends, they do what they do
        """
        first = self._start(event, number, "left")
        if not until(lambda: stopped(first)):
            _join(first)
            return
        assert first.pid is not None
        held = self._owner()
        self.world.later(int(LEASE.total_seconds()) * 2)
        if event.rival:
            _join(self._start(Event("submit", crash=event.rival), number, "right"))
        else:
            self._here(Event("submit"), number, "right")
        before, lost = self.look(), self._owner() != held
        os.kill(first.pid, signal.SIGCONT)
        _join(first)
        if str(first.pid) in held.split(":") and lost:
            self.model.g7_a_stale_worker_changes_nothing(before, self.look())

    def _owner(self) -> str:
        seen = self.look()
        name = f"thread:{THREAD}"
        return f"{seen.owners.get(name)}:{seen.fences.get(name)}"


def _join(started: ForkServerProcess) -> None:
    started.join(60)
    assert started.exitcode in (0, -signal.SIGKILL), f"a process ended with {started.exitcode}"
