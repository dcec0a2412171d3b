"""
Logging in and out: by a token, with which a session begins (`service/who/doors.py` has the rules).

Whether a token is unknown, revoked or expired is not told. Whoever fails again and again from one place waits, longer each time.
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from service.inbox import cookies
from service.inbox.desk import Desk, Form, text
from service.inbox.guard import local
from service.who.places import place_of
from service.who.refusals import NotAuthenticated, TooManyLogins

NEXT = "next"
NOBODY = (
    "This token lets nobody in: it is mistyped, was revoked, or has ended. Whoever gave it to you can make another."
)


def add_to(router: APIRouter, desk: Desk) -> None:
    """Serve `/login` and `/logout`."""

    @router.get("/login")
    def show(request: Request) -> Response:
        further = local(request.query_params.get(NEXT, "/"))
        try:
            came = desk.doors.visitor(request.headers, session=cookies.session_of(request))
        except (
            NotAuthenticated
        ) as error:  # by a proxy's header, say: sent to the login again they would go round for ever
            return desk.page(request, "login.html", further=further, error=f"{error}.", status=401)
        if came:
            return RedirectResponse(further, status_code=303)
        return desk.page(request, "login.html", further=further, error="")

    @router.post("/login")
    def log_in(request: Request, form: Form) -> Response:
        further = local(text(form, NEXT))
        desk.check(request, form, "")
        place = place_of(request.client.host if request.client else None)
        try:
            _, secret = desk.doors.log_in(text(form, "token"), place=place, session=cookies.session_of(request))
        except TooManyLogins as many:
            said = f"Too many attempts from here. Try again in {many.wait_s} seconds."
            response = desk.page(request, "login.html", further=further, error=said, status=429)
            response.headers["Retry-After"] = str(many.wait_s)
            return response
        except NotAuthenticated:
            return desk.page(request, "login.html", further=further, error=NOBODY, status=401)
        response = RedirectResponse(further, status_code=303)
        cookies.begin(request, response, secret, lasting=desk.doors.lasting)
        return response

    @router.post("/logout")
    def log_out(request: Request, form: Form) -> Response:
        visitor = desk.visitor(request)
        desk.check(request, form, visitor.name)
        desk.doors.log_out(cookies.session_of(request))
        response = RedirectResponse("/login", status_code=303)
        cookies.end(request, response)
        return response
