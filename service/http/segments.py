"""
Segments: a `/` inside an id stays inside it.

Thread ids and effect keys may have a slash in them, which a client writes as `%2F`. A server that decodes the path before it looks for the route
takes that for a separator. So the path is taken apart as it came, and a slash inside a segment is carried to the endpoint as a control character
that no id can have.
"""

from __future__ import annotations

from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

API = "/api/"
"""Where ids stand in the path; pages have their own rules."""
INSIDE = "\x1f"
"""Stands for a slash inside a segment."""
NOTHING = "\x1e"
"""Stands for a segment that no id can be: it has a character that stands for something here, or is no UTF-8."""


class Segments:
    """Decodes the path of a request segment by segment."""

    def __init__(self, app: ASGIApp) -> None:
        """Hand every request on to *app*."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take the path apart."""
        raw: bytes | None = scope.get("raw_path")
        if scope["type"] == "http" and raw and raw.startswith(API.encode()) and b"%" in raw:
            segments = raw.partition(b"?")[0].decode("latin-1").split("/")
            scope = {**scope, "path": "/".join(map(_inside, segments))}
        await self.app(scope, receive, send)


def whole(segment: str) -> str:
    """Return the segment as the client meant it."""
    return segment.replace(INSIDE, "/")


def _inside(segment: str) -> str:
    try:
        decoded = unquote(segment, errors="strict")
    except UnicodeDecodeError:
        return NOTHING
    return NOTHING if INSIDE in decoded else decoded.replace("/", INSIDE)
