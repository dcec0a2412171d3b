"""
Approvals over HTTP: what waits, what was decided of the like, and deciding.

A decision is recorded at once and its run woken; a worker carries it on. Who decides is whom authentication names: no body says so.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from checkpointing import Approval
from checkpointing.errors import AlreadyDecided, PayloadChanged
from checkpointing.listing import Asked, Found
from checkpointing.questions import ApprovalState
from service.approval_settings import LONGEST_HOURS
from service.deciding import is_theirs, take_back, take_decision
from service.http.answers import MaybeUnderKey, Reply
from service.http.asks import Amount, ApprovalId, AskedAnew, Body, Cursor, Json, Limit, Name, Text, read, written
from service.http.callers import Caller, Within
from service.http.shown import ApprovalShown, PageShown, VoteShown
from service.who import Visitor
from service.who.rights import SEES_EVERYTHING
from service.who.sight import seen_approval
from service.wiring import App

router = APIRouter(tags=["approvals"])


class DecisionBody(Body):
    """One decision. What a kind does not need is not kept."""

    type: Literal["approve", "edit", "reject", "respond"]
    payload_hash: Annotated[str, Field(max_length=64, pattern="^[0-9a-f]{64}$")] | None = Field(
        default=None, description="The hash of what was shown: another payload is then never decided by mistake."
    )
    payload: Json = Field(
        default=None, description="For an edit: the whole payload as it is to be, with the keys of the one shown."
    )
    reason: Text | None = Field(
        default=None, description="Why; for a reject of a claim it stands in the letter to the claimant."
    )
    value: Json = Field(default=None, description="For a respond: the answer.")

    @property
    def decision(self) -> dict[str, Any]:
        """The decision as the journal takes it: only what was given."""
        return {
            name: getattr(self, name)
            for name in ("type", "payload_hash", "payload", "reason", "value")
            if name in self.model_fields_set
        }


class ReasonBody(Body):
    """Why."""

    reason: Text = ""


class ExtendBody(Body):
    """More time."""

    hours: float = Field(gt=0, le=LONGEST_HOURS, description="How much more.")
    reason: Text = ""


class ReassignBody(Body):
    """Other people."""

    to: list[Name] = Field(
        min_length=1, max_length=100, description="Names, or `group:NAME` for whoever is in a group."
    )
    reason: Text = ""


@router.get("/approvals")
def list_approvals(
    app: Within,
    visitor: Caller,
    *,
    state: Annotated[ApprovalState, Query(description="Those in this state.")] = "pending",
    name: Annotated[Name | None, Query(description="Only those of this name: `payout`.")] = None,
    thread_id: Annotated[Name | None, Query(description="Only those of this thread.")] = None,
    mine: Annotated[bool, Query(description="Only those that you are asked to decide.")] = False,
    min_amount: Annotated[Amount | None, Query(description="Only those about at least this, in minor units.")] = None,
    max_amount: Annotated[Amount | None, Query(description="Only those about at most this, in minor units.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> PageShown[ApprovalShown]:
    """
    List approvals: those that wait, what expires first in front; others, what was asked last in front.

    A page may be shorter than `limit`, or empty, and not the last: `next` says whether there is more.
    """
    question = ("approvals", state, name, thread_id, mine, min_amount, max_amount)
    asked = Asked(state, thread_id, name, min_amount, max_amount)
    page = app.journal.listing.approvals(
        asked, after=read(cursor, *question), limit=limit, wanted=lambda found: _wanted(found, visitor, mine=mine)
    )
    shown = [ApprovalShown.of(found.approval) for found in page.items]
    return PageShown(items=shown, next=written(page.next, *question))


@router.get("/approvals/{approval_id}")
def get_approval(app: Within, visitor: Caller, approval_id: ApprovalId) -> ApprovalShown:
    """Return one approval: exactly what is asked, of whom, until when, and what was decided."""
    return ApprovalShown.of(seen_approval(app, visitor, approval_id))


@router.get("/approvals/{approval_id}/votes")
def get_votes(app: Within, visitor: Caller, approval_id: ApprovalId) -> list[VoteShown]:
    """Return what each of several has said, where it takes more than one person."""
    seen_approval(app, visitor, approval_id)
    return [VoteShown.model_validate(vote) for vote in app.journal.approvals.votes(approval_id)]


@router.get("/approvals/{approval_id}/similar")
def get_similar(
    app: Within, visitor: Caller, approval_id: ApprovalId, limit: Limit = 10, cursor: Cursor = None
) -> PageShown[ApprovalShown]:
    """Return other approvals of the same name that somebody decided, what was decided last in front."""
    approval = seen_approval(app, visitor, approval_id)
    page = app.journal.listing.similar(approval, after=read(cursor, "similar", approval_id), limit=limit)
    shown = [ApprovalShown.of(one) for one in page.items]
    return PageShown(items=shown, next=written(page.next, "similar", approval_id))


@router.post("/approvals/{approval_id}/decision", response_model=ApprovalShown)
def decide(app: Within, visitor: Caller, once: MaybeUnderKey, approval_id: ApprovalId, body: DecisionBody) -> Response:
    """
    Decide. The first decision wins, and is recorded before this answers; a worker carries the run on.

    Where it takes several people this is one vote, and the approval stays `pending` until enough of them say the same.
    """
    return once.answer(
        body, lambda again: Reply(200, ApprovalShown.of(_decide(app, visitor, approval_id, body, again=again)))
    )


@router.post("/approvals/{approval_id}/withdraw")
def withdraw(app: Within, visitor: Caller, approval_id: ApprovalId, body: ReasonBody) -> ApprovalShown:
    """Take a question back, or an approval, while nothing was done under it; the approvers may, and the submitter while it still waits."""
    return ApprovalShown.of(take_back(app, visitor, seen_approval(app, visitor, approval_id), body.reason))


@router.post("/approvals/{approval_id}/extend")
def extend(app: Within, visitor: Caller, approval_id: ApprovalId, body: ExtendBody) -> ApprovalShown:
    """Give a question that waits more time."""
    seen_approval(app, visitor, approval_id)
    by = timedelta(hours=body.hours)
    return ApprovalShown.of(
        app.journal.approvals.extend(
            approval_id, by, principal=visitor.person, reason=body.reason, operator=visitor.may("operator")
        )
    )


@router.post("/approvals/{approval_id}/reassign")
def reassign(app: Within, visitor: Caller, approval_id: ApprovalId, body: ReassignBody) -> ApprovalShown:
    """Have other people asked, in the time that is left."""
    seen_approval(app, visitor, approval_id)
    return ApprovalShown.of(
        app.journal.approvals.reassign(
            approval_id, body.to, principal=visitor.person, reason=body.reason, operator=visitor.may("operator")
        )
    )


def _decide(app: App, visitor: Visitor, approval_id: str, body: DecisionBody, *, again: bool) -> Approval:
    approval = seen_approval(app, visitor, approval_id)
    try:
        return take_decision(app, visitor, approval, body.decision)
    except AlreadyDecided:
        current = app.journal.approvals.get(approval_id)
        if again and is_theirs(current, visitor, body.decision):
            return current  # the request before this one recorded it, and its answer was lost
        raise
    except PayloadChanged as changed:
        raise AskedAnew(str(changed), approval=app.journal.listing.newest_round(approval)) from changed


def _wanted(found: Found, visitor: Visitor, *, mine: bool) -> bool:
    """Tell whether it belongs into the visitor's list: they may see it, and it is theirs to decide if they want only those."""
    if not (visitor.may("approver", *SEES_EVERYTHING) or found.submitted_by == visitor.name):
        return False
    approvers = found.approval.approvers
    return not mine or (
        found.submitted_by != visitor.name and (approvers is None or visitor.person.is_among(approvers))
    )
