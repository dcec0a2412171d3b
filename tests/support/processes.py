"""
Starting our own processes, and waiting for what they do.

They are forked from a server that has the packages imported and nothing opened, so that starting one takes milliseconds; each is a process of its
own, with its own connections, and dies of SIGKILL like any other.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable
from multiprocessing.context import ForkServerContext, ForkServerProcess
from typing import TypeVar

T = TypeVar("T")


def context() -> ForkServerContext:
    """Return where processes, barriers and events of one test come from."""
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(["tests.support.small_claim", "tests.support.real_claim"])
    return found


def start(target: Callable[..., None], *arguments: object) -> ForkServerProcess:
    """Start a process that calls *target*."""
    process = context().Process(target=target, args=arguments, daemon=True)
    process.start()
    return process


def finish(process: ForkServerProcess, timeout_s: float = 60) -> None:
    """Wait for a process that is to end well."""
    process.join(timeout_s)
    assert process.exitcode == 0, f"{process} ended with {process.exitcode}"


def killed(process: ForkServerProcess, timeout_s: float = 60) -> None:
    """Wait for a process that is to be killed."""
    process.join(timeout_s)
    assert process.exitcode == -signal.SIGKILL, f"{process} ended with {process.exitcode}"


def until(look: Callable[[], T | None], timeout_s: float = 30) -> T:
    """Look again and again until there is something, and return it."""
    patience = time.monotonic() + timeout_s
    while time.monotonic() < patience:
        if (found := look()) is not None:
            return found
        time.sleep(0.02)
    raise AssertionError(f"nothing came of {look} within {timeout_s} s")
