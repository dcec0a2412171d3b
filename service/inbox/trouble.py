"""
A page in plain words for whatever went wrong, with the way on; what has no page here is a fault of this program.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from checkpointing.errors import (
    AlreadyDecided,
    AlreadySettled,
    CounterfoilError,
    GraphChanged,
    NotAllowed,
    Refused,
    RunDiscarded,
    TryAgain,
    UnknownApproval,
    UnknownArtefact,
    UnknownEffect,
    UnknownThread,
)
from service.inbox import cookies
from service.inbox.csrf import FormRefused
from service.inbox.desk import Desk, FormTooLarge
from service.inbox.guard import MayNot, NotLoggedIn, to_login
from service.who.refusals import NotAuthenticated
from service.who.visitor import Visitor

SAID: tuple[tuple[tuple[type[Exception], ...], int, str, str], ...] = (
    (
        (FormRefused,),
        403,
        "This form was not taken",
        "Nothing was changed: {error}. Open the page again, and answer there.",
    ),
    ((FormTooLarge,), 413, "This is too much", "Nothing was changed: the form is too large."),
    ((MayNot, NotAllowed), 403, "You may not do this", "{error}."),
    (
        (UnknownApproval, UnknownArtefact, UnknownEffect, UnknownThread),
        404,
        "There is nothing here",
        "It was never there, or it is not for you, or the address is mistyped.",
    ),
    ((TryAgain,), 503, "Not just now", "{error}. Nothing is lost; try again in a moment."),
    ((AlreadyDecided, AlreadySettled, GraphChanged, RunDiscarded), 409, "This is not possible any more", "{error}."),
    ((Refused,), 422, "This was not taken", "{error}."),
    ((CounterfoilError,), 409, "This did not work", "{error}."),
)
"""What each kind of error is answered with; the first that fits counts."""


def trouble(desk: Desk, request: Request, error: Exception) -> Response | None:
    """Return the page for *error*, or `None` if it has none."""
    if isinstance(error, NotLoggedIn):
        return to_login(request)
    if isinstance(error, NotAuthenticated):
        response = to_login(request)
        cookies.end(request, response)
        return response
    for kinds, status, title, said in SAID:
        if isinstance(error, kinds):
            whole = said.format(error=str(error).strip().rstrip("."))
            return _page(desk, request, status, title, whole[:1].upper() + whole[1:])
    return None


def _page(desk: Desk, request: Request, status: int, title: str, said: str) -> Response:
    return desk.page(request, "trouble.html", _who(desk, request), title=title, said=said, status=status)


def _who(desk: Desk, request: Request) -> Visitor | None:
    """Return who is visiting for the top of the page; nobody where that cannot be told."""
    try:
        return desk.doors.visitor(request.headers, session=cookies.session_of(request))
    except CounterfoilError:
        return None
