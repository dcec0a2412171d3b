"""
Sight: what a visitor may see of runs and approvals. What they may not see is not there for them, over HTTP and on the pages alike.
"""

from __future__ import annotations

from checkpointing import Approval, Run
from checkpointing.errors import UnknownApproval, UnknownThread
from checkpointing.listing import EVERYTHING, NOTHING, Sight
from graph.asks import is_plain
from service.who.rights import SEES_EVERYTHING
from service.who.visitor import Visitor
from service.wiring import App


def sight_of(visitor: Visitor) -> Sight:
    """Return which runs they may see; whoever has no role here sees none."""
    if visitor.may(*SEES_EVERYTHING):
        return EVERYTHING
    if not visitor.may("submitter", "approver"):
        return NOTHING
    # An approver who submits too sees their own; one who does not is nobody's submitter, whatever they are called.
    principal = visitor.name if visitor.may("submitter") else None
    return Sight(principal, asking=visitor.may("approver"))


def seen_run(app: App, visitor: Visitor, thread_id: str) -> Run:
    """
    Return the run, if the visitor may see it.

    Raises:
        UnknownThread: there is none, or none that they may see; which of the two, nobody is told.
    """
    run = app.journal.runs.find(thread_id) if is_plain(thread_id) else None
    if run is None or not sight_of(visitor).covers(run, has_asked=lambda: app.journal.listing.has_asked(thread_id)):
        raise UnknownThread(f"there is no run {thread_id!r} that you may see")
    return run


def seen_approval(app: App, visitor: Visitor, approval_id: str) -> Approval:
    """
    Return the approval, if the visitor may see it.

    Raises:
        UnknownApproval: there is none, or none that they may see.
    """
    unseen = UnknownApproval(f"there is no approval {approval_id!r} that you may see")
    if not is_plain(approval_id):  # a question that Postgres does not take
        raise unseen
    try:
        approval = app.journal.approvals.get(approval_id)
    except UnknownApproval:
        raise unseen from None
    sight = sight_of(visitor)
    if sight == EVERYTHING or sight.asking:
        return approval
    run = app.journal.runs.find(approval.thread_id)
    if run is None or not sight.covers(run, has_asked=lambda: True):
        raise unseen
    return approval
