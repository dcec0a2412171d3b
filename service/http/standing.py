"""
How the server stands: alive, ready, and in numbers.

    /healthz   the process answers; it asks the journal nothing, so a database that is away restarts no server
    /readyz    the journal answers, and its tables are as this code needs them
    /metrics   counts for Prometheus, at most `FRESH_S` old, so that asking often costs the journal nothing
"""

from __future__ import annotations

import threading
import time
from typing import Literal

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel
from starlette.responses import PlainTextResponse

from checkpointing import Journal
from checkpointing.counts import Counts, counts
from checkpointing.errors import JournalUnusable
from checkpointing.journal import known_tables
from checkpointing.standing import check, found
from service.http.callers import Within, caller
from service.http.exposition import CONTENT_TYPE, exposition

router = APIRouter(tags=["standing"])
FRESH_S = 5.0
"""How old the counts may be, in seconds."""


class AliveShown(BaseModel):
    """The process answers."""

    status: Literal["alive"] = "alive"


class ReadyShown(BaseModel):
    """The journal answers, and its tables are up to date."""

    status: Literal["ready"] = "ready"


@router.get("/healthz")
async def healthz() -> AliveShown:
    """Tell that the process answers."""
    return AliveShown()


@router.get("/readyz")
def readyz(app: Within) -> ReadyShown:
    """Tell that requests can be answered: the journal answers, and its tables are up to date."""
    check_ready(app.journal)
    return ReadyShown()


@router.get("/metrics", dependencies=[Depends(caller)], response_class=PlainTextResponse)
def metrics(request: Request) -> PlainTextResponse:
    """Return counts in Prometheus's text format: runs, approvals that wait or are overdue, dead letters, effects in doubt, and how far behind workers are."""
    recent: Recent = request.app.state.recent
    return PlainTextResponse(exposition(recent.counts()), media_type=CONTENT_TYPE)


def check_ready(journal: Journal) -> None:
    """
    Make sure that the journal can be worked with.

    Raises:
        StoreUnreachable: it does not answer.
        JournalUnusable: its tables are not as this code needs them.
    """
    there, known = found(journal.store), known_tables(dispatches=journal.store.dialect.dispatches)
    check(there, known)
    if there != known:
        raise JournalUnusable(f"the journal has {there} and this code needs {known}: counterfoil migrate")


class Recent:
    """The counts of one journal, for as long as they are fresh."""

    def __init__(self, journal: Journal) -> None:
        """Count nothing yet."""
        self._journal = journal
        self._lock = threading.Lock()
        self._kept: tuple[float, Counts] | None = None

    def counts(self) -> Counts:
        """Return the counts, at most `FRESH_S` old; whoever asks meanwhile waits for the one who counts."""
        with self._lock:
            if self._kept is None or time.monotonic() - self._kept[0] > FRESH_S:
                self._kept = (time.monotonic(), counts(self._journal.store))
            return self._kept[1]
