"""A worker that is asked to end while Postgres is down: it ends in time, and what was under way is another worker's afterwards."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from checkpointing import Journal, open_journal
from service.throwaway_postgres import throwaway_postgres
from service.worker.signals import CUT_OFF
from tests.storage.test_postgres_restarted import Server
from tests.support.bank import Bank
from tests.support.points import signal_at
from tests.support.processes import start, stopped, until
from tests.support.small_claim import LEASE, THREAD, act, small_claim
from tests.support.workers import a_worker, carry_on, works

IDLE, UNDER_WAY = timedelta(seconds=20), timedelta(seconds=2)
"""How long a drain may take, where nothing is under way and where a tool is that does not answer."""


@pytest.fixture
def server() -> Iterator[Server]:
    with TemporaryDirectory(prefix="counterfoil-") as folder, throwaway_postgres(Path(folder)) as url:
        yield Server(Path(folder), url)


NOTICED_S = 3
"""After so long an idle worker has noticed, and waits for the server to come back."""


def registered(journal: Journal) -> bool:
    """Tell whether a worker listens to the queue."""
    with journal.store.reading() as tx:
        return tx.one("select 1 as one from procrastinate_workers") is not None


def drained_within(url: str, folder: Path, within: timedelta) -> None:
    """Be a worker whose drain may take so long."""
    carry_on(url, folder, small_claim, within=within)


def stops_before_a_sweep(url: str, folder: Path) -> None:
    """Be a worker that stands still before it looks for runs without a job."""
    signal_at("before queue.sweep", signal.SIGSTOP)
    carry_on(url, folder, small_claim, within=IDLE)


def test_a_sweep_that_waits_for_the_server_does_not_hold_the_end_up(server: Server, tmp_path: Path) -> None:
    with open_journal(server.url, lease=LEASE):
        process = start(stops_before_a_sweep, server.url, tmp_path)
        until(lambda: stopped(process))
        server.stop()
        assert process.pid
        os.kill(process.pid, signal.SIGTERM)
        os.kill(process.pid, signal.SIGCONT)
        process.join(30)

        server.start()
        assert process.exitcode == 0


@pytest.mark.parametrize("under_way", [False, True])
def test_it_ends_in_time_and_loses_nothing(server: Server, tmp_path: Path, under_way: bool) -> None:
    with open_journal(server.url, lease=LEASE) as journal:
        graph = small_claim(journal, tmp_path)
        act(graph, "submit")
        bank = Bank(tmp_path / "bank")
        within = UNDER_WAY if under_way else IDLE
        process = start(drained_within, server.url, tmp_path, within)
        [asked] = journal.approvals.pending(thread_id=THREAD)
        if under_way:
            bank.become("slow")
            journal.approvals.decide(asked.id, {"type": "approve"}, principal="adjuster-17")
            until(lambda: True if bank.calls else None)
        else:
            until(lambda: True if registered(journal) else None)
        server.stop()
        if not under_way:
            assert not threading.Event().wait(NOTICED_S)
        began = time.monotonic()
        process.terminate()
        process.join(30)
        took = time.monotonic() - began
        server.start()

        assert process.exitcode == (CUT_OFF if under_way else 0)
        assert took < within.total_seconds() + 5
        if not under_way:
            journal.approvals.decide(asked.id, {"type": "approve"}, principal="adjuster-17")
        bank.become("")
        with a_worker(works, server.url, tmp_path):
            until(lambda: True if journal.runs.get(THREAD).state == "done" else None)
        assert len(bank.executed) == 1
        assert list(journal.audit.verify()) == []
