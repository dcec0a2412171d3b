"""
A queue that builds up while no worker is there, and is drained: none lost, none twice, and its lag is seen.

Several processes submit, and everything that is shared among them is submitted by each at once.

    COUNTERFOIL_BACKLOG=10000     how many
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from checkpointing import Journal, open_journal
from tests.soak.crew import Crew, crew_of
from tests.soak.errand import NAME, drain, submit, thread_of
from tests.soak.queue import Lag, lag, tables
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


@dataclass
class Watched:
    """What was seen from outside while the workers drained the queue."""

    lags: list[Lag] = field(default_factory=list)
    memory_mb: list[list[float]] = field(default_factory=list)


def test_what_was_queued_while_no_worker_was_there_is_drained_once_each(url: str, engine: str, tmp_path: Path) -> None:
    with open_journal(url, artefacts=str(tmp_path)) as journal:
        submitting = timed(lambda: submit_all(url, tmp_path))
        queued, before = lag(journal, NAME), tables(journal)
        with crew_of(WORKERS, lambda _: start(drain, url, tmp_path, CONCURRENCY), tmp_path) as crew:
            seen = Watched()
            draining = timed(lambda: watch_drained(journal, crew, seen))
            codes = crew.drain()

        bank = Bank(tmp_path / "bank")
        runs = journal.runs.list(limit=BACKLOG * 2)
        sys.stderr.write(report(engine, submitting, draining, queued, before, seen, tables(journal)))
        assert Counter(int(call["claim_id"]) for call in bank.executed) == Counter(range(BACKLOG))
        assert len(bank.calls) == BACKLOG
        assert {run.thread_id: run.state for run in runs} == {thread_of(number): "done" for number in range(BACKLOG)}
        assert queued.runs == BACKLOG
        assert 0 < queued.oldest_ms < max(one.oldest_ms for one in seen.lags)
        assert [one.runs for one in seen.lags] == sorted((one.runs for one in seen.lags), reverse=True)
        assert lag(journal, NAME) == Lag(0, 0)
        assert codes == [0] * WORKERS
        if before:
            assert before["todo"] == BACKLOG
            assert [tables(journal)[name] for name in ("todo", "doing", "failed")] == [0, 0, 0]
            assert tables(journal)["events"] <= 2


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


def watch_drained(journal: Journal, crew: Crew, seen: Watched) -> None:
    """Wait until nothing is due, and note how far behind the workers are meanwhile."""

    def look() -> bool | None:
        now = lag(journal, NAME)
        seen.lags.append(now)
        seen.memory_mb.append([one.resident_mb for one in crew.workers])
        return True if now.runs == 0 else None

    until(look, PATIENCE_S, every_s=0.2)


def timed(work: Callable[[], None]) -> float:
    """Do it, and return how long it took, in seconds."""
    began = time.monotonic()
    work()
    return time.monotonic() - began


def report(
    engine: str,
    submitting: float,
    draining: float,
    queued: Lag,
    before: dict[str, int],
    seen: Watched,
    after: dict[str, int],
) -> str:
    """Say how it went, for people."""
    looks = [*zip(seen.lags, seen.memory_mb, strict=True)]
    some = [looks[len(looks) * number // LOOKS] for number in range(LOOKS)] + looks[-1:]
    lines = [
        f"engine: {engine}, {BACKLOG} errands, {SUBMITTERS} submitting, {WORKERS} workers x {CONCURRENCY}",
        f"submitted in {submitting:.1f} s, {BACKLOG / submitting:.0f} runs/s; queued {queued}",
        f"drained in {draining:.1f} s, {BACKLOG / draining:.1f} runs/s",
        *(
            f"  due {one.runs}, oldest {one.oldest_ms / 1000:.1f} s, workers' memory MB {[*map(round, mb)]}"
            for one, mb in some
        ),
        f"queue before: {before or 'none'}; after: {after or 'none'}",
    ]
    return "\n" + "\n".join(lines) + "\n"
