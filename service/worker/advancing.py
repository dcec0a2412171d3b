"""
Advancing one thread, as a worker does it: nothing that a run may come to ends the worker, and the journal says what it came to.

What happens when the process dies is what `graph/advance.py` says of any call; a worker adds nothing that is stored but the postponing of a run that
it could do nothing for.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from langgraph.errors import GraphDrained

from checkpointing import Journal
from checkpointing.errors import (
    EffectInDoubt,
    Refused,
    RunBusy,
    RunDead,
    Stop,
    StoreUnreachable,
    TryAgain,
    UnknownThread,
)
from graph import DurableGraph, thread
from graph.advance import one_line
from graph.backoff import Backoff
from service.worker.draining import Draining

Outcome = Literal["done", "parked", "dead", "admitted", "running", "busy", "drained", "lost", "refused", "away", "gone"]
"""
What an advance came to: the run's state afterwards, or

    busy      somebody else holds the thread and carries it on
    drained   stopped between two supersteps, for another worker
    lost      the lease was taken over meanwhile
    refused   this code, or this host, cannot carry it on; postponed
    away      the store does not answer
    gone      there is no such run
"""

IDLE = Backoff()


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
        with draining.control() as control:
            return _carried_on(graphs[run.graph], journal, thread_id, control)
    except UnknownThread as gone:
        return "gone", one_line(gone)
    except StoreUnreachable as away:
        return "away", one_line(away)


def _carried_on(graph: DurableGraph, journal: Journal, thread_id: str, control: object) -> tuple[Outcome, str | None]:
    said: str | None = None
    try:
        graph.invoke(None, thread(thread_id), control=control)
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
    except (Refused, TryAgain) as refused:
        _postpone(journal, thread_id, said := one_line(refused))
        if isinstance(refused, Refused):
            return "refused", said
    except Exception as error:  # noqa: BLE001  # a node's own error: the run's row has it, and the next attempt is due when it says
        said = one_line(error)
    else:
        _postpone(journal, thread_id, None)
    run = journal.runs.get(thread_id)
    return run.state, said or run.reason


def _postpone(journal: Journal, thread_id: str, error: str | None) -> None:
    """Leave a run that is still due alone for a while: nothing could be done for it now, and asking at once again would be a loop."""
    with suppress(StoreUnreachable):
        journal.runs.postpone(thread_id, wait=IDLE.longest / 10, error=error)
