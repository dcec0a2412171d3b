"""
Callers: who sent a request, and whether their roles open what it asks for.

The principal is whom authentication names and nobody else: no body, query or path says who is acting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from fastapi.security.http import HTTPAuthorizationCredentials

from service.http.asks import SHOWN, QueryUnknown, RightsMissing
from service.who import Role, Visitor
from service.who.doors import Doors
from service.who.refusals import NotAuthenticated
from service.who.rights import RIGHTS, SUBMITTER
from service.wiring import App

BEARER = HTTPBearer(
    auto_error=False,
    description="A token made by `counterfoil token add`, or a signed one of the identity provider that this server is told of.",
)
NOBODY = "this takes a bearer token: the header Authorization: Bearer, a blank and the token"
FOREIGN = ("cross-site", "same-site")
"""What a browser says of a request that a page of another origin had it send."""
SAFE = ("GET", "HEAD", "OPTIONS")


def app_of(request: Request) -> App:
    """Return what this server works with."""
    app: App = request.app.state.app
    return app


Within = Annotated[App, Depends(app_of)]


def caller(
    request: Request, _bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)] = None
) -> Visitor:
    """
    Return who sent the request, who may do what it asks for.

    Raises:
        NotAuthenticated: nobody, or what was shown does not hold.
        RightsMissing: none of their roles opens this.
        QueryUnknown: the query has a name that is not known here.
        StoreUnreachable: the journal is away; nobody knows.
    """
    doors: Doors = request.app.state.doors
    # A session is for the pages, whose forms carry a secret of their own against other sites' pages; here it would stand alone.
    visitor = doors.visitor(request.headers, session=None)
    if visitor is None:
        raise NotAuthenticated(NOBODY)
    check_may(visitor, *RIGHTS.get(f"{request.method} {request.scope['route'].path}", ()))
    if request.method not in SAFE and (_is_foreign(request) or (visitor.unasked and _names_another(request))):
        raise RightsMissing("a page of another site may not change anything here")
    _check_query(request)
    return visitor


Caller = Annotated[Visitor, Depends(caller)]


def check_submits(doors: Doors, headers: Mapping[str, str]) -> None:
    """Make sure that whoever sends these headers may submit, before what they submit is read; errors as `caller`."""
    visitor = doors.visitor(headers, session=None)
    if visitor is None:
        raise NotAuthenticated(NOBODY)
    check_may(visitor, *SUBMITTER)


def check_may(visitor: Visitor, *roles: Role) -> None:
    """
    Make sure that they come in one of *roles*.

    Raises:
        RightsMissing: they do not.
    """
    if not visitor.may(*roles):
        needed = " or ".join(roles) or "none that there is"
        raise RightsMissing(
            f"this takes the role {needed}; {visitor.name!r} has {', '.join(sorted(visitor.roles)) or 'none'}"
        )


def _is_foreign(request: Request) -> bool:
    return request.headers.get("sec-fetch-site") in FOREIGN


def _names_another(request: Request) -> bool:
    """Tell whether a page of another place sends this: browsers say so of every change, also where they do not send `Sec-Fetch-Site`."""
    origin = request.headers.get("origin")
    return origin is not None and urlsplit(origin).netloc.lower() != request.headers.get("host", "").lower()


def _check_query(request: Request) -> None:
    """Refuse what would be overlooked: whoever misspells a filter takes the list for another than it is."""
    known = {field.alias for field in request.scope["route"].dependant.query_params}
    if unknown := sorted(request.query_params.keys() - known):
        knows = f"it knows {', '.join(sorted(known))}" if known else "it knows none"
        raise QueryUnknown(f"this takes no query parameter {unknown[0][:SHOWN]!r}; {knows}")
