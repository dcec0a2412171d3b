"""
Bodies have an end: one that is longer than its place takes is refused, by its announced length or as soon as too much of it has come.

A body is read whole before its endpoint asks who sent it. So where it may be long, whoever sends it is asked for before any of it is read: what is
parsed of 16 MiB can take thirty times as much, and the server stands still meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from checkpointing.errors import CounterfoilError
from service.http.problems import problem_of, problem_of_status

LARGEST_BYTES = 2**20


class Bounded:
    """Refuses bodies that are too long."""

    def __init__(self, app: ASGIApp, *, larger: Mapping[str, int], check: Callable[[Headers], object]) -> None:
        """
        Hand every other request on to *app*.

        Args:
            app: what answers.
            larger: the limits, by path, of those that take more than `LARGEST_BYTES`.
            check: raises a `CounterfoilError` for whoever may send none of those.
        """
        self.app = app
        self.larger = larger
        self.check = check

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Look at the announced length, and count what comes."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limit = self.larger.get(scope["path"], LARGEST_BYTES)
        headers = Headers(scope=scope)
        announced = headers.get("content-length", "0")
        if limit > LARGEST_BYTES and scope["method"] == "POST":
            try:
                await run_in_threadpool(self.check, headers)
            except CounterfoilError as error:
                await problem_of(error).response()(scope, receive, send)
                return
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
