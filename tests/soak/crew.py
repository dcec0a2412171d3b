"""
Workers as processes that are killed and started again.

They are forked, which takes milliseconds, and look for dead peers every few seconds; or they are the installed command line, as it comes.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import structlog

from service.logs import write_logs
from service.worker.draining import Draining
from service.worker.jobs import Rhythm
from service.worker.signals import drained_by_signals
from service.worker.work import work
from tests.soak.faults import planted
from tests.soak.people import app_of
from tests.support.processes import start, until

QUICK = Rhythm(poll=0.25, sweep=1, heartbeat=0.5, stalled=3.0)
"""So that a short soak sees the jobs of killed workers taken for what they are."""
DRAIN_S = 30
STARTED = "worker_started"


@dataclass(frozen=True, slots=True)
class Worker:
    """
    One worker, from its start to its end.

    Attributes:
        log: What it says, one JSON document a line.
    """

    process: subprocess.Popen[bytes] | ForkServerProcess
    log: Path

    @property
    def pid(self) -> int:
        """The process's id."""
        assert self.process.pid is not None
        return self.process.pid

    @property
    def is_working(self) -> bool:
        """Whether it has begun to look for runs."""
        return STARTED in self.log.read_text()

    @property
    def said(self) -> list[dict[str, Any]]:
        """Every event so far; a killed worker's last one may be cut short."""
        whole, _, _ = self.log.read_text().rpartition("\n")
        return [json.loads(line) for line in whole.splitlines() if line.startswith("{")]

    @property
    def resident_mb(self) -> float:
        """How much memory it has now; 0 if it is gone."""
        try:
            status = Path(f"/proc/{self.pid}/status").read_text()
        except FileNotFoundError:
            return 0.0
        return next((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS")), 0.0)

    def process_ended_by(self, number: signal.Signals) -> bool:
        """Whether this signal ended it."""
        code = self.process.returncode if isinstance(self.process, subprocess.Popen) else self.process.exitcode
        return code == -number

    def end(self, number: signal.Signals) -> int:
        """End it with this signal, wait for it, and return its exit code."""
        os.kill(self.pid, number)
        if isinstance(self.process, subprocess.Popen):
            return self.process.wait(DRAIN_S * 2)
        self.process.join(DRAIN_S * 2)
        assert self.process.exitcode is not None, f"worker {self.pid} did not end"
        return self.process.exitcode


class Crew:
    """
    The workers of one journal.

    Attributes:
        workers: Those that live.
        killed: Those that were killed, in that order.
    """

    def __init__(self, count: int, begin: Callable[[Path], Any], folder: Path) -> None:
        """Have *count* workers, each begun by *begin*, which gets the file for what it says."""
        self.count = count
        self.workers: list[Worker] = []
        self.killed: list[Worker] = []
        self._begin = begin
        self._folder = folder

    def start(self) -> None:
        """Start as many as are missing."""
        while len(self.workers) < self.count:
            log = self._folder / f"worker-{len(self.workers) + len(self.killed):03}-{random.getrandbits(32):08x}.log"
            log.touch()
            self.workers.append(Worker(self._begin(log), log))

    def wait_working(self, timeout_s: float = 120) -> None:
        """Wait until all of them look for runs."""
        until(lambda: True if all(one.is_working for one in self.workers) else None, timeout_s)

    def kill_one(self, chance: random.Random, timeout_s: float = 120) -> Worker:
        """Kill one that is working, with SIGKILL, and start another in its place at once."""
        working = until(lambda: [one for one in self.workers if one.is_working] or None, timeout_s)
        victim = chance.choice(working)
        assert victim.end(signal.SIGKILL) == -signal.SIGKILL, f"worker {victim.pid} had ended: {victim.log.read_text()}"
        self.workers.remove(victim)
        self.killed.append(victim)
        self.start()
        return victim

    def replace_the_dead(self) -> None:
        """Start others in the place of those that were killed by what they carried on."""
        for one in [one for one in self.workers if one.process_ended_by(signal.SIGKILL)]:
            self.workers.remove(one)
            self.killed.append(one)
        self.start()

    def drain(self) -> list[int]:
        """End all of them with SIGTERM, and return their exit codes."""
        codes = []
        while self.workers:
            codes.append(self.workers.pop().end(signal.SIGTERM))
        return codes


@contextmanager
def crew_of(count: int, begin: Callable[[Path], Any], folder: Path) -> Iterator[Crew]:
    """Have a crew at work, and end whoever is left of it."""
    crew = Crew(count, begin, folder)
    try:
        crew.start()
        yield crew
    finally:
        for one in crew.workers:
            one.end(signal.SIGKILL)


def forked(settings: dict[str, str], folder: Path, concurrency: int, fault: str | None = None) -> Callable[[Path], Any]:
    """Return what forks a worker of the claims agent."""
    return lambda log: start(_work, settings, folder, str(log), concurrency, fault)


def launched(settings: dict[str, str], folder: Path, concurrency: int) -> Callable[[Path], Any]:
    """Return what starts the command `counterfoil worker`."""
    command = [sys.executable, "-P", "-m", "service.cli", "worker", "--concurrency", str(concurrency), "--json"]

    def begin(log: Path) -> subprocess.Popen[bytes]:
        with log.open("ab") as said:
            return subprocess.Popen(command, stderr=said, cwd=folder, env={**os.environ, **settings})

    return begin


def _work(settings: dict[str, str], folder: Path, log: str, concurrency: int, fault: str | None) -> None:
    with Path(log).open("ab") as said:
        os.dup2(said.fileno(), 2)
    write_logs(as_json=True)
    draining = Draining()
    with (
        planted(fault),
        drained_by_signals(draining, within=timedelta(seconds=DRAIN_S)),
        app_of(settings, folder) as app,
    ):
        structlog.get_logger("counterfoil.worker").info(STARTED)
        work([app.graph], concurrency=concurrency, draining=draining, rhythm=QUICK)
