"""
The queue: what waits for the visitor, what expires first in front; or everything that waits.

A page begins after the last row of the one before (`checkpointing/listing.py`), so what is decided meanwhile shows nothing twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from checkpointing import Approval
from checkpointing.listing import Asked, Found, Mark, Page
from service.inbox import words
from service.inbox.desk import Desk, why_not
from service.inbox.forms import NotReadable, minor_units
from service.who.visitor import Visitor

PAGE = 25
MARK = re.compile(r"(-?\d{1,19})\.([A-Za-z0-9_]{1,64})")


@dataclass(frozen=True, slots=True)
class Row:
    """
    An approval as the queue shows it.

    Attributes:
        why: Why it needs somebody, in one sentence; empty where its graph does not say.
        said: What it is about, in the words of whoever put it first; empty where its graph does not say.
        barred: Why the visitor may not decide it; empty if they may.
    """

    approval: Approval
    title: str
    amount: str
    why: str
    said: str
    left: str
    urgency: str
    barred: str


@dataclass(frozen=True, slots=True)
class Filter:
    """
    Which of the approvals are wanted, as the form says it.

    Attributes:
        mine: Only those that the visitor may decide.
        error: What is wrong with an amount; empty if nothing is.
    """

    mine: bool
    name: str = ""
    least: str = ""
    most: str = ""
    error: str = ""

    @property
    def is_set(self) -> bool:
        """Whether anything is left out by it."""
        return bool(self.name or self.least or self.most)

    def address(self, *, after: Mark | None = None, mine: bool | None = None) -> str:
        """Return the address of the page with this filter, from the row after *after*."""
        shown = "" if (self.mine if mine is None else mine) else "all"
        mark = f"{after.at}.{after.after}" if after else ""
        given = {"show": shown, "name": self.name, "least": self.least, "most": self.most, "after": mark}
        given = {name: value for name, value in given.items() if value}
        return f"/?{urlencode(given)}" if given else "/"


def add_to(router: APIRouter, desk: Desk) -> None:
    """Serve the first page."""

    @router.get("/")
    def first(request: Request) -> Response:
        visitor = desk.visitor(request)
        if visitor.may("approver", "auditor"):
            return _queue(desk, request, visitor)
        return RedirectResponse("/operate" if visitor.may("operator") else "/runs", status_code=303)


def next_for(desk: Desk, visitor: Visitor, *, but: str = "") -> Row | None:
    """Return what the visitor may decide next, other than *but*; `None` if nothing waits for them."""
    found = desk.journal.listing.approvals(
        Asked(), limit=1, wanted=lambda one: one.approval.id != but and not _barred(one, visitor)
    )
    return _row(found.items[0], visitor, desk.now()) if found.items else None


def _queue(desk: Desk, request: Request, visitor: Visitor) -> Response:
    chosen, asked = _chosen(request.query_params, may_decide=visitor.may("approver"))
    after = _mark(request.query_params.get("after", ""))
    page: Page[Found] = Page([], None)
    if not chosen.error:
        page = desk.journal.listing.approvals(
            asked,
            after=after,
            limit=PAGE,
            wanted=lambda one: not (chosen.mine and _barred(one, visitor)),
        )
    now = desk.now()
    rows = [_row(one, visitor, now) for one in page.items]
    return desk.page(
        request,
        "queue.html",
        visitor,
        rows=rows,
        chosen=chosen,
        further=chosen.address(after=page.next) if page.next else "",
        is_first=after is None,
        said=_said(len(rows), chosen, more=page.next is not None or after is not None),
        status=422 if chosen.error else 200,
    )


def _said(count: int, chosen: Filter, *, more: bool) -> str:
    if more:
        return f"{count} shown, what ends first in front"
    whom = " for you" if chosen.mine else ""
    return f"{count} {'waits' if count == 1 else 'wait'}{whom}{', what ends first in front' if count > 1 else ''}"


def _chosen(given: Mapping[str, str], *, may_decide: bool) -> tuple[Filter, Asked]:
    mine = may_decide and given.get("show") != "all"
    name, least, most = (given.get(field, "").strip()[:200].replace("\0", "") for field in ("name", "least", "most"))
    try:
        asked = Asked(name=name or None, least=_amount(least), most=_amount(most))
    except NotReadable:
        return Filter(mine, name, least, most, "Write amounts as numbers, as in 1500 or 1500.50."), Asked()
    return Filter(mine, name, least, most), asked


def _amount(typed: str) -> int | None:
    """Return an amount in minor units; of which currency is not known here, and nearly all have two decimals."""
    return minor_units(typed, "") if typed else None


def _mark(typed: str) -> Mark | None:
    """Return where the page begins; an address that somebody has changed begins at the front."""
    found = MARK.fullmatch(typed)
    return Mark(int(found[1]), found[2]) if found and abs(int(found[1])) < 2**63 else None


def _barred(found: Found, visitor: Visitor) -> str:
    return why_not(found.approval, visitor, {found.submitted_by} if found.submitted_by else set())


def _row(found: Found, visitor: Visitor, now: datetime) -> Row:
    approval = found.approval
    about = approval.about or {}
    why, said = about.get("why"), about.get("said")
    return Row(
        approval,
        words.title(approval),
        words.amount_of(approval),
        why if isinstance(why, str) else "",
        words.cut(words.value(said[0]), 300) if isinstance(said, list) and said else "",
        words.left(approval.expires_at, now),
        words.urgency(approval.expires_at, now),
        _barred(found, visitor),
    )
