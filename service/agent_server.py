"""
What one Agent Server process works with: the journal and the claims graph, opened once, at the first use.

A server imports its graphs when it starts, and the database may not be there yet. A first use that fails is an error of that request
alone; the next use tries again.
"""

from __future__ import annotations

import asyncio
import threading

from service.settings import Settings
from service.wiring import Served, serve


class AgentServer:
    """The journal and the graph of this process; any thread and any event loop may ask for them."""

    def __init__(self, settings: Settings) -> None:
        """Open nothing yet."""
        self.settings = settings
        self._opening = threading.Lock()
        self._served: Served | None = None

    async def opened(self) -> Served:
        """Return them; opening blocks, so it is done in a thread."""
        return await asyncio.to_thread(self._open) if self._served is None else self._served

    def _open(self) -> Served:
        with self._opening:
            if self._served is None:
                self._served = serve(self.settings)
            return self._served
