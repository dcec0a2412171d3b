"""
A parked run is a row, and nothing in a worker: beside many of them a worker needs what it needs beside few.

The worker is a process of its own that wakes some of them, sweeps, and ends. `just parked` measures the same beside 100,000.
"""

from __future__ import annotations

import json
import os
import resource
import tracemalloc
from pathlib import Path

from benchmarks.claim import NAME, measured_claim
from benchmarks.copies import copy_of, copy_thread
from checkpointing import open_journal
from graph import thread
from service.worker import Draining, work
from service.worker.advancing import Advanced
from tests.support.processes import finish, start

FEW, MANY = 100, 5000
WOKEN = 5
ORIGINAL = "original-claim"
PYTHON_MAY_GROW = 500_000
"""Bytes by which Python's own peak may differ: garbage that was not collected yet, and far less than a hundred bytes a parked run."""
PROCESS_MAY_GROW_KB = 12_000
"""SQLite's page cache has a fixed size that a hundred runs do not fill."""


def test_a_worker_needs_no_more_memory_beside_many_parked_runs_than_beside_few(url: str, tmp_path: Path) -> None:
    park(url, tmp_path, 1, FEW)
    few = peaks(url, tmp_path, range(1, WOKEN + 1))
    park(url, tmp_path, FEW + 1, MANY)
    many = peaks(url, tmp_path, range(WOKEN + 1, 2 * WOKEN + 1))

    assert many["python"] - few["python"] < PYTHON_MAY_GROW, (few, many)
    assert many["process_kb"] - few["process_kb"] < PROCESS_MAY_GROW_KB, (few, many)


def park(url: str, folder: Path, first: int, last: int) -> None:
    """Make parked runs of one that really parked."""
    with open_journal(url, artefacts=str(folder / "artefacts")) as journal:
        measured_claim(journal, model_s=0, asks=True).invoke({"claim_id": "0042"}, thread(ORIGINAL))
        copy_thread(journal.store, ORIGINAL, first=first, last=last)


def peaks(url: str, folder: Path, numbers: range) -> dict[str, int]:
    """Decide some of them, have a worker in a process of its own carry these on, and return what it needed at most."""
    threads = [copy_of(ORIGINAL, number) for number in numbers]
    with open_journal(url, artefacts=str(folder / "artefacts")) as journal:
        for thread_id in threads:
            [asked] = journal.approvals.pending(thread_id=thread_id)
            journal.approvals.decide(asked.id, {"type": "approve"}, principal="adjuster-17")
    finish(start(worker, url, folder, len(threads)), timeout_s=240)
    found: dict[str, int] = json.loads((folder / "peaks.json").read_text())
    return found


def worker(url: str, folder: Path, wanted: int) -> None:
    """Carry on what is due and sweep; the first run is no part of the peak, because what is loaded once is loaded then."""
    draining, left = Draining(), [wanted]

    def told(one: Advanced) -> None:
        if one.outcome == "done":
            left[0] -= 1
        if left[0] == wanted - 1:
            tracemalloc.start()
        if left[0] == 0:
            draining.ask()

    os.chdir(folder)
    with open_journal(url) as journal:
        work([measured_claim(journal, model_s=0, asks=True)], concurrency=1, draining=draining, told=told)
        assert journal.runs.due(NAME, limit=1000) == ()
        if journal.store.dialect.dispatches:
            assert journal.runs.enqueue_due(NAME) == 0
    measured = {
        "python": tracemalloc.get_traced_memory()[1],
        "process_kb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }
    (folder / "peaks.json").write_text(json.dumps(measured))
