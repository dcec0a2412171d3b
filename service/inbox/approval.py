"""
One approval: everything that somebody needs to decide it, and what became of it. Looking changes nothing, whoever follows the link.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from checkpointing import Approval, Run
from checkpointing.voting import Vote, needed
from service.inbox import calls, differences, documents, forms, history, words
from service.inbox.calls import Call
from service.inbox.desk import Desk, why_not
from service.inbox.differences import Difference
from service.inbox.documents import Document
from service.inbox.forms import Field
from service.inbox.history import History
from service.inbox.queue import Row, next_for
from service.who.rights import RIGHTS
from service.who.sight import seen_approval
from service.who.visitor import Visitor

SIMILAR, VOTES = (RIGHTS[f"GET /approvals/{{approval_id}}/{what}"] for what in ("similar", "votes"))
"""Who is shown what was decided of other claims, and what each of several has said: the same as over HTTP."""


@dataclass(frozen=True, slots=True)
class Typed:
    """
    What came with an answer that was not taken; the page shows it again.

    Attributes:
        kind: Which answer it was.
        trouble: Why it was not taken, for whoever gave it.
        fields: The edit form as it was filled in.
        shown_hash: The hash of the payload that was looked at.
        calls: The tool calls with what was typed about each.
        answer: A free answer, sent as text or as JSON.
    """

    kind: str = ""
    reason: str = ""
    trouble: str = ""
    fields: Sequence[Field] = ()
    shown_hash: str = ""
    calls: Sequence[Call] = ()
    answer: str = ""
    answer_as: str = ""


@dataclass(frozen=True, slots=True)
class Before:
    """The approval that this one took the place of, and what is different."""

    approval: Approval
    payload: Sequence[Difference]
    facts: Sequence[Difference]


@dataclass(frozen=True, slots=True)
class Voice:
    """What one of several has said, and what they would change."""

    vote: Vote
    changed: Sequence[Difference]


@dataclass(frozen=True, slots=True)
class Shown:
    """
    An approval as its page shows it to one visitor.

    Attributes:
        barred: Why they may not decide it; empty if they may.
        edited: What an approver made of it, where they did.
        newest: The approval that took its place, where one did.
        is_over: Its time is over, and nobody has applied that yet.
        votes: What was said with the tier that is asked now.
        following: What waits for the visitor next, once this does not.
        acts: What else they may do about it, by name, and what its link says.
    """

    approval: Approval
    title: str
    amount: str
    facts: Sequence[tuple[str, str]]
    why: str
    said: Sequence[str]
    about: Sequence[tuple[str, str]]
    documents: Sequence[Document]
    history: History
    before: Before | None
    run: Run | None
    submitted_by: Sequence[str]
    barred: str
    fields: Sequence[Field]
    calls: Sequence[Call]
    edited: Sequence[Difference]
    newest: Approval | None
    is_over: bool
    votes: Sequence[Voice]
    following: Row | None
    acts: Sequence[tuple[str, str]]
    typed: Typed = field(default_factory=Typed)

    @property
    def is_open(self) -> bool:
        """Whether it still waits for a decision."""
        return self.approval.state == "pending" and not self.is_over

    @property
    def wanted(self) -> int:
        """How many people have to approve it."""
        return needed(self.approval, {"type": "approve"})

    @property
    def wanted_for_edit(self) -> int:
        """How many people have to want the same change."""
        return needed(self.approval, {"type": "edit"})


def add_to(router: APIRouter, desk: Desk) -> None:
    """Serve `/approvals/{id}` and its documents."""

    @router.get("/approvals/{approval_id}")
    def one(request: Request, approval_id: str) -> Response:
        visitor = desk.visitor(request)
        approval = seen_approval(desk.app, visitor, approval_id)
        return answer(desk, request, visitor, approval)

    @router.get("/approvals/{approval_id}/documents/{sha256}")
    def document(request: Request, approval_id: str, sha256: str) -> Response:
        visitor = desk.visitor(request)
        approval = seen_approval(desk.app, visitor, approval_id)
        return documents.served(approval, sha256, desk.journal.artefacts)


def answer(
    desk: Desk, request: Request, visitor: Visitor, approval: Approval, *, typed: Typed | None = None, status: int = 200
) -> Response:
    """Return the approval's page, with what was *typed* where an answer was not taken."""
    shown = show(desk, approval, visitor, typed or Typed())
    return desk.page(request, "approval.html", visitor, shown=shown, now=desk.now(), status=status)


