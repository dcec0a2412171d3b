"""
Runs: those that somebody submitted, and one run with its timeline drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from checkpointing import Approval, Entry, Run
from checkpointing.listing import Sight
from graph.timeline import Timeline, timeline
from service.inbox.desk import Desk
from service.inbox.drawing import Drawn, draw
from service.situation import situation
from service.who.sight import seen_run
from service.words import why

SHOWN = 50


@dataclass(frozen=True, slots=True)
class Standing:
    """
    How a run stands, for its page.

    Attributes:
        why: Why it is parked or dead, in words.
        holder: Which worker has it; empty if none.
        pending: What it waits for.
        outcome: How it ended, as its graph says; empty for another graph's, and while it runs.
    """

    run: Run
    why: str
    holder: str
    pending: list[Approval]
    outcome: str


def add_to(router: APIRouter, desk: Desk) -> None:
    """Serve `/runs` and `/run?id=`."""

    @router.get("/runs")
    def own(request: Request) -> Response:
        visitor = desk.visitor(request, "submitter")
        runs = desk.journal.listing.runs(sight=Sight(visitor.name), limit=SHOWN).items
        return desk.page(request, "runs.html", visitor, runs=runs, now=desk.now())

    @router.get("/run")
    def one(request: Request) -> Response:
        visitor = desk.visitor(request)
        thread_id = request.query_params.get("id", "")
        run = seen_run(desk.app, visitor, thread_id)
        line = timeline(desk.graph, thread_id) if run.graph == desk.graph.name else None
        entries: list[Entry] = []
        if visitor.may("operator", "auditor"):
            entries = list(line.entries if line else desk.journal.audit.entries(thread_id))
        return desk.page(
            request,
            "run.html",
            visitor,
            standing=_standing(desk, run, line),
            drawn=_drawn(line),
            is_foreign=line is None,
            entries=entries,
            now=desk.now(),
        )


def _standing(desk: Desk, run: Run, line: Timeline | None) -> Standing:
    at = situation(desk.journal, run.thread_id)
    holder = at.holder(run.thread_id)
    last = line.steps[-1].update if line and line.steps else {}
    outcome = str(last.get("outcome", "")).replace("_", " ") if run.state == "done" else ""
    return Standing(run, why(run), holder.owner if holder else "", at.pending.get(run.thread_id, []), outcome)


def _drawn(line: Timeline | None) -> Drawn | None:
    return draw(line) if line and line.steps else None
