"""
The queue: what waits for the visitor, what expires first in front.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from checkpointing import Approval
from service.inbox import words
from service.inbox.desk import Desk, why_not
from service.who.visitor import Visitor

PAGE = 25


@dataclass(frozen=True, slots=True)
class Row:
    """
    An approval as the queue shows it.

    Attributes:
        why: Why it needs somebody, in one sentence; empty where its graph does not say.
        barred: Why the visitor may not decide it; empty if they may.
    """

    approval: Approval
    title: str
    amount: str
    why: str
    left: str
    urgency: str
    barred: str


def add_to(router: APIRouter, desk: Desk) -> None:
    """Serve the first page."""

    @router.get("/")
    def first(request: Request) -> Response:
        visitor = desk.visitor(request)
        if visitor.may("approver", "auditor"):
            return _queue(desk, request, visitor)
        return RedirectResponse("/operate" if visitor.may("operator") else "/runs", status_code=303)


def row_of(desk: Desk, approval: Approval, visitor: Visitor) -> Row:
    """Return an approval as the queue shows it to this visitor."""
    now = desk.now()
    why = (approval.about or {}).get("why")
    return Row(
        approval,
        words.title(approval),
        words.amount_of(approval),
        why if isinstance(why, str) else "",
        words.left(approval.expires_at, now),
        words.urgency(approval.expires_at, now),
        why_not(approval, visitor, desk.submitters(approval.thread_id)),
    )


def next_for(desk: Desk, visitor: Visitor, *, but: str = "") -> Row | None:
    """Return what the visitor may decide next, other than *but*; `None` if nothing waits for them."""
    rows = (row_of(desk, one, visitor) for one in desk.journal.approvals.pending(limit=200) if one.id != but)
    return next((row for row in rows if not row.barred), None)


def _queue(desk: Desk, request: Request, visitor: Visitor) -> Response:
    asked = request.query_params
    mine = visitor.may("approver") and asked.get("show") != "all"
    found = desk.journal.approvals.pending(limit=1000)
    rows = [row_of(desk, one, visitor) for one in found]
    rows = [row for row in rows if not (mine and row.barred)]
    return desk.page(
        request, "queue.html", visitor, now=desk.now(), rows=rows, mine=mine, further=None, address=_address
    )


def _address(**asked: Any) -> str:
    given = {name: value for name, value in asked.items() if value}
    return f"/?{urlencode(given)}" if given else "/"
