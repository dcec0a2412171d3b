"""A worker as a process of its own, which may be told where to die; and what a test sees of the queue."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from checkpointing import Journal, open_journal
from checkpointing.clock import Clock, system_clock
from graph import DurableGraph
from service.worker import Draining, work
from service.worker.jobs import Rhythm
from service.worker.signals import drained_by_signals
from tests.support.bank import Bank
from tests.support.points import die_after, die_at
from tests.support.processes import finish, start, until
from tests.support.small_claim import LEASE, small_claim

RHYTHM = Rhythm(poll=0.1, sweep=1, heartbeat=0.2, stalled=1.0)
"""Short, so that what a dead worker left is found within two seconds."""

POLL_S = 0.05
DRAIN = timedelta(seconds=20)

JOBS = """
select id, status::text as status, queueing_lock, queue_name, scheduled_at, attempts from procrastinate_jobs
where task_name = :task order by id
"""

Make = Callable[[Journal, Path], DurableGraph]


def works(url: str, folder: Path, point: str | None = None, nth: int = 1, make: Make = small_claim) -> None:
    """Be a worker until SIGTERM, and die at *point* if one is given."""
    if point == "executed":
        die_after(Bank, "execute")
    elif point:
        die_at(point, nth=nth)
    carry_on(url, folder, make)


def works_later(url: str, folder: Path, later: timedelta, make: Make = small_claim) -> None:
    """Be a worker whose clock is *later*, until SIGTERM."""
    carry_on(url, folder, make, clock=lambda: system_clock() + later)


def carry_on(url: str, folder: Path, make: Make, *, clock: Clock | None = None, within: timedelta = DRAIN) -> None:
    """Work until SIGTERM."""
    draining = Draining()
    with drained_by_signals(draining, within=within), open_journal(url, lease=LEASE, clock=clock) as journal:
        work([make(journal, folder)], concurrency=2, draining=draining, rhythm=RHYTHM, poll_s=POLL_S)


def hears(process: ForkServerProcess, number: signal.Signals) -> bool:
    """Tell whether the process has a handler for the signal by now; before that the signal ends it."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    [caught] = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:")]
    return bool(int(caught, 16) >> (number - 1) & 1)


@contextmanager
def a_worker(target: Callable[..., None], *arguments: object) -> Iterator[ForkServerProcess]:
    """Have a worker while the block runs; at its end it is drained, and ends well."""
    process = start(target, *arguments)
    try:
        yield process
        until(lambda: True if hears(process, signal.SIGTERM) else None)
        process.terminate()
        finish(process)
    finally:
        process.kill()


def jobs(journal: Journal, *, task: str = "counterfoil.advance") -> list[dict[str, Any]]:
    """Return the jobs of the queue, oldest first; none where there is no queue."""
    if not journal.store.dialect.dispatches:
        return []
    with journal.store.reading() as tx:
        return tx.all(JOBS, task=task)


def change_jobs(journal: Journal, sql: str, **values: Any) -> list[dict[str, Any]]:
    """Do something to the queue by hand."""
    with journal.store.transaction("test.jobs") as tx:
        return tx.all(sql, **values)
