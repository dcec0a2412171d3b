"""
Bodies have an end: one that is longer than its place takes is refused, by its announced length or as soon as too much of it has come.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.http.problems import problem_of_status

LARGEST_BYTES = 2**20


class Bounded:
    """Refuses bodies that are too long."""

    def __init__(self, app: ASGIApp, *, larger: Mapping[str, int]) -> None:
        """Hand every other request on to *app*; *larger* has the limits, by path, of those that take more than `LARGEST_BYTES`."""
        self.app = app
        self.larger = larger

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Look at the announced length, and count what comes."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limit = self.larger.get(scope["path"], LARGEST_BYTES)
        announced = Headers(scope=scope).get("content-length", "0")
        if not announced.isdecimal() or int(announced) > limit:
            await problem_of_status(413, _too_long(limit)).response()(scope, receive, send)
            return
        come = 0

        async def receive_some() -> Message:
            nonlocal come
            message = await receive()
            come += len(message.get("body", b""))
            if come > limit:
                raise HTTPException(413, _too_long(limit))
            return message

        await self.app(scope, receive_some, send)


def _too_long(limit: int) -> str:
    return f"the body has more than {limit} bytes"
