"""
The gate where answers are held until somebody lets them go, their time is over, or the sandbox ends.

A test that must act while an answer is held waits for it here (`wait_held`), so nobody sleeps and hopes.
"""

from __future__ import annotations

import asyncio


class Gate:
    """Everything that is held in one sandbox."""

    def __init__(self) -> None:
        self._held: set[asyncio.Future[bool]] = set()
        self._changed = asyncio.Event()
        self._closed = False

    async def hold(self, seconds: float | None) -> bool:
        """Wait for the release, at most *seconds*; return `False` if the sandbox ends, and then go no further."""
        if self._closed:
            return False
        released: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._held.add(released)
        self._changed.set()
        try:
            return await asyncio.wait_for(released, seconds)
        except TimeoutError:
            return True
        finally:
            self._held.discard(released)

    def release(self) -> int:
        """Let everything go that is held; return how much it was."""
        waiting = [released for released in self._held if not released.done()]
        for released in waiting:
            released.set_result(True)
        return len(waiting)

    def close(self) -> None:
        """End the waiting of everybody, held now or later: the sandbox ends."""
        self._closed = True
        self._changed.set()
        for released in self._held:
            if not released.done():
                released.set_result(False)

    async def wait_held(self, count: int, seconds: float) -> int:
        """Wait until *count* answers are held, at most *seconds*; return how many are."""
        try:
            async with asyncio.timeout(seconds):
                while len(self._held) < count and not self._closed:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pass
        return len(self._held)
