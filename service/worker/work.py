"""
A worker's life: it takes up what is ready, whose worker is gone, or what is overdue, until it is asked to end.

    start ──▶ working ──SIGTERM──▶ draining ──▶ ended
                 │                     │ a second SIGTERM, or too long
                 └──── SIGKILL ────────┴──▶ gone: leases expire, and other workers carry its runs on
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial

import structlog

from checkpointing import Journal
from checkpointing.errors import GraphRefused
from checkpointing.postgres import PostgresEngine
from graph import DurableGraph
from service.notices.posting import Posting, forget
from service.worker.advancing import Advanced, advance
from service.worker.company import Company
from service.worker.draining import Draining
from service.worker.jobs import Rhythm, process_jobs
from service.worker.polling import poll
from service.worker.signals import drained_by_signals

log = structlog.get_logger("counterfoil.worker")

DRAIN = timedelta(seconds=30)
"""How long a drain may take before the process ends all the same, where signals ask for it."""
POLL_S = 0.25
"""How often a worker asks a SQLite file for what is due, in seconds."""


def work(
    graphs: Sequence[DurableGraph],
    *,
    concurrency: int = 4,
    draining: Draining | None = None,
    told: Callable[[Advanced], None] | None = None,
    rhythm: Rhythm | None = None,
    poll_s: float = POLL_S,
    notices: Posting | None = None,
) -> None:
    """
    Carry the runs of *graphs* on, all of one journal and each of a name of its own, until draining is asked and the last one has stopped.

    Args:
        graphs: what this worker can carry on; runs of other graphs are left to other workers.
        concurrency: how many runs it carries on at a time.
        draining: what asks it to end; by default SIGTERM and Ctrl-C do, where it is called in the main thread, and else only the process's end.
        told: is called after each advance; by default it is logged.
        rhythm: how often it looks by itself, where it works with a queue.
        poll_s: how often it looks, in seconds, where it works without.
        notices: whom it tells what happens to approvals, and how; by default nobody, and what is noted is forgotten when it is old.

    Raises:
        GraphRefused: the graphs are of several journals, or two of one name.
    """
    if draining is None and threading.current_thread() is threading.main_thread():
        draining = Draining()
        with drained_by_signals(draining, within=DRAIN):
            work(
                graphs,
                concurrency=concurrency,
                draining=draining,
                told=told,
                rhythm=rhythm,
                poll_s=poll_s,
                notices=notices,
            )
        return
    journal, by_name = _checked([*graphs, *([notices.graph] if notices else ())])
    tell, end = told or logged, draining or Draining()
    look = notices.look if notices else partial(forget, journal)
    company = Company()

    def carry_on(thread_id: str) -> None:
        try:
            one = advance(by_name, journal, thread_id, end, company)
            tell(one)
            if one.run is not None and not end.asked:
                look()  # what it asked, or ended, is told at once
        except BaseException:  # nobody else hears of it in this thread: a fault of ours, or of who is told
            log.exception("advance_failed", thread=thread_id)

    for graph in graphs:
        if graph.caps.age is not None:
            journal.runs.hasten(graph.name, age=graph.caps.age)

    if isinstance(engine := journal.store.engine, PostgresEngine):
        process = partial(process_jobs, engine=engine, rhythm=rhythm or Rhythm(), look=look)
    else:
        process = partial(poll, every_s=poll_s, look=look)
    process(journal, graphs=list(by_name), carry_on=carry_on, draining=end, concurrency=concurrency)


def logged(one: Advanced) -> None:
    """Log one advance."""
    quiet = one.outcome in ("busy", "early", "gone")
    failed = one.outcome in ("dead", "lost", "refused", "away") or one.where is not None
    say = log.debug if quiet else log.warning if failed else log.info
    more: dict[str, object] = {"taken_over": True} if one.taken_over else {}
    if one.where:
        more["where"] = one.where
    if one.run and one.outcome == "admitted":
        more |= {"attempt": one.run.attempts, "next_at": one.run.due_at and one.run.due_at.isoformat()}
    say("run_advanced", thread=one.thread_id, outcome=one.outcome, said=one.said, ms=round(one.seconds * 1000), **more)


def _checked(graphs: Sequence[DurableGraph]) -> tuple[Journal, dict[str, DurableGraph]]:
    by_name = {graph.name: graph for graph in graphs}
    if len(by_name) < len(graphs) or not graphs:
        raise GraphRefused("a worker takes graphs of different names, at least one: durable(..., name=...)")
    journals = {id(graph.journal): graph.journal for graph in graphs}
    if len(journals) > 1:
        raise GraphRefused("the graphs of one worker are kept in one journal")
    return graphs[0].journal, by_name
