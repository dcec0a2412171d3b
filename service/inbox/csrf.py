"""
No page of somebody else's makes a visitor do anything here.

Every POST carries a token that only our own pages have, and comes from our own pages as the browser says (`Sec-Fetch-Site`, else `Origin`). Either
alone would do; a fault in one of them is not enough to get in.

The token is an HMAC under the visitor's own cookie, so it is bound to the session and nothing is stored. Before there is a session, and where a
proxy authenticates, a cookie of its own takes the session's place.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from urllib.parse import urlsplit

FIELD = "csrf"


class FormRefused(Exception):
    """The form did not come from one of our pages, or from a page of a session that is over."""


def token(secret: str, name: str) -> str:
    """Return the token of the forms of whoever has the cookie *secret* and is called *name*."""
    return hmac.new(secret.encode(), b"counterfoil form\0" + name.encode(), hashlib.sha256).hexdigest()


def check(headers: Mapping[str, str], *, given: str, secret: str | None, name: str) -> None:
    """
    Make sure that a POST comes from one of our own pages, made for this visitor.

    Raises:
        FormRefused: it does not, or nobody can tell.
    """
    if not _is_from_here(headers):
        raise FormRefused("the form was not sent from one of our pages")
    if not secret or not hmac.compare_digest(token(secret, name).encode(), given.encode()):
        raise FormRefused("the page is older than your session")


def _is_from_here(headers: Mapping[str, str]) -> bool:
    """Believe the browser: every current one says where a POST comes from, and no page can make it lie."""
    if (site := headers.get("sec-fetch-site")) is not None:
        return site == "same-origin"
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc.lower() == headers.get("host", "").lower() != ""
