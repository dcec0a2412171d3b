"""
What goes around every request: an id for the log, the headers that browsers heed, one line in the log, and an end for faults.

The line says the method, the route as it is written in the code, the status and how long it took; never a query, a header, a body, or the path as
it came, which may hold anything. A fault is logged with where it was and what kind it is, never with its words: they may be somebody's payload.
"""

from __future__ import annotations

import time
import traceback
import uuid

import structlog
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.http.problems import FAULT, Told

log = structlog.get_logger("counterfoil.http")

REQUEST_ID = "x-request-id"
QUIET = ("/healthz", "/readyz", "/metrics")
"""What is asked again and again, and logged only where it fails."""
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""What an answer has that says nothing else itself; pages say their own."""
HSTS = "max-age=31536000"


class Around:
    """Goes around every request."""

    def __init__(self, app: ASGIApp) -> None:
        """Hand every request on to *app*."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand it on, and answer for it if nobody does."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id, began = uuid.uuid4().hex, time.monotonic()
        status = 0

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                _add_headers(message, request_id, https=scope.get("scheme") == "https")
            await send(message)

        try:
            await self.app(scope, receive, send_on)
        except ClientDisconnect:
            log.info("client_gone", request=request_id)
        except Exception as fault:  # noqa: BLE001  # the last frame before the server: whatever it is, the client is answered
            log.error(  # noqa: TRY400  # its traceback ends with its words
                "request_failed", request=request_id, kind=type(fault).__name__, at=_where(fault)
            )
            if not status:
                await Told(FAULT, FAULT.detail, {"request": request_id}).response()(scope, receive, send_on)
        finally:
            _log(scope, request_id, status, time.monotonic() - began)


def route_of(scope: Scope) -> str | None:
    """Return the path of the route as it is written in the code; `None` where there is none."""
    path = getattr(scope.get("route"), "path", None)
    return path if isinstance(path, str) else None


def _add_headers(message: Message, request_id: str, *, https: bool) -> None:
    headers = MutableHeaders(scope=message)
    for name, value in HEADERS.items():
        headers.setdefault(name, value)
    if https:
        headers.setdefault("strict-transport-security", HSTS)
    headers[REQUEST_ID] = request_id


def _log(scope: Scope, request_id: str, status: int, seconds: float) -> None:
    route = route_of(scope)
    say = log.debug if route in QUIET and status < 400 else log.warning if status >= 500 else log.info
    say(
        "request",
        request=request_id,
        method=scope["method"] if scope["method"] in METHODS else "?",
        route=route,
        status=status,
        ms=round(seconds * 1000),
    )


def _where(fault: BaseException) -> list[str]:
    """Return the frames it passed, the last ones, without a value in them."""
    frames = traceback.extract_tb(fault.__traceback__)[-8:]
    return [f"{frame.filename.rpartition('site-packages/')[2]}:{frame.lineno} {frame.name}" for frame in frames]
