"""
Advancing one thread, as a worker does it: nothing that a run may come to ends the worker, and the journal says what it came to.

What happens when the process dies is what `graph/advance.py` says of any call; a worker adds nothing that is stored but the postponing of a run that
it could do nothing for.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
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
from service.worker.company import Company, is_suspect
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
        where: File, line and function that raised it, where a node did.
        run: Its row afterwards, where it was carried on.
        taken_over: It took the run over from a worker that died.
        seconds: How long it took.
    """

    thread_id: str
    outcome: Outcome
    said: str | None = None
    where: str | None = None
    run: Run | None = None
    taken_over: bool = False
    seconds: float = 0.0


def advance(
    graphs: Mapping[str, DurableGraph],
    journal: Journal,
    thread_id: str,
    draining: Draining,
    company: Company | None = None,
) -> Advanced:
    """
    Carry the run on as far as it goes, with the graph it belongs to, and say what it came to; no error comes out but a fault of ours.

    In the *company* of the process's other runs, where there are any.
    """
    began = time.monotonic()
    found = _advance(graphs, journal, thread_id, draining, company or Company())
    return replace(found, seconds=time.monotonic() - began)


def _advance(
    graphs: Mapping[str, DurableGraph], journal: Journal, thread_id: str, draining: Draining, company: Company
) -> Advanced:
    try:
        run = journal.runs.get(thread_id)
        if run.graph not in graphs:
            return Advanced(thread_id, "refused", f"this worker has no graph {run.graph!r}")
        if _is_early(run, journal):
            return Advanced(thread_id, "early", run.error)
        with company.place(alone=is_suspect(run, journal)), draining.control() as control:
            return _carried_on(graphs[run.graph], journal, run, control)
    except UnknownThread as gone:
        return Advanced(thread_id, "gone", one_line(gone))
    except StoreUnreachable as away:
        return Advanced(thread_id, "away", one_line(away))


def _is_early(run: Run, journal: Journal) -> bool:
    """Tell whether a run waits for its next attempt: a job that came twice, or by hand, must not hurry it."""
    if run.state != "admitted" or run.due_at is None or run.due_at <= run.updated_at:
        return False
    return to_ms(run.due_at) > journal.store.now_ms()


def _carried_on(graph: DurableGraph, journal: Journal, seen: Run, control: object) -> Advanced:
    said, where = None, None
    try:
        if graph.needs_a_loop:
            asyncio.run(graph.ainvoke(None, thread(seen.thread_id), control=control))
        else:
            graph.invoke(None, thread(seen.thread_id), control=control)
    except RunBusy as busy:
        return Advanced(seen.thread_id, "busy", one_line(busy))
    except Stop as lost:
        return Advanced(seen.thread_id, "lost", one_line(lost))
    except StoreUnreachable:
        raise
    except GraphDrained:
        return Advanced(seen.thread_id, "drained")
    except (EffectInDoubt, RunDead) as ended:
        said = one_line(ended)
    except Refused as refused:
        journal.runs.postpone(seen, wait=LEFT_ALONE, error=one_line(refused))
        return Advanced(seen.thread_id, "refused", one_line(refused))
    except BaseException as error:  # noqa: BLE001  # a node's own, say: the run's row has it, and when its next attempt is due
        said, where = one_line(error), _where(error)
    run = journal.runs.get(seen.thread_id)
    if run.due_at == seen.due_at:
        # Nothing could be done for what is due still, and asking at once again would be a loop.
        journal.runs.postpone(seen, wait=LEFT_ALONE, error=said)
    return Advanced(
        seen.thread_id, run.state, said or run.reason, where=where, run=run, taken_over=run.resumes > seen.resumes
    )


def _where(error: BaseException) -> str | None:
    """Return the innermost place of an error, which is the node's, or what it called; never what stood in its variables."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return None
    last = frames[-1]
    return f"{Path(last.filename).name}:{last.lineno} in {last.name}"
