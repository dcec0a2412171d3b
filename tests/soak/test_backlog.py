"""
A queue that builds up while no worker is there, and is drained: none lost, none twice, and its lag is seen.

Several processes submit, and what is shared among them is submitted by each at once.

    COUNTERFOIL_BACKLOG=10000     how many
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from checkpointing import Journal, open_journal
from checkpointing.queue import Queue, queue
from tests.service.conftest import environment, in_process
from tests.soak.crew import Crew, crew_of
from tests.soak.errand import NAME, drain, submit, thread_of
from tests.soak.queue import tables
from tests.support.bank import Bank
from tests.support.processes import context, finish, start, until

BACKLOG = int(os.environ.get("COUNTERFOIL_BACKLOG", "300"))
SUBMITTERS = 3
SHARED_EVERY = 10
"""Every tenth errand is submitted by all of them."""
WORKERS = 2
CONCURRENCY = 8
PATIENCE_S = 120 + BACKLOG
LOOKS = 8
"""How many of the looks are printed."""
NOBODY = "http://127.0.0.1:9"


@dataclass(frozen=True, slots=True)
class Look:
    """
    What is seen from outside while the workers drain the queue.

    Attributes:
        memory_mb: What each worker has in memory.
    """

    queue: Queue
    memory_mb: list[float]

    @property
    def is_last(self) -> bool:
        """Whether nothing waits and nothing is under way."""
        return self.queue.ready == self.queue.held == self.queue.later == 0

    def __str__(self) -> str:
        memory = ", ".join(f"{mb:.0f}" for mb in self.memory_mb)
        return f"ready {self.queue.ready}, lag {self.queue.lag.total_seconds():.1f} s, workers' memory {memory} MB"


def test_what_was_queued_while_no_worker_was_there_is_drained_once_each(url: str, engine: str, tmp_path: Path) -> None:
    bank = Bank(tmp_path / "bank")
    with open_journal(url, artefacts=str(tmp_path)) as journal:
        submitting_s = timed(lambda: submit_all(url, tmp_path))
        shown = in_process(environment(url, NOBODY, tmp_path))("queue", "--json").document
        before, waiting = tables(journal), Look(queue(journal.store), [])
        looks: list[Look] = []
        with crew_of(WORKERS, lambda _: start(drain, url, tmp_path, CONCURRENCY), tmp_path) as crew:
            draining_s = timed(lambda: watch_drained(journal, crew, looks))
            codes = crew.drain()
        after, runs = tables(journal), journal.runs.list(limit=BACKLOG * 2)

    some = [looks[len(looks) * number // LOOKS] for number in range(LOOKS)]
    for line in (
        f"\nengine: {engine}, {BACKLOG} errands, {SUBMITTERS} submitting, {WORKERS} workers x {CONCURRENCY}",
        f"submitted in {submitting_s:.1f} s, {BACKLOG / submitting_s:.0f} runs/s; {waiting}",
        f"drained in {draining_s:.1f} s, {BACKLOG / draining_s:.1f} runs/s; calls {len(bank.calls)}",
        *(f"  {look}" for look in [*some, looks[-1]]),
        f"tables of the queue before: {before or 'none'}; after: {after or 'none'}",
    ):
        sys.stderr.write(f"{line}\n")
    assert Counter(int(call["claim_id"]) for call in bank.executed) == Counter(range(BACKLOG))
    assert len(bank.calls) == BACKLOG
    assert {run.thread_id: run.state for run in runs} == {thread_of(number): "done" for number in range(BACKLOG)}
    assert [shown["ready"], waiting.queue.ready, [one["graph"] for one in shown["graphs"]]] == [
        BACKLOG,
        BACKLOG,
        [NAME],
    ]
    lags = [shown["lag_s"], *(look.queue.lag.total_seconds() for look in [waiting, *looks])]
    assert 0 < lags[0] <= lags[1] < max(lags)
    assert lags[-1] == 0
    assert [look.queue.ready for look in looks] == sorted((look.queue.ready for look in looks), reverse=True)
    assert codes == [0] * WORKERS
    if before:
        assert before["todo"] == BACKLOG
        assert [after[name] for name in ("todo", "doing", "failed")] == [0, 0, 0]
        assert after["events"] <= 2 * after["jobs"]


def submit_all(url: str, folder: Path) -> None:
    """Submit everything from several processes at once."""
    together = context().Barrier(SUBMITTERS)
    offices = [start(submit, url, folder, share(number), together) for number in range(SUBMITTERS)]
    for office in offices:
        finish(office, PATIENCE_S)


def share(submitter: int) -> list[str]:
    """Return what one process submits: what all of them do, first, and what is its own; some of it twice."""
    shared = list(range(0, BACKLOG, SHARED_EVERY))
    own = [number for number in range(BACKLOG) if number % SUBMITTERS == submitter]
    return [*map(str, [*shared, *own, *random.Random(submitter).sample(own, len(own) // SHARED_EVERY)])]


def watch_drained(journal: Journal, crew: Crew, looks: list[Look]) -> None:
    """Wait until nothing is due, and look again and again meanwhile."""

    def look() -> bool | None:
        looks.append(Look(queue(journal.store), [one.resident_mb for one in crew.workers]))
        return True if looks[-1].is_last else None

    until(look, PATIENCE_S, every_s=0.2)


def timed(work: Callable[[], None]) -> float:
    """Do it, and return how long it took, in seconds."""
    began = time.monotonic()
    work()
    return time.monotonic() - began
