"""
The pages' two cookies: the session's, and the one that binds a form where there is no session yet.

Neither can be read by a script, and both go over TLS only, but for a browser that talks plain HTTP to its own machine. They are sent along when a
link in a mail is followed, and with no form of another site (`SameSite=Lax`; the forms have tokens besides).
"""

from __future__ import annotations

import secrets
from datetime import timedelta

from starlette.requests import Request
from starlette.responses import Response

SESSION = "counterfoil_session"
FORM = "counterfoil_form"
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def session_of(request: Request) -> str | None:
    """Return the session's secret, if the browser has one."""
    return request.cookies.get(SESSION) or None


def form_secret_of(request: Request) -> str | None:
    """Return what the forms of this browser are bound to: its session, or its form cookie."""
    return session_of(request) or request.cookies.get(FORM) or None


def new_form_secret(request: Request) -> str:
    """Return a new secret for the form cookie; a page that was answered keeps the same one."""
    made = getattr(request.state, "form_secret", None) or secrets.token_urlsafe(32)
    request.state.form_secret = made
    return str(made)


def keep_form_secret(request: Request, response: Response) -> None:
    """Have the browser keep the form secret that was made for this request, if one was."""
    if made := getattr(request.state, "form_secret", None):
        response.set_cookie(FORM, made, httponly=True, samesite="lax", secure=is_secure(request), path="/")


def begin(request: Request, response: Response, secret: str, *, lasting: timedelta) -> None:
    """Have the browser keep the session's secret."""
    seconds = int(lasting.total_seconds())
    response.set_cookie(
        SESSION, secret, max_age=seconds, httponly=True, samesite="lax", secure=is_secure(request), path="/"
    )


def end(request: Request, response: Response) -> None:
    """Have the browser forget both."""
    for name in (SESSION, FORM):
        response.delete_cookie(name, httponly=True, samesite="lax", secure=is_secure(request), path="/")


def is_secure(request: Request) -> bool:
    """Tell whether cookies are for TLS only: always, but where this very machine is asked over plain HTTP."""
    return request.url.scheme == "https" or (request.url.hostname or "") not in LOOPBACK
