"""
Logging in and out: by a token, with which a session begins.

Whoever fails again and again from one place waits, longer each time, before the next attempt is looked at. Every login begins a session of its own,
and a logout ends it at once, in every process.
"""

from __future__ import annotations

from math import ceil

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from checkpointing.hashed import digest_of
from checkpointing.sessions import LASTING
from service.inbox import cookies
from service.inbox.desk import Desk, Form, text
from service.inbox.guard import local
from service.who.refusals import NotAuthenticated

NEXT = "next"


def add_to(router: APIRouter, desk: Desk) -> None:
    """Serve `/login` and `/logout`."""

    @router.get("/login")
    def show(request: Request) -> Response:
        further = local(request.query_params.get(NEXT, "/"))
        if desk.doors.visitor(request.headers, session=cookies.session_of(request)):
            return RedirectResponse(further, status_code=303)
        return desk.page(request, "login.html", further=further, error="")

    @router.post("/login")
    def log_in(request: Request, form: Form) -> Response:
        further = local(text(form, NEXT))
        desk.check(request, form, "")
        place = request.client.host if request.client else ""
        wait = desk.journal.logins.attempt(place)
        if wait:
            said = f"Too many attempts from here. Try again in {ceil(wait.total_seconds())} seconds."
            return desk.page(request, "login.html", further=further, error=said, status=429)
        secret = text(form, "token").strip()
        try:
            visitor = desk.doors.by_token(secret)
        except NotAuthenticated:
            said = "This token lets nobody in: it is mistyped, was revoked, or has ended. Whoever gave it to you can make another."
            return desk.page(request, "login.html", further=further, error=said, status=401)
        desk.journal.logins.succeeded(place)
        session = desk.journal.sessions.begin(visitor.person, visitor.roles, token_digest=digest_of(secret))
        response = RedirectResponse(further, status_code=303)
        cookies.begin(request, response, session, lasting=LASTING)
        return response

    @router.post("/logout")
    def log_out(request: Request, form: Form) -> Response:
        visitor = desk.visitor(request)
        desk.check(request, form, visitor.name)
        if session := cookies.session_of(request):
            desk.journal.sessions.end(session)
        response = RedirectResponse("/login", status_code=303)
        cookies.end(request, response)
        return response