def show(desk: Desk, approval: Approval, visitor: Visitor, typed: Typed) -> Shown:
    """Read everything that the page shows."""
    about: dict[str, Any] = approval.about or {}
    submitted_by = desk.submitters(approval.thread_id)
    is_over = approval.expires_at is not None and approval.expires_at <= desk.now() and approval.state == "pending"
    is_settled = is_over or approval.state != "pending"
    said, given = about.get("said"), about.get("facts")
    why = about.get("why")
    return Shown(
        approval=approval,
        title=words.title(approval),
        amount=words.amount_of(approval),
        facts=words.facts(approval.payload, approval.amount_in),
        why=why if isinstance(why, str) else "",
        said=[words.value(one) for one in said] if isinstance(said, list) else [],
        about=[(str(key), words.value(one)) for key, one in given.items()] if isinstance(given, dict) else [],
        documents=documents.documents(approval, desk.journal.artefacts),
        history=history.like(desk.journal, approval) if visitor.may(*SIMILAR) else History(),
        before=_before(desk, approval),
        run=desk.journal.runs.find(approval.thread_id),
        submitted_by=sorted(submitted_by),
        barred=why_not(approval, visitor, submitted_by),
        fields=typed.fields or forms.fields(approval),
        calls=typed.calls or calls.calls_of(approval),
        edited=_edited(approval, approval.decision or {}),
        newest=_newest(desk, approval),
        is_over=is_over,
        votes=_votes(desk, approval) if visitor.may(*VOTES) else (),
        following=next_for(desk, visitor, but=approval.id) if is_settled and visitor.may("approver") else None,
        acts=_acts(approval, visitor, submitted_by),
        typed=typed,
    )


def _votes(desk: Desk, approval: Approval) -> list[Voice]:
    found = (vote for vote in desk.journal.approvals.votes(approval.id) if vote.tier == approval.tier)
    return [Voice(vote, _edited(approval, vote.decision)) for vote in found]


def _edited(approval: Approval, decision: Mapping[str, Any]) -> Sequence[Difference]:
    if decision.get("type") != "edit":
        return ()
    return differences.between(approval.payload, decision["payload"], amount_in=approval.amount_in)


def _acts(approval: Approval, visitor: Visitor, submitted_by: set[str]) -> list[tuple[str, str]]:
    """Return what else the visitor may do, as far as it can be seen here; the ledger has the last word."""
    decides, waits = not why_not(approval, visitor, submitted_by), approval.state == "pending"
    found = []
    if waits and (decides or visitor.may("operator")):
        found += [("extend", "Give it more time"), ("reassign", "Ask other people")]
    takes_back = waits and visitor.name in submitted_by and visitor.may("submitter", "approver")
    allowed = bool(approval.decision and approval.decision["type"] in ("approve", "edit"))
    if not approval.interrupt_id and (takes_back or (decides and (waits or (approval.state == "decided" and allowed)))):
        found.append(("withdraw", "Take it back"))
    return found


def _before(desk: Desk, approval: Approval) -> Before | None:
    if approval.replaces is None:
        return None
    old = desk.journal.approvals.get(approval.replaces)
    changed = differences.between(old.payload, approval.payload, amount_in=approval.amount_in)
    return Before(old, changed, differences.of_facts(old, approval))


def _newest(desk: Desk, approval: Approval) -> Approval | None:
    if approval.state != "superseded":
        return None
    rounds = [
        one
        for one in desk.journal.approvals.of_thread(approval.thread_id)
        if (one.node, one.name, one.visit) == (approval.node, approval.name, approval.visit)
    ]
    newest = max(rounds, key=lambda one: one.round)
    return newest if newest.id != approval.id else None
