"""
One bounded thread bridge: how async callers reach storage, which is synchronous and written once.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

THREADS = 16

P = ParamSpec("P")
T = TypeVar("T")


class Bridge:
    """A pool of threads for calls that block."""

    def __init__(self) -> None:
        """Start no thread before the first call."""
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="counterfoil")

    async def run(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """
        Call *function* in a thread and wait for it.

        A caller that is cancelled stops waiting; the call itself runs to its end, because a storage call cut in half helps nobody.
        """
        context = contextvars.copy_context()
        call = partial(context.run, function, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    def close(self) -> None:
        """Wait for the calls under way and end the threads."""
        self._pool.shutdown(wait=True)
