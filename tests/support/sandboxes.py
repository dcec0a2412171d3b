"""
A sandbox a test, started in milliseconds: a process of its own, forked from a server that has it imported.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from tests.support.processes import context
from tools.sandbox import SandboxControl
from tools.sandbox.server import serve

START_S = 60


class ForkedSandbox:
    """
    A sandbox over *database*; started again after its end it listens at the same address.

    Attributes:
        url: Where it listens.
    """

    def __init__(self, database: Path, host: str = "127.0.0.1") -> None:
        """Start it; it listens at *host*."""
        self.url = ""
        self.database = database
        self._host = host
        self._port = 0
        self._process: ForkServerProcess | None = None
        self.start()

    @property
    def control(self) -> SandboxControl:
        """The control client of the running sandbox."""
        return SandboxControl(self.url)

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        here, there = context().Pipe(duplex=False)
        self._process = context().Process(
            target=_serve, args=(self.database, self._host, self._port, there), daemon=True
        )
        self._process.start()
        there.close()
        assert here.poll(START_S), f"the sandbox over {self.database} does not listen"
        self.url = str(here.recv())
        self._port = int(self.url.rpartition(":")[2])
        here.close()

    def stop(self) -> None:
        """End it cleanly; its file is closed afterwards."""
        if self._process is not None:
            self._process.terminate()
            self._process.join(START_S)
            assert self._process.exitcode == 0
            self._process = None


@contextmanager
def forked_sandbox(database: Path, host: str = "127.0.0.1") -> Iterator[ForkedSandbox]:
    """Run a sandbox and end it."""
    sandbox = ForkedSandbox(database, host)
    try:
        yield sandbox
    finally:
        sandbox.stop()


def _serve(database: Path, host: str, port: int, ready: Connection) -> None:
    signal.signal(
        signal.SIGTERM, signal.SIG_IGN
    )  # until it listens: an end before that would leave the starter waiting
    serve(host, port, database, ready.send)
