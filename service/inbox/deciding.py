"""
Deciding: what the form says is recorded as the visitor's own decision, and a worker carries the run on.

Who decides is who is logged in; a form that names somebody else is not even read so far. Of several people the first one counts, and the page says to
the others who that was. A page that has gone stale decides nothing: its form says which payload it showed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fastapi import APIRouter
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from checkpointing import Approval
from checkpointing.errors import (
    AlreadyDecided,
    ApprovalExpired,
    DecisionInvalid,
    NotAllowed,
    PayloadChanged,
    Refused,
)
from service.deciding import is_theirs, take_decision
from service.inbox import calls, forms
from service.inbox.approval import Typed, answer
from service.inbox.desk import Desk, Form, text
from service.who.sight import seen_approval
from service.who.visitor import Visitor

REASON_MISSING = "Say why: the reason is recorded, and may be told to whoever asked."
NOTHING_CHANGED = "Nothing was changed. Change something, or approve it as it is."
LONGEST_REASON = 2_000


def add_to(router: APIRouter, desk: Desk) -> None:
    """Take decisions at `/approvals/{id}`."""

    @router.post("/approvals/{approval_id}")
    def decide(request: Request, approval_id: str, form: Form) -> Response:
        visitor = desk.visitor(request, "approver")
        desk.check(request, form, visitor.name)
        approval = seen_approval(desk.app, visitor, approval_id)
        typed, decision = _read(approval, form)
        if typed.trouble or any(field.error for field in typed.fields):
            return answer(desk, request, visitor, approval, typed=typed, status=422)
        try:
            take_decision(desk.app, visitor, approval, decision)
        except (AlreadyDecided, ApprovalExpired, PayloadChanged) as late:
            if is_theirs(desk.journal.approvals.get(approval.id), visitor, decision):
                # A double click, or a browser that heard no answer to the first.
                return RedirectResponse(f"/approvals/{approval.id}", status_code=303)
            return _too_late(desk, request, visitor, approval, typed=typed, late=late)
        except (DecisionInvalid, NotAllowed) as refused:
            status = 403 if isinstance(refused, NotAllowed) else 422
            return _refused(desk, request, visitor, approval, typed=typed, refused=refused, status=status)
        return RedirectResponse(f"/approvals/{approval.id}", status_code=303)


def _read(approval: Approval, form: FormData) -> tuple[Typed, dict[str, Any]]:
    """Return what was typed, with what is wrong with it, and the decision that it makes."""
    kind, reason = text(form, "type"), text(form, "reason").replace("\r\n", "\n").strip()
    typed = Typed(kind, reason, shown_hash=text(form, "payload_hash"))
    decision: dict[str, Any] = {"type": kind, "payload_hash": typed.shown_hash}
    if reason and kind != "respond":
        decision["reason"] = reason
    if len(reason) > LONGEST_REASON:
        return replace(typed, trouble=f"The reason is too long: at most {LONGEST_REASON} characters."), decision
    given = {name: text(form, name) for name in form}
    match kind:
        case "reject" if not reason:
            typed = replace(typed, trouble=REASON_MISSING)
        case "edit":
            decision["payload"], fields = forms.read(approval, given)
            unchanged = not any(field.error for field in fields) and decision["payload"] == approval.payload
            typed = replace(typed, fields=fields, trouble=NOTHING_CHANGED if unchanged else "")
        case "respond":
            decision["value"], found, trouble = calls.answer_to(approval, given)
            free, sent_as = given.get("answer", ""), given.get("answer_as", "")
            typed = replace(typed, calls=found, trouble=trouble, answer=free, answer_as=sent_as)
    return typed, decision


def _too_late(
    desk: Desk, request: Request, visitor: Visitor, approval: Approval, *, typed: Typed, late: Refused
) -> Response:
    """Show what became of the approval meanwhile, and that this answer was not recorded."""
    current = desk.journal.approvals.get(approval.id)
    if isinstance(late, PayloadChanged) and current.state == "pending":
        told = Typed(typed.kind, typed.reason, "This page showed something else. Look at it again.")
        return answer(desk, request, visitor, current, typed=told, status=409)
    return answer(desk, request, visitor, current, typed=typed, status=409)


def _refused(
    desk: Desk,
    request: Request,
    visitor: Visitor,
    approval: Approval,
    *,
    typed: Typed,
    refused: Refused,
    status: int,
) -> Response:
    told = replace(typed, trouble=f"{str(refused).rstrip('.')}.")
    return answer(desk, request, visitor, desk.journal.approvals.get(approval.id), typed=told, status=status)
