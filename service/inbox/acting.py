"""
The pages of what may be done about a run, an effect or a question: a GET says what will happen, a POST does it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from checkpointing import Approval, EffectRecord, Run
from checkpointing.errors import DecisionInvalid, UnknownThread
from service.inbox.acts import ACTS, HOURS, Act, Asked, NotTyped
from service.inbox.desk import Desk, Form, text
from service.who.sight import seen_approval
from service.who.visitor import Visitor

LONGEST_REASON = 2_000
NOTHING: Mapping[str, Any] = {}
OF_RUN, OF_EFFECT = ("resume", "redrive", "discard"), ("resolve",)


def add_to(router: APIRouter, desk: Desk) -> None:
    """Serve `/act/{name}`."""

    @router.get("/act/{name}")
    def say(request: Request, name: str) -> Response:
        act = _named(name)
        visitor = desk.visitor(request, *act.roles)
        return _page(desk, request, visitor, name, request.query_params.get("of", ""))

    @router.post("/act/{name}")
    def do(request: Request, name: str, form: Form) -> Response:
        act = _named(name)
        visitor = desk.visitor(request, *act.roles)
        desk.check(request, form, visitor.name)
        of, reason = text(form, "of"), text(form, "reason").replace("\r\n", "\n").strip()
        _subject(desk, visitor, name, of)
        if error := _reason_error(act, reason):
            return _page(desk, request, visitor, name, of, typed=form, error=error)
        try:
            further = act.do(Asked(desk, visitor, of, form, reason))
        except NotTyped as error:
            return _page(desk, request, visitor, name, of, typed=form, error=str(error))
        except DecisionInvalid as error:
            return _page(desk, request, visitor, name, of, typed=form, error=f"{error}.")
        return RedirectResponse(further, status_code=303)


def _named(name: str) -> Act:
    if name not in ACTS:
        raise HTTPException(404)
    return ACTS[name]


def _reason_error(act: Act, reason: str) -> str:
    if act.reason == "must" and not reason:
        return "Say why: it is recorded."
    return f"At most {LONGEST_REASON} characters." if len(reason) > LONGEST_REASON else ""


def _page(
    desk: Desk,
    request: Request,
    visitor: Visitor,
    name: str,
    of: str,
    *,
    typed: Mapping[str, Any] = NOTHING,
    error: str = "",
) -> Response:
    subject = _subject(desk, visitor, name, of)
    return desk.page(
        request,
        "act.html",
        visitor,
        name=name,
        act=ACTS[name],
        of=of,
        run=subject if isinstance(subject, Run) else None,
        effect=subject if isinstance(subject, EffectRecord) else None,
        approval=subject if isinstance(subject, Approval) else None,
        typed={field: text(typed, field) for field in ("reason", "hours", "people", "happened", "outcome")},
        hours=HOURS,
        error=error,
        now=desk.now(),
        status=422 if error else 200,
    )


def _subject(desk: Desk, visitor: Visitor, name: str, of: str) -> Run | EffectRecord | Approval:
    """
    Return what is to be acted on.

    Raises:
        UnknownThread, UnknownEffect, UnknownApproval: there is none, or none that they may see.
    """
    if "\0" in of:  # Postgres takes none in a text
        raise UnknownThread(of)
    if name in OF_RUN:
        return desk.journal.runs.get(of)
    return desk.journal.effects.get(of) if name in OF_EFFECT else seen_approval(desk.app, visitor, of)
