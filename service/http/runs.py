"""
Runs over HTTP: they are listed, shown, and made ready again; a worker carries them on, never the request.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from checkpointing.admissions import RunState
from checkpointing.errors import GraphChanged
from graph.timeline import timeline
from service.http.asks import Cursor, Limit, Name, ThreadId, read, written
from service.http.callers import Caller, Within
from service.http.shown import EntryShown, PageShown, RunShown, TimelineShown
from service.who.sight import seen_run, sight_of

router = APIRouter(tags=["runs"])


@router.get("/runs")
def list_runs(
    app: Within,
    visitor: Caller,
    *,
    state: Annotated[RunState | None, Query(description="Only runs in this state.")] = None,
    graph: Annotated[Name | None, Query(description="Only runs of the graph of this name: `claims`.")] = None,
    reason: Annotated[
        Name | None,
        Query(description="Only runs parked, or dead, for this reason: `approval`, `in_doubt`, `attempts`."),
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> PageShown[RunShown]:
    """
    List the runs that you may see, newest first.

    A submitter sees those they submitted, an approver those that ever asked for an approval, operators and auditors all of them.
    """
    question = ("runs", state, graph, reason)
    page = app.journal.listing.runs(
        sight=sight_of(visitor),
        state=state,
        graph=graph,
        reason=reason,
        after=read(cursor, *question),
        limit=limit,
    )
    return PageShown(items=[RunShown.model_validate(run) for run in page.items], next=written(page.next, *question))


@router.get("/runs/{thread_id}")
def get_run(app: Within, visitor: Caller, thread_id: ThreadId) -> RunShown:
    """Return one run."""
    return RunShown.model_validate(seen_run(app, visitor, thread_id))


@router.get("/runs/{thread_id}/timeline")
def get_timeline(app: Within, visitor: Caller, thread_id: ThreadId) -> TimelineShown:
    """Return a run step by step: what each changed, which effects it had, what it asked, and how long it waited. Only for runs of this server's graph."""
    run = seen_run(app, visitor, thread_id)
    if run.graph != app.graph.name:
        raise GraphChanged(f"thread {thread_id!r} is of graph {run.graph!r}, and this server has {app.graph.name!r}")
    return TimelineShown.of(timeline(app.graph, thread_id))


@router.get("/runs/{thread_id}/audit")
def get_audit(
    app: Within, visitor: Caller, thread_id: ThreadId, limit: Limit = 50, cursor: Cursor = None
) -> PageShown[EntryShown]:
    """Return the thread's audit, oldest entry first: who did what, and when, each entry bound to the one before it by its hash."""
    seen_run(app, visitor, thread_id)
    mark = read(cursor, "audit", thread_id)
    entries = app.journal.listing.entries(thread_id, after=mark, limit=limit)
    return PageShown(
        items=[EntryShown.of(one) for one in entries.items], next=written(entries.next, "audit", thread_id)
    )


@router.post("/runs/{thread_id}/resume", status_code=202)
def resume(app: Within, visitor: Caller, thread_id: ThreadId) -> RunShown:
    """
    Have a worker carry the run on now, where it would wait before its next attempt; what waits for a person goes on waiting.

    It changes nothing for a run that is done, dead or under way. What is overdue on it is applied.
    """
    seen_run(app, visitor, thread_id)
    return RunShown.model_validate(app.journal.runs.nudge(thread_id, principal=visitor.name))
