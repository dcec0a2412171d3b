"""
How a node or a tool performs its effect: the same steps in sync and in async code, and never asking anybody meanwhile.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from langgraph.errors import GraphBubbleUp

from checkpointing.bridge import Bridge
from checkpointing.errors import GraphRefused
from tools.effect import Effect
from tools.perform import Steps, adrive, drive

T = TypeVar("T")


async def arun(effect: Effect, bridge: Bridge, steps: Callable[[], Steps[T]]) -> T:
    """
    Run *steps* to their end without blocking the event loop.

    A sync tool runs with all of them in one thread: if the caller is cancelled meanwhile, the outcome is settled all the same.
    """
    if inspect.iscoroutinefunction(effect.function):
        return await adrive(steps(), bridge)
    return await bridge.run(lambda: drive(steps()))


@contextmanager
def never_asking(what: str) -> Iterator[None]:
    """
    Refuse an interrupt that comes out of the block: it would run again, with the effect in it.

    Raises:
        GraphRefused: *what* interrupted.
    """
    try:
        yield
    except GraphBubbleUp as asks:
        raise GraphRefused(f"{what} interrupted while it was at work; ask before it, in an approval node") from asks
