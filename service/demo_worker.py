"""
The demo's workers: each a process of its own that runs the command line, as on another machine.

What a worker says goes to a file, so that a demo that fails can show it. It is killed with SIGKILL: it gets no chance to tidy up.
"""

from __future__ import annotations

import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from checkpointing.errors import CounterfoilError

PATIENCE_S = 45.0
"""How long the demo waits for anything; on a quiet machine nothing takes more than a few seconds."""


class DemoFailed(CounterfoilError):
    """
    The demo did not come to its end.

    Attributes:
        log: What the process concerned said, or empty.
    """

    def __init__(self, message: str, log: str = "") -> None:
        """Say what failed, and show the log of the process concerned."""
        super().__init__(message)
        self.log = log


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker process and what it says."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        """The process's id; after its end, the one it had."""
        return self.process.pid

    @property
    def killed(self) -> bool:
        """Whether it ended by SIGKILL."""
        return self.process.returncode == -signal.SIGKILL

    def end(self) -> None:
        """
        Wait for its clean end.

        Raises:
            DemoFailed: it ended otherwise, or not in time.
        """
        try:
            code = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise DemoFailed(f"{self.name} did not end within {PATIENCE_S:.0f} s", self.said()) from None
        if code != 0:
            raise DemoFailed(f"{self.name} ended with exit code {code}", self.said())

    def kill(self) -> None:
        """End it with SIGKILL, and wait until the system has taken it away."""
        self.process.kill()
        self.process.wait()

    def said(self) -> str:
        """Return what it said so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")
