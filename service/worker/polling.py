"""
Working without a queue: ask the journal for what is due, again and again, and carry it on in threads. What workers on one SQLite file do.

Several of them may see the same run; the lease lets one in, and the others go on to the next.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

import structlog

from checkpointing import Journal
from checkpointing.errors import StoreUnreachable
from graph.advance import one_line
from service.worker.draining import Draining

log = structlog.get_logger("counterfoil.worker")

AHEAD = 4
"""How many due runs are looked at for each free place, so that workers side by side seldom meet at one."""


def poll(
    journal: Journal,
    graphs: Sequence[str],
    carry_on: Callable[[str], object],
    draining: Draining,
    *,
    concurrency: int,
    every_s: float,
    look: Callable[[], object],
) -> None:
    """Carry due runs of *graphs* on, up to *concurrency* at a time, until draining is asked and the last one has stopped; *look* each time, too."""
    under_way: dict[str, Future[object]] = {}
    with ThreadPoolExecutor(concurrency, thread_name_prefix="run") as pool:
        while not draining.asked:
            look()
            under_way = {thread_id: one for thread_id, one in under_way.items() if not one.done()}
            for thread_id in _due(journal, graphs, under_way, free=concurrency - len(under_way)):
                under_way[thread_id] = pool.submit(carry_on, thread_id)
            if len(under_way) < concurrency:
                draining.wait(every_s)
            else:
                wait(under_way.values(), timeout=every_s, return_when=FIRST_COMPLETED)


def _due(journal: Journal, graphs: Sequence[str], under_way: dict[str, Future[object]], *, free: int) -> list[str]:
    found: list[str] = []
    try:
        for graph in graphs:
            found += journal.runs.due(graph, limit=AHEAD * free + len(under_way)) if free else []
    except StoreUnreachable as away:  # the next look finds it
        log.warning("journal_away", error=one_line(away))
    due = [thread_id for thread_id in found if thread_id not in under_way]
    random.shuffle(due)
    return due[:free]
