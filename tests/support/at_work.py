"""
A worker in a process of its own, over the small claim.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from checkpointing import Journal, open_journal
from graph import DurableGraph, thread
from service.worker.jobs import Rhythm
from service.worker.work import work
from tests.support.bank import Bank
from tests.support.points import die_at
from tests.support.processes import start, until
from tests.support.small_claim import small_claim

LEASE = timedelta(seconds=2)
QUICK = Rhythm(poll=0.2, sweep=1, heartbeat=1.0, stalled=3.0)


def one_worker(url: str, folder: Path, point: str | None = None, options: dict[str, Any] | None = None) -> None:
    """Be a worker until killed; at *point* by oneself."""
    if point:
        die_at(point)
    with open_journal(url, lease=LEASE, artefacts=str(folder / "artefacts"), **(options or {})) as journal:
        work([small_claim(journal, folder)], rhythm=QUICK)


@contextmanager
def workers(count: int, url: str, folder: Path, **options: Any) -> Iterator[list[ForkServerProcess]]:
    """Have workers at work inside; *options* are `open_journal`'s."""
    processes = [start(one_worker, url, folder, None, options) for _ in range(count)]
    try:
        yield processes
        assert [one for one in processes if one.exitcode not in (None, -9)] == []
    finally:
        for one in processes:
            one.kill()
            one.join(30)


def submit(graph: DurableGraph, count: int) -> list[str]:
    """Submit claims for workers and return their threads."""
    threads = [f"claim-{number}" for number in range(count)]
    for one in threads:
        graph.submit({"claim_id": one}, thread(one))
    return threads


def all_in(journal: Journal, state: str, count: int) -> None:
    """Wait until so many runs are in that state."""
    until(lambda: True if len(journal.runs.list(state=state)) == count else None, timeout_s=90)  # type: ignore[arg-type]


def approve_all(journal: Journal) -> None:
    """Decide all that waits."""
    for one in journal.approvals.pending():
        journal.approvals.decide(one.id, {"type": "approve"}, principal="adjuster-17")


def paid_once_each(journal: Journal, folder: Path, threads: list[str]) -> None:
    """Every run is done and its claim was paid once."""
    assert sorted(call["claim_id"] for call in Bank(folder / "bank").executed) == sorted(threads)
    assert {one.state for one in journal.effects.list()} == {"settled"}
    assert list(journal.audit.verify()) == []
