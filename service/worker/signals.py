"""
Ending a worker from outside: the first SIGTERM or SIGINT drains it, within a bounded time; a second one ends it at once.

Ending at once is what a crash is: nothing is lost, and what was under way is carried on by another worker when its lease is over, one attempt poorer.

The handler itself only writes a byte: it runs between any two instructions of the main thread, which may hold a lock that draining needs. A thread of
its own reads the byte and does the rest.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType

import structlog

from service.worker.draining import Draining

log = structlog.get_logger("counterfoil.worker")

ENDING = (signal.SIGTERM, signal.SIGINT)
CUT_OFF = 75
"""The exit code of a worker whose runs did not reach a checkpoint in time; `EX_TEMPFAIL` in sysexits.h: another worker carries on."""


@contextmanager
def drained_by_signals(draining: Draining, *, within: timedelta) -> Iterator[None]:
    """Drain at the first signal, end at the second, or when draining takes longer than *within*. For the main thread only."""
    before = {number: signal.getsignal(number) for number in ENDING}
    heard, told = os.pipe()
    asked = False

    def ask(number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            os._exit(128 + number)
        asked = True
        os.write(told, b"!")

    watch = threading.Thread(target=_drain, args=(heard, draining, within), name="drain", daemon=True)
    watch.start()
    for number in ENDING:
        signal.signal(number, ask)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(told)
        watch.join()
        os.close(heard)


def _drain(heard: int, draining: Draining, within: timedelta) -> None:
    """Drain once there is a byte to read, and end the process if the pipe is not closed in time."""
    if not os.read(heard, 1):
        return
    log.info("drain_asked", within_s=within.total_seconds())
    draining.ask()
    if not select.select([heard], [], [], within.total_seconds())[0]:
        log.error("drain_cut_off", after_s=within.total_seconds())
        os._exit(CUT_OFF)
