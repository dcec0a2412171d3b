"""
Starting our own processes, and waiting for what they do.

They are forked from a server that has the packages imported and nothing opened, so that starting one takes milliseconds; each is a process of its
own, with its own connections, and dies of SIGKILL like any other.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import TypeVar
from unittest.mock import patch

T = TypeVar("T")


PRELOADED = [
    "service.cli.app",
    "tests.properties.acts",
    "tests.support.real_claim",
    "tests.support.sandboxes",
    "tests.support.small_claim",
]
"""What is imported before anything is forked."""


def context() -> ForkServerContext:
    """Return where processes, barriers and events of one test come from."""
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(PRELOADED)
    return found


def start(target: Callable[..., None], *arguments: object) -> ForkServerProcess:
    """Start a process that calls *target*."""
    process = context().Process(target=target, args=arguments, daemon=True)
    with _nameless_main():
        process.start()
    return process


@contextmanager
def _nameless_main() -> Iterator[None]:
    """
    Hide where `__main__` came from, or each process imports it before it begins: the whole test runner, a third of a second.

    Python 3.11 means to import it once, in the server, and does not, because it looks under a wrong name (`multiprocessing/forkserver.py`).
    """
    main = sys.modules["__main__"]
    with patch.object(main, "__spec__", None), patch.object(main, "__file__", None, create=True):
        yield


def finish(process: ForkServerProcess, timeout_s: float = 60) -> None:
    """Wait for a process that is to end well."""
    process.join(timeout_s)
    assert process.exitcode == 0, f"{process} ended with {process.exitcode}"


def killed(process: ForkServerProcess, timeout_s: float = 60) -> None:
    """Wait for a process that is to be killed."""
    process.join(timeout_s)
    assert process.exitcode == -signal.SIGKILL, f"{process} ended with {process.exitcode}"


def stopped(process: ForkServerProcess) -> bool | None:
    """Tell whether a process stands still (SIGSTOP) or has ended; `None` while it is at work."""
    if process.exitcode is not None:
        return False
    with suppress(FileNotFoundError, ProcessLookupError):
        state = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        return True if state == "T" else None
    return None


def until(look: Callable[[], T | None], timeout_s: float = 30, *, every_s: float = 0.01) -> T:
    """Look again and again until there is something, and return it."""
    patience = time.monotonic() + timeout_s
    while time.monotonic() < patience:
        if (found := look()) is not None:
            return found
        time.sleep(every_s)
    raise AssertionError(f"nothing came of {look} within {timeout_s} s")
