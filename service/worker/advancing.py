"""
Advancing one thread, as a worker does it: nothing that a run may come to ends the worker, and the journal says what it came to.

What happens when the process dies is what `graph/advance.py` says of any call; a worker adds nothing that is stored but the postponing of a run that
it could do nothing for.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from langgraph.errors import GraphDrained

from checkpointing import Journal, Run
from checkpointing.clock import to_ms
from checkpointing.errors import (
    EffectInDoubt,
    Refused,
    RunBusy,
    RunDead,
    Stop,
    StoreUnreachable,
    UnknownThread,
)
from graph import DurableGraph, thread
from graph.advance import one_line
from service.worker.draining import Draining

Outcome = Literal[
    "done", "parked", "dead", "admitted", "running", "busy", "early", "drained", "lost", "refused", "away", "gone"
]
"""
What an advance came to: the run's state afterwards, or

    busy      somebody else holds the thread and carries it on
    early     it waits for its next attempt, and this is not the job that was made for it
    drained   stopped between two supersteps, for another worker
    lost      the lease was taken over meanwhile
    refused   this code, or this host, cannot carry it on; postponed
    away      the store does not answer
    gone      there is no such run
"""

LEFT_ALONE = timedelta(seconds=30)
"""How long workers leave a run alone that they could do nothing for."""


@dataclass(frozen=True, slots=True)
class Advanced:
    """
    One advance of one thread.

    Attributes:
        said: The error, in one line, or the reason the run's row has.
        seconds: How long it took.
    """

    thread_id: str
    outcome: Outcome
    said: str | None
    seconds: float


def advance(graphs: Mapping[str, DurableGraph], journal: Journal, thread_id: str, draining: Draining) -> Advanced:
    """Carry the run on as far as it goes, with the graph it belongs to, and say what it came to; no error comes out but a fault of ours."""
    began = time.monotonic()
    outcome, said = _advance(graphs, journal, thread_id, draining)
    return Advanced(thread_id, outcome, said, time.monotonic() - began)


def _advance(
    graphs: Mapping[str, DurableGraph], journal: Journal, thread_id: str, draining: Draining
) -> tuple[Outcome, str | None]:
    try:
        run = journal.runs.get(thread_id)
        if run.graph not in graphs:
            return "refused", f"this worker has no graph {run.graph!r}"
        if _is_early(run, journal):
            return "early", run.error
        with draining.control() as control:
            return _carried_on(graphs[run.graph], journal, run, control)
    except UnknownThread as gone:
        return "gone", one_line(gone)
    except StoreUnreachable as away:
        return "away", one_line(away)


def _is_early(run: Run, journal: Journal) -> bool:
    """Tell whether a run waits for its next attempt: a job that came twice, or by hand, must not hurry it."""
    if run.state != "admitted" or run.due_at is None or run.due_at <= run.updated_at:
        return False
    return to_ms(run.due_at) > journal.store.now_ms()


def _carried_on(graph: DurableGraph, journal: Journal, seen: Run, control: object) -> tuple[Outcome, str | None]:
    said: str | None = None
    try:
        graph.invoke(None, thread(seen.thread_id), control=control)
    except RunBusy as busy:
        return "busy", one_line(busy)
    except Stop as lost:
        return "lost", one_line(lost)
    except StoreUnreachable:
        raise
    except GraphDrained:
        return "drained", None
    except (EffectInDoubt, RunDead) as ended:
        said = one_line(ended)
    except Refused as refused:
        journal.runs.postpone(seen, wait=LEFT_ALONE, error=one_line(refused))
        return "refused", one_line(refused)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # a node's own, say: the run's row has it, and when its next attempt is due
        said = one_line(error)
    run = journal.runs.get(seen.thread_id)
    if run.due_at == seen.due_at:
        # Nothing could be done for what is due still, and asking at once again would be a loop.
        journal.runs.postpone(seen, wait=LEFT_ALONE, error=said)
    return run.state, said or run.reason
