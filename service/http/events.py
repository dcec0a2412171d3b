"""
A run's progress as server-sent events: what its audit has gained, until the run rests.

    client ──▶ what happened so far, and from then on what happens ──▶ `rest`: parked, done or dead ──▶ the stream ends
                  id: the entry's place in the audit

A stream that broke goes on where it ended: the client names the last id it has (`Last-Event-ID`, which browsers send by themselves). One that asks
again although nothing happened since the run came to rest is answered 204, which tells a browser to ask no more.

A stream holds no thread: it looks into the journal now and then, and sleeps between. There are at most `MOST_STREAMS` of them in a process, and none
lasts longer than `LONGEST_S`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Request
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from checkpointing import Entry, Journal, Run
from checkpointing.clock import from_ms
from checkpointing.errors import CounterfoilError, TryAgain
from checkpointing.listing import LAST, Mark
from service.http.asks import ThreadId
from service.http.callers import Caller, Within, caller
from service.who.sight import seen_run
from service.worker.draining import Draining

router = APIRouter(tags=["runs"])

SOONEST_S, LATEST_S = 0.25, 2.0
"""How long a stream sleeps after it has found something, and how long at most."""
QUIET_S = 15.0
"""After how long a silent stream says that it is alive."""
LONGEST_S = 600.0
MOST_STREAMS = 200
AT_ONCE = 100
RESTS = ("parked", "done", "dead")
RETRY_MS = 2000

EVENT = {
    "type": "object",
    "description": "One event of the stream.",
    "properties": {
        "event": {"type": "string", "description": "`rest`, or what happened, as the audit names it."},
        "id": {"type": "string", "description": "Its place in the audit."},
        "data": {"type": "string", "description": "JSON."},
        "retry": {"type": "integer"},
    },
}

LastEventId = Annotated[
    int | None,
    Header(alias="Last-Event-ID", ge=0, le=LAST, description="The last id that you have; what came after it is sent."),
]


class EventStream(StreamingResponse):
    """Events as they come; not FastAPI's own class, which calls the endpoint for a generator and so cannot answer 204."""

    media_type = "text/event-stream"


class TooManyStreams(TryAgain):
    """This process has as many streams as it takes."""


@dataclass(slots=True)
class Streams:
    """How many streams there are in this process; only its event loop counts."""

    open: int = 0


@dataclass(frozen=True, slots=True)
class Look:
    """
    What a look into the journal found.

    Attributes:
        run: As it was before the entries were read, so none of what brought it there is missing.
    """

    run: Run
    entries: list[Entry]

    @property
    def rests(self) -> bool:
        """Whether the run rests, and everything was told."""
        return not self.entries and self.run.state in RESTS


def watched(app: Within, visitor: Caller, thread_id: ThreadId) -> Run:
    """Return the run that is to be watched; errors as `seen_run`."""
    return seen_run(app, visitor, thread_id)


@router.get(
    "/runs/{thread_id}/events",
    response_class=EventStream,
    responses={
        200: {"content": {EventStream.media_type: {"schema": EVENT}}, "description": "What happened, as it happens."},
        204: {"description": "The run rests, and nothing happened since `Last-Event-ID`."},
    },
)
async def watch(
    request: Request, app: Within, run: Annotated[Run, Depends(watched)], last_event_id: LastEventId = None
) -> Response:
    """
    Watch a run: one event for each entry of its audit, named as the entry is, and `rest` at the end.

    `data` is JSON: `seq`, `at`, `event`, `subject`; of `rest` it is `state` and `reason`.
    """
    first = await run_in_threadpool(_look, app.journal, run.thread_id, last_event_id or 0)
    if last_event_id is not None and first.rests:
        return Response(status_code=204)
    streams: Streams = request.app.state.streams
    if streams.open >= MOST_STREAMS:
        raise TooManyStreams(
            f"this server has {MOST_STREAMS} streams already; ask again later, or look at the run itself"
        )

    def look(after: int) -> Look:
        # Again at every look: whoever's token was revoked meanwhile hears nothing more.
        return _look(app.journal, seen_run(app, caller(request), run.thread_id).thread_id, after)

    told = _told(look, last_event_id or 0, request.app.state.draining)
    return EventStream(_counted(streams, told), headers={"x-accel-buffering": "no"})


async def _counted(streams: Streams, told: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    streams.open += 1
    try:
        async for one in told:
            yield one
    finally:
        streams.open -= 1


async def _told(look: Callable[[int], Look], after: int, draining: Draining) -> AsyncIterator[bytes]:
    began = spoke = time.monotonic()
    pause_s = SOONEST_S
    yield format_sse_event(retry=RETRY_MS)
    while not draining.asked and time.monotonic() - began < LONGEST_S:
        try:
            seen = await run_in_threadpool(look, after)
        except CounterfoilError:  # the client asks again, and is told then
            return
        for entry in seen.entries:
            after = entry.seq
            yield _event(entry)
        if seen.rests:
            yield format_sse_event(
                event="rest", data_str=_json(state=seen.run.state, reason=seen.run.reason), id=str(after)
            )
            return
        now = time.monotonic()
        if seen.entries:
            pause_s, spoke = SOONEST_S, now
        elif now - spoke > QUIET_S:
            spoke = now
            yield KEEPALIVE_COMMENT
        await asyncio.sleep(0 if len(seen.entries) == AT_ONCE else pause_s)
        pause_s = min(pause_s * 1.5, LATEST_S)


def _look(journal: Journal, thread_id: str, after: int) -> Look:
    run = journal.runs.get(thread_id)
    return Look(run, journal.listing.entries(thread_id, after=Mark(after, ""), limit=AT_ONCE).items)


def _event(entry: Entry) -> bytes:
    at = from_ms(entry.at_ms).isoformat()
    data = _json(seq=entry.seq, at=at, event=entry.event, subject=entry.subject)
    return format_sse_event(event=entry.event, data_str=data, id=str(entry.seq))


def _json(**members: Any) -> str:
    return json.dumps(members)
