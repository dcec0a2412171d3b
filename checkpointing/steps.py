"""
A generator's next step as a return value, so that a protocol written once has a sync and an async driver.

The protocol is a generator that does its storage itself and yields what its driver must do. `Feed` hands out the steps, takes back answers
and errors, and may be called from any thread, one at a time.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

Step = TypeVar("Step")
End = TypeVar("End")


def is_ctrl_c(error: BaseException) -> bool:
    """Tell whether *error* is the interrupt of a person; one that comes up in another thread than the main one was raised by a step."""
    return isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()


class Feed(Generic[Step, End]):
    """
    One run of a protocol.

    Attributes:
        answer: What the driver sends with the next `next`.
        outcome: What the generator returned; there once `next` has returned `None`.
    """

    def __init__(self, steps: Generator[Step, Any, End]) -> None:
        """Feed *steps*, which is not started yet."""
        self.answer: Any = None
        self.outcome: End
        self._steps = steps
        self._error: BaseException | None = None
        self._lock = threading.Lock()

    def next(self) -> Step | None:
        """Return the next step, or `None` at the end; raises what the protocol raises."""
        answer, error, self.answer, self._error = self.answer, self._error, None, None
        with self._lock:
            try:
                return self._steps.throw(error) if error else self._steps.send(answer)
            except StopIteration as end:
                self.outcome = end.value
                return None

    @contextmanager
    def told(self) -> Iterator[None]:
        """
        Catch what the step raises and throw it into the protocol, which decides what it means.

        A caller who leaves (Ctrl-C, a cancelled task, a stream that is left) is told by closing the protocol. Whatever else comes is the step's
        own, a `SystemExit` too.
        """
        try:
            yield
        except BaseException as error:  # nothing is swallowed: the protocol raises it or says why not
            if isinstance(error, GeneratorExit | asyncio.CancelledError) or is_ctrl_c(error):
                raise
            self._error = error

    def close(self) -> None:
        """Close the protocol once the step under way, if any, is over: a cancelled caller does not wait for that."""
        with self._lock:
            self._steps.close()
