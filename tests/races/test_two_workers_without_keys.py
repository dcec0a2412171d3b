"""
Two workers at a service without keys: what check and act can keep apart, and what it cannot.

    first    claim ── check ── act ── settle         standing still (SIGSTOP) at one of the gaps
    second                                           its lease ends: claim, look up, act, settle, done

A worker that stands still before its check finds the other's ticket when it goes on. One that stands still between check and act, or
whose call is still on its way, acts although another one did: no service without keys can tell, and this is the documented limit.
The record stays one: the first outcome that was settled.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.context import ForkServerProcess
from typing import Any

import pytest

from checkpointing import Journal
from checkpointing.errors import RunBusy
from graph import thread
from tests.support.clock import MovingClock
from tests.support.errands import LEASE, THREAD, Outside, errands, outside_at, run_errands
from tests.support.processes import start, stopped, until
from tools.sandbox import SandboxControl, SandboxProcess


@pytest.fixture
def outside(sandbox: SandboxProcess) -> Outside:
    return outside_at(sandbox.url)


@pytest.fixture
def second(opened: Callable[..., Journal], clock: MovingClock, outside: Outside) -> Callable[[], tuple[Journal, Any]]:
    """Runs the thread to its end in this process, after the first worker's lease and the settle delay."""

    def run() -> tuple[Journal, Any]:
        clock.move(timedelta(minutes=2))
        journal = opened(clock=clock, lease=LEASE)
        return journal, errands(journal, outside).invoke(None, thread(THREAD))

    return run


def stops(process: ForkServerProcess) -> int:
    """Wait until the process stands still; return its id."""
    assert until(lambda: stopped(process))
    assert process.pid is not None
    return process.pid


def stop(process: ForkServerProcess) -> int:
    assert process.pid is not None
    os.kill(process.pid, signal.SIGSTOP)
    return stops(process)


def tickets(control: SandboxControl, outside: Outside) -> list[dict[str, Any]]:
    return [ticket for ticket in control.tickets() if ticket["subject"] == outside.subject]


def goes_on(process: ForkServerProcess, pid: int) -> None:
    """Let the first worker go on; it ends because it lost its lease."""
    os.kill(pid, signal.SIGCONT)
    process.join(60)
    assert process.exitcode == 1


def recorded_once(journal: Journal, done: dict[str, Any]) -> None:
    """The journal has the second worker's outcomes, and the first one changed nothing."""
    outcomes = {record.effect: record.outcome for record in journal.effects.list()}
    assert outcomes == {"open_ticket": done["ticket"], "post_message": done["message"]}
    assert journal.runs.get(THREAD).state == "done"
    assert list(journal.audit.verify()) == []


def test_who_stood_still_before_the_check_opens_no_second_ticket(
    url: str, clock: MovingClock, control: SandboxControl, outside: Outside, second: Callable[[], tuple[Journal, Any]]
) -> None:
    first = start(run_errands, url, outside, clock, "after effect.claim", 1, True)
    pid = stops(first)
    journal, done = second()
    goes_on(first, pid)

    assert [ticket["id"] for ticket in tickets(control, outside)] == [done["ticket"]["id"]]
    assert len(control.chat(outside.channel)) == 1
    recorded_once(journal, done)


def test_who_stood_still_between_check_and_act_opens_a_second_ticket(
    url: str, clock: MovingClock, control: SandboxControl, outside: Outside, second: Callable[[], tuple[Journal, Any]]
) -> None:
    """The limit of check and act: the answer to the check was right when it was given."""
    control.fault("tickets", "hold_after", method="GET")
    first = start(run_errands, url, outside, clock)
    control.wait_held()
    pid = stop(first)
    journal, done = second()
    control.release()
    goes_on(first, pid)

    mine, late = tickets(control, outside)
    assert mine["external_id"] == late["external_id"], "who reconciles finds both by the key"
    assert done["ticket"]["id"] == mine["id"]
    recorded_once(journal, done)


@pytest.mark.parametrize("at", ["tickets", "chat"])
def test_a_call_that_arrives_after_another_worker_acted_is_executed_too(
    *,
    url: str,
    clock: MovingClock,
    control: SandboxControl,
    outside: Outside,
    second: Callable[[], tuple[Journal, Any]],
    at: str,
) -> None:
    """A call that is under way for longer than the settle delay: nobody could have seen it."""
    control.fault(at, "hold_before")
    first = start(run_errands, url, outside, clock)
    control.wait_held()
    pid = stop(first)
    journal, done = second()
    control.release()
    goes_on(first, pid)

    made = tickets(control, outside) if at == "tickets" else control.chat(outside.channel)
    assert len(made) == 2
    recorded_once(journal, done)


def test_who_stood_still_before_a_post_posts_a_second_message(
    url: str, clock: MovingClock, control: SandboxControl, outside: Outside, second: Callable[[], tuple[Journal, Any]]
) -> None:
    """A chat is not looked through before every post, only in doubt; so its gap is the whole way from the claim."""
    first = start(run_errands, url, outside, clock, "after effect.claim", 2, True)
    pid = stops(first)
    journal, done = second()
    goes_on(first, pid)

    assert len(tickets(control, outside)) == 1
    assert len(control.chat(outside.channel)) == 2
    assert done["message"]["ts"] == control.chat(outside.channel)[0]["ts"]
    recorded_once(journal, done)


def test_while_the_first_worker_is_at_work_a_second_does_not_begin(
    url: str, opened: Callable[..., Journal], clock: MovingClock, control: SandboxControl, outside: Outside
) -> None:
    """Its lease lives: nobody looks up, nobody calls."""
    control.fault("tickets", "hold_before")
    first = start(run_errands, url, outside, clock)
    control.wait_held()
    asked = len(control.calls())
    with pytest.raises(RunBusy):
        errands(opened(clock=clock, lease=LEASE), outside).invoke(None, thread(THREAD))
    assert len(control.calls()) == asked
    control.release()
    first.join(60)

    assert first.exitcode == 0
    assert (len(tickets(control, outside)), len(control.chat(outside.channel))) == (1, 1)
