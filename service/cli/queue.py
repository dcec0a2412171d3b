"""The command `queue`."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer
from rich.text import Text

from checkpointing.queue import Queue, queue
from graph.drawing import duration
from service.cli import show
from service.cli.exits import ending, print_json
from service.cli.options import AsJson, settings_of
from service.wiring import opened


@ending
def queue_command(
    context: typer.Context,
    watch_s: Annotated[
        float | None,
        typer.Option("--watch", metavar="SECONDS", min=0.1, help="Look again and again, so many seconds apart."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """
    Show what waits for the workers, and for how long the first has been waiting.

    Ready is a run that was submitted, decided, left behind or is overdue, and that nobody holds. The lag is how long the first of them has
    been ready: if it grows, start more workers. Held is what a worker, or a caller, is carrying on. A run that failed is left alone for a while
    before its next attempt.

    Example: counterfoil queue --watch 2
    """
    with opened(settings_of(context), must_exist=True) as journal:
        while True:
            found = queue(journal.store)
            if as_json:
                print_json(document(found))
            else:
                show.stdout().print(Text(told(found)), soft_wrap=True)
            if watch_s is None:
                return
            time.sleep(watch_s)


def document(found: Queue) -> dict[str, Any]:
    """Return the queue for a program; durations in seconds."""
    return {
        "ready": found.ready,
        "lag_s": found.lag.total_seconds(),
        "later": found.later,
        "held": found.held,
        "graphs": [{"graph": one.graph, "ready": one.ready, "lag_s": one.lag.total_seconds()} for one in found.graphs],
        "jobs": found.jobs,
        "workers": found.workers,
    }


def told(found: Queue) -> str:
    """Return the queue in one line."""
    lag = f", the first for {duration(found.lag)}" if found.ready else ""
    parts = [f"{found.ready} ready{lag}", f"{found.held} held", f"{found.later} left alone for a while"]
    if found.workers is not None:
        parts.append(f"{found.workers} workers alive")
    return "; ".join(parts)
