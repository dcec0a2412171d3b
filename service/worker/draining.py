"""
Draining: a worker that is asked to end lets every superstep under way finish, and begins nothing more.

    SIGTERM ──▶ no more runs are taken up ──▶ each run under way stops at its next checkpoint, its lease and its attempt given back ──▶ end
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from langgraph.runtime import RunControl

WHY = "shutdown"


class Draining:
    """Whether this worker is to end, and the runs that have to hear of it. Every method may be called in any thread, and in a signal handler."""

    def __init__(self) -> None:
        """Nobody has asked yet."""
        self._asked = threading.Event()
        self._controls: set[RunControl] = set()
        self._hooks: list[Callable[[], None]] = []

    @property
    def asked(self) -> bool:
        """Whether the worker is to end."""
        return self._asked.is_set()

    def ask(self) -> None:
        """Have every run stop at its next checkpoint; asking again changes nothing."""
        if self._asked.is_set():
            return
        self._asked.set()
        for control in tuple(self._controls):
            control.request_drain(WHY)
        for hook in tuple(self._hooks):
            hook()

    def wait(self, seconds: float) -> bool:
        """Wait until it is asked, at most so long; tell whether it was."""
        return self._asked.wait(seconds)

    def when_asked(self, hook: Callable[[], None]) -> None:
        """Call *hook* once it is asked, in the thread that asks; at once if it was."""
        self._hooks.append(hook)
        if self.asked:
            hook()

    @contextmanager
    def control(self) -> Iterator[RunControl]:
        """Lend what tells one run to stop; a run that begins after it was asked stops before its first superstep."""
        control = RunControl()
        self._controls.add(control)
        try:
            if self.asked:
                control.request_drain(WHY)
            yield control
        finally:
            self._controls.discard(control)
