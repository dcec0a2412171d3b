"""The command `worker`."""

from __future__ import annotations

import os
import sys
import threading
from datetime import timedelta
from typing import Annotated

import structlog
import typer

from service.cli.exits import ending
from service.cli.options import settings_of
from service.logs import write_logs
from service.own_graphs import load_graph
from service.wiring import claims, notices_of, opened
from service.worker.draining import Draining
from service.worker.signals import drained_by_signals
from service.worker.work import work

log = structlog.get_logger("counterfoil.worker")


@ending
def worker(
    context: typer.Context,
    concurrency: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="How many runs at a time.")] = 4,
    drain_s: Annotated[
        float,
        typer.Option(
            "--drain", metavar="SECONDS", min=0, help="How long a drain may take before the process ends all the same."
        ),
    ] = 30,
    graphs: Annotated[
        list[str] | None,
        typer.Option(
            "--graph", metavar="MODULE:FUNCTION", help="A graph of your own, in place of the claims graph; repeatable."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Log one JSON document a line.")] = False,
) -> None:
    """
    Carry runs on: what was submitted, decided, left behind by a worker that died, or is overdue.

    Start as many as you like. On SQLite they share one file on one machine; on Postgres any number of machines. It logs to stderr and runs
    until it is asked to end.

    SIGTERM (or Ctrl-C) drains it: every run finishes the step it is in and is given back, at the cost of no attempt; then the process ends,
    with exit code 0. A second one ends it at once (exit code 143, after Ctrl-C 130), and so does a drain that takes longer than --drain (exit code
    75): that is a crash, which loses nothing and costs each run that was under way one attempt. A worker that is still starting ends at once.

    With --graph it carries the runs of your own graphs on: the function takes the open journal and returns what `durable()` made, each under a
    name of its own.

    Example: counterfoil worker --concurrency 8

    Example: counterfoil worker --graph my_agents.orders:make_graph
    """
    write_logs(as_json=as_json)
    settings, draining = settings_of(context), Draining()
    makers = [load_graph(name) for name in graphs or ()]
    with drained_by_signals(draining, within=timedelta(seconds=drain_s)), opened(settings) as journal:
        mine = [make(journal) for make in makers] or [claims(settings, journal).graph]
        log.info("worker_started", journal=settings.place, graphs=[one.name for one in mine], concurrency=concurrency)
        work(mine, concurrency=concurrency, draining=draining, notices=notices_of(settings, journal))
        log.info("worker_ended")
    leave()


def leave(code: int = 0) -> None:
    """End the process, with this exit code, if a run has left a thread behind, which Python would wait for: a drain is bounded."""
    if left := [one.name for one in threading.enumerate() if not one.daemon and one is not threading.main_thread()]:
        log.warning("threads_left", names=left)
        sys.stderr.flush()
        os._exit(code)
