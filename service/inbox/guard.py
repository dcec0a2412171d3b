"""
What is true of every answer of the pages: its headers, who may see it, and a page in plain words for whatever went wrong.

The content security policy allows nothing but our own files: no script and no style stands in a page, so a text that got into one as markup would
still do nothing. Nothing is kept in caches or shown in frames.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import quote

from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
    # Not no-referrer: with it browsers send `Origin: null` with our own forms, and that is what the forms are recognised by.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}


class NotLoggedIn(Exception):
    """Nobody is logged in; after the login the page is shown that was asked for."""


class MayNot(Exception):
    """Whoever asks may not see this page, or not do this; the message is for them."""


Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def guarded(trouble: Callable[[Request, Exception], Response | None]) -> type[APIRoute]:
    """Return the class of the pages' routes; *trouble* makes the page for what one raised, or `None` for a fault of this program."""

    class PageRoute(APIRoute):
        def get_route_handler(self) -> Handler:
            handler = super().get_route_handler()

            async def answer(request: Request) -> Response:
                try:
                    response = await handler(request)
                except HTTPException:
                    raise
                except Exception as error:  # what has no page of its own is raised again
                    shown = await run_in_threadpool(trouble, request, error)
                    if shown is None:
                        raise
                    response = shown
                secure(response.headers)
                return response

            return answer

    return PageRoute


def secure(headers: MutableHeaders) -> None:
    """Add the headers of every page to an answer that has not said otherwise."""
    for name, value in HEADERS.items():
        if name not in headers:
            headers[name] = value


def to_login(request: Request) -> Response:
    """Send the visitor to the login, and from there to the page they asked for; a form is not sent again, its page is shown."""
    query = request.url.query if request.method == "GET" else ""
    wanted = request.url.path + (f"?{query}" if query else "")
    further = f"?next={quote(wanted, safe='')}" if wanted not in ("/", "/logout") else ""
    return RedirectResponse(f"/login{further}", status_code=303)


def local(path: str) -> str:
    """Return *path* if it leads to one of our own pages, else the first page: a login sends nobody elsewhere."""
    is_ours = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() and "\\" not in path
    return path if is_ours else "/"
