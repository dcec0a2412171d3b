"""Starting our own processes and waiting for what they do."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

ROOT = Path(__file__).parents[2]


def start(module: str, *arguments: str) -> subprocess.Popen[str]:
    """Start `python -m module arguments` with its output captured."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-m", module, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def finish(process: subprocess.Popen[str], timeout_s: float = 60) -> str:
    """Wait for a process that is to end well, and return what it printed."""
    out, err = process.communicate(timeout=timeout_s)
    assert process.returncode == 0, f"exit {process.returncode}\n{out}\n{err}"
    return out


def killed(process: subprocess.Popen[str], timeout_s: float = 60) -> None:
    """Wait for a process that is to be killed."""
    out, err = process.communicate(timeout=timeout_s)
    assert process.returncode == -signal.SIGKILL, f"exit {process.returncode}\n{out}\n{err}"


def until(look: Callable[[], T | None], timeout_s: float = 30) -> T:
    """Look again and again until there is something, and return it."""
    patience = time.monotonic() + timeout_s
    while time.monotonic() < patience:
        if (found := look()) is not None:
            return found
        time.sleep(0.02)
    raise AssertionError(f"nothing came of {look} within {timeout_s} s")
