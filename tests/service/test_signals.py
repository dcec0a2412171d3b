"""What a signal does to a process that is to be drained, whatever it is doing at that moment."""

from __future__ import annotations

import os
import signal
import threading
from datetime import timedelta

from service.worker import Draining
from service.worker.signals import drained_by_signals
from tests.support.processes import finish, start

ROUNDS = 50


def looks_all_the_time() -> None:
    """Ask again and again whether it is to end; the signal comes while the answer is being looked up, with the lock on it held."""
    for _ in range(ROUNDS):
        draining = Draining()
        with drained_by_signals(draining, within=timedelta(seconds=3)):
            sending = threading.Timer(0.001, os.kill, (os.getpid(), signal.SIGTERM))
            sending.start()
            while not draining.wait(0):
                pass
            sending.join()


def test_a_signal_that_comes_while_a_worker_looks_whether_it_came_is_heard() -> None:
    finish(start(looks_all_the_time))


def ends_before_the_limit() -> None:
    """End, and live on for longer than the drain was allowed to take."""
    draining = Draining()
    with drained_by_signals(draining, within=timedelta(milliseconds=50)):
        os.kill(os.getpid(), signal.SIGTERM)
        draining.wait(5)
    assert not threading.Event().wait(0.2)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_what_has_ended_in_time_is_not_cut_off_later() -> None:
    finish(start(ends_before_the_limit))
