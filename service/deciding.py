"""
Deciding as a visitor of the service: over HTTP and on the pages alike.

A decision is recorded before anything answers, and its run woken; a worker carries it on. A crash before the commit leaves the question open, after it
a decision of which whoever sent it may not have heard: the same again is told to be theirs.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from langgraph.types import Command

from checkpointing import Approval
from checkpointing.errors import NotAllowed, RunDead
from checkpointing.waking import submitters
from graph import thread
from graph.answers import checked
from service.who import Visitor
from service.wiring import App


def take_decision(app: App, visitor: Visitor, approval: Approval, decision: dict[str, Any]) -> Approval:
    """
    Record the visitor's decision and return the approval after it.

    Raises:
        GraphChanged: this code cannot carry the run on; nothing was recorded.
        NotAllowed, DecisionInvalid, AlreadyDecided, ApprovalExpired, PayloadChanged: as `Approvals.decide`.
    """
    run = app.journal.runs.find(approval.thread_id)
    if run is None or run.graph != app.graph.name or approval.interrupt_id:
        return app.journal.approvals.decide(approval.id, checked(approval, decision), principal=visitor.person)
    command: Command[Any] = Command(resume={**decision, "approval": approval.id})
    with suppress(RunDead):  # it is recorded all the same, and read when somebody redrives the run
        app.graph.submit(command, thread(approval.thread_id, principal=visitor.person))
    return app.journal.approvals.get(approval.id)


def take_back(app: App, visitor: Visitor, approval: Approval, reason: str) -> Approval:
    """
    Withdraw the approval as the visitor.

    Raises:
        NotAllowed: they come in no role that decides, and did not submit it; or as `Approvals.withdraw`, whose other errors it has too.
    """
    with app.journal.store.reading() as tx:
        own = visitor.name in submitters(tx, approval.thread_id)
    if not own and not visitor.may("approver"):
        raise NotAllowed(f"{visitor.name!r} does not come as an approver, and did not submit approval {approval.id!r}")
    return app.journal.approvals.withdraw(approval.id, principal=visitor.person, reason=reason)


def is_theirs(approval: Approval, visitor: Visitor, decision: dict[str, Any]) -> bool:
    """Tell whether what is recorded is this very decision of the visitor's: they sent it before."""
    recorded = approval.decision or {}
    given = {name: value for name, value in decision.items() if name != "payload_hash"}
    return approval.decided_by == visitor.name and all(recorded.get(name) == value for name, value in given.items())
