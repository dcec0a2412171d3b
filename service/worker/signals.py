"""
Ending a worker from outside: the first SIGTERM or SIGINT drains it, within a bounded time; a second one ends it at once.

Ending at once is what a crash is: nothing is lost, and what was under way is carried on by another worker when its lease is over, one attempt poorer.
"""

from __future__ import annotations

import os
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

    def ask(number: int, _frame: FrameType | None) -> None:
        if draining.asked:
            os._exit(128 + number)
        limit = threading.Timer(within.total_seconds(), _cut_off, (within,))
        limit.daemon = True
        limit.start()
        draining.ask()

    for number in ENDING:
        signal.signal(number, ask)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _cut_off(within: timedelta) -> None:
    log.error("drain_cut_off", after_s=within.total_seconds())
    os._exit(CUT_OFF)
