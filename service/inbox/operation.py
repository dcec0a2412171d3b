"""
The operator's page: what needs somebody, in front; then what runs and what waits by itself. It reads what the command line reads.

    in doubt   nobody knows whether an effect happened
    dead       dead letters that nobody gave up
    stuck      due for a while, and nobody carries it on: its worker is gone, its time to decide is over, or there is no worker
    running    a worker has it
    waiting    parked; no process is alive for it

The runs that send notices are many and tell of other runs; they are shown where they are in trouble.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from checkpointing import Approval, EffectRecord, Journal, Run
from checkpointing.watching import watched
from service.inbox.desk import Desk
from service.notices.graph import NAME as NOTICES
from service.words import why

SHOWN = 50
PATIENCE = timedelta(minutes=1)
"""How long a run may be due and held by nobody before it counts as stuck; a worker takes up what is due within seconds."""


@dataclass(frozen=True, slots=True)
class Line:
    """
    A run as the page shows it.

    Attributes:
        why: What is the case with it, in words.
        holder: Which worker has it; empty if none.
        approval: What it waits for, where that is a decision.
    """

    run: Run
    why: str
    holder: str = ""
    approval: Approval | None = None


@dataclass(frozen=True, slots=True)
class Looked:
    """What the page shows, `SHOWN` of each at most and one more where there are more."""

    in_doubt: Sequence[EffectRecord]
    dead: Sequence[Line]
    stuck: Sequence[Line]
    running: Sequence[Line]
    waiting: Sequence[Line]


def add_to(router: APIRouter, desk: Desk) -> None:
    """Serve `/operate`."""

    @router.get("/operate")
    def operate(request: Request) -> Response:
        visitor = desk.visitor(request, "operator", "auditor")
        return desk.page(
            request, "operation.html", visitor, found=look(desk.journal), most=SHOWN, patience=PATIENCE, now=desk.now()
        )


def look(journal: Journal) -> Looked:
    """Look at everything once."""
    limit = SHOWN + 1
    now = watched(journal.store, patience=PATIENCE, quiet=NOTICES, limit=limit)
    return Looked(
        in_doubt=journal.effects.list(state="in_doubt", limit=limit),
        dead=[Line(run, why(run)) for run in journal.runs.dead(limit=limit)],
        stuck=[Line(run, _stuck(run)) for run in now.stuck],
        running=[Line(run, "", holder) for run, holder in now.held],
        waiting=[Line(run, _waits(run), approval=asked) for run, asked in now.parked],
    )


def _stuck(run: Run) -> str:
    if run.state == "parked":
        return "the time to decide is over, and no worker has applied that"
    if run.state == "running":
        return "its worker is gone, and no other has taken it up"
    return "ready, and no worker has taken it up"


def _waits(run: Run) -> str:
    if run.waits_for:
        return "for somebody to say whether an effect happened"
    return "for a decision" if run.reason == "approval" else (run.reason or "").replace("_", " ")
