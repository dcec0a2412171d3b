"""
A sandbox in a process of its own, started and ended from Python: for tests, the demo and notebooks.

    with SandboxProcess(Path("sandbox.db")) as sandbox:
        control = SandboxControl(sandbox.url)
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Self

from tools.sandbox.client import SandboxControl

LISTENING = "sandbox listening on "


class SandboxDidNotStart(RuntimeError):
    """The process ended instead of listening; the message is what it said."""


class SandboxProcess:
    """
    A sandbox over *database*. Started again after its end it listens at the same address; it ends when its starter does.

    Attributes:
        url: Where it listens; empty before the first start.
    """

    def __init__(self, database: Path, port: int = 0) -> None:
        self.url = ""
        self._database = database
        self._port = port
        self._process: subprocess.Popen[str] | None = None
        self._said: IO[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    @property
    def control(self) -> SandboxControl:
        """The control client of the running sandbox."""
        return SandboxControl(self.url)

    def start(self) -> str:
        """Start it and return its URL once it takes connections; `SandboxDidNotStart` if it ends first."""
        # -P: a folder named `tools` where the caller stands must not be taken for ours.
        command = [sys.executable, "-P", "-m", "tools.sandbox"]
        command += ["--port", str(self._port), "--database", str(self._database), "--until-stdin-ends"]
        # A file, not a pipe: nobody reads while it runs, and a full pipe would stop it.
        self._said = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115  # closed at its end
        self._process = subprocess.Popen(  # noqa: S603  # our own module, by the interpreter that runs
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, text=True
        )
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line.startswith(LISTENING):
            _, said = self.stop()
            raise SandboxDidNotStart(f"{line}{said}".strip())
        self.url = line.removeprefix(LISTENING).strip()
        self._port = int(self.url.rpartition(":")[2])
        return self.url

    def stop(self) -> tuple[int, str]:
        """End it with SIGTERM; return its exit code and all it said since the start, `(0, "")` if it does not run."""
        return self._end(signal.SIGTERM)

    def kill(self) -> tuple[int, str]:
        """End it with SIGKILL, as a power cut would."""
        return self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> tuple[int, str]:
        process, said = self._process, self._said
        if process is None or said is None:
            return 0, ""
        self._process = self._said = None
        process.send_signal(number)
        try:
            out, _ = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        with said:
            said.seek(0)
            return process.returncode, out + said.read()
