"""
Dead letters over HTTP: runs that cannot go on by themselves, and taking them up again or giving them up.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from checkpointing.errors import UnknownThread
from checkpointing.listing import Mark
from service.http.asks import Body, Cursor, Limit, Name, Text, ThreadId, read, written
from service.http.callers import Caller, Within
from service.http.shown import PageShown, RunShown

router = APIRouter(tags=["dead letters"])


class WhyBody(Body):
    """Why, for the record."""

    reason: Annotated[Text, Field(min_length=1, pattern=r"\S")]


@router.get("/dead-letters")
def list_dead_letters(
    app: Within,
    _visitor: Caller,
    *,
    reason: Annotated[Name | None, Query(description="Only those that died of this: `attempts`, `rejected`.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> PageShown[RunShown]:
    """List the dead letters that nobody gave up, in the order of their threads."""
    question = ("dead-letters", reason)
    mark = read(cursor, *question)
    found = app.journal.runs.dead(reason=reason, after=mark.after if mark else "", limit=limit + 1)
    following = Mark(0, found[limit - 1].thread_id) if len(found) > limit else None
    return PageShown(items=[RunShown.model_validate(run) for run in found[:limit]], next=written(following, *question))


@router.get("/dead-letters/{thread_id}")
def get_dead_letter(app: Within, _visitor: Caller, thread_id: ThreadId) -> RunShown:
    """Return one dead letter, one that was given up too."""
    run = app.journal.runs.get(thread_id)
    if run.state != "dead":
        raise UnknownThread(f"thread {thread_id!r} is {run.state}, which is no dead letter")
    return RunShown.model_validate(run)


@router.post("/dead-letters/{thread_id}/redrive", status_code=202)
def redrive(app: Within, visitor: Caller, thread_id: ThreadId, body: WhyBody) -> RunShown:
    """Take a dead letter up again from its last step, with all its attempts, once its cause is mended; no effect is repeated. A worker carries it on."""
    return RunShown.model_validate(app.journal.runs.redrive(thread_id, principal=visitor.name, reason=body.reason))


@router.post("/dead-letters/{thread_id}/discard")
def discard(app: Within, visitor: Caller, thread_id: ThreadId, body: WhyBody) -> RunShown:
    """Give a dead letter up for good: it is not listed and not redriven any more, and what it still asks is withdrawn."""
    return RunShown.model_validate(app.journal.runs.discard(thread_id, principal=visitor.name, reason=body.reason))
