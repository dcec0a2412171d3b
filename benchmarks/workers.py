"""
Real workers in processes of their own: ready when they have run one run each, then told to begin, and drained at the end.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from multiprocessing.synchronize import Event
from typing import Any

from benchmarks.claim import measured_claim
from checkpointing import open_journal
from graph import thread
from service.worker import Draining, work
from service.worker.advancing import Advanced

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["benchmarks.workers"])
PATIENCE_S = 600.0


class Workers:
    """
    Some workers of one journal.

    Attributes:
        pids: Their processes.
    """

    def __init__(self, url: str, count: int, *, concurrency: int, asks: bool, model_s: float) -> None:
        """Start *count* of them and wait until each has run a run of its own: what is loaded once is loaded then."""
        self._begin, self._end = FORKS.Event(), FORKS.Event()
        ends: list[tuple[Connection, Connection]] = [FORKS.Pipe(duplex=False) for _ in range(count)]
        self._told = [mine for mine, _ in ends]
        options: dict[str, Any] = {"concurrency": concurrency, "asks": asks, "model_s": model_s}
        self._processes: list[ForkServerProcess] = []
        for number, (_, theirs) in enumerate(ends):
            process = FORKS.Process(target=_one, args=(url, number, theirs, self._begin, self._end), kwargs=options)
            process.start()
            theirs.close()
            self._processes.append(process)
        self.pids = [int(process.pid or 0) for process in self._processes]
        for told in self._told:
            assert told.poll(PATIENCE_S), "a worker did not become ready"
            assert told.recv() == "ready"

    def begin(self) -> None:
        """Have them all carry runs on from now."""
        self._begin.set()

    def ended(self) -> Iterator[tuple[str, str, float]]:
        """Yield the thread of every advance, what it came to, and when (`time.monotonic`, which all processes of a machine share)."""
        while True:
            heard = wait(self._told, timeout=PATIENCE_S)
            assert heard, f"nothing was carried on for {PATIENCE_S:g} s"
            for one in heard:
                assert isinstance(one, Connection)
                yield one.recv()

    def stop(self) -> None:
        """Drain them and wait until they have ended."""
        self._begin.set()
        self._end.set()
        for process in self._processes:
            process.join(PATIENCE_S)


@contextmanager
def workers(url: str, count: int, *, concurrency: int = 1, asks: bool = False, model_s: float) -> Iterator[Workers]:
    """Run *count* workers for as long as the block does."""
    some = Workers(url, count, concurrency=concurrency, asks=asks, model_s=model_s)
    try:
        yield some
    finally:
        some.stop()


def _one(url: str, number: int, told: Connection, begin: Event, end: Event, **options: Any) -> None:
    draining, lock = Draining(), threading.Lock()
    concurrency, asks, model_s = options["concurrency"], options["asks"], options["model_s"]

    def tell(one: Advanced) -> None:
        with lock:
            told.send((one.thread_id, one.outcome, time.monotonic()))

    def drain() -> None:
        end.wait()
        draining.ask()

    with open_journal(url) as journal:
        graph = measured_claim(journal, model_s=model_s, asks=asks)
        graph.invoke({"claim_id": "warm"}, thread(f"warm-{os.getpid()}-{number}"))
        told.send("ready")
        begin.wait()
        threading.Thread(target=drain, daemon=True).start()
        work([graph], concurrency=concurrency, draining=draining, told=tell)
