"""
One ticket and one message, whatever dies between the services' execution and our record of it; neither service knows keys.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from checkpointing import Journal
from graph import thread
from tests.support.clock import MovingClock
from tests.support.errands import LEASE, THREAD, Outside, errands, outside_at, run_errands
from tests.support.processes import killed, start
from tools.receivers import SLACK
from tools.sandbox import SandboxControl, SandboxProcess
from tools.tickets import CHECKED

LATER = timedelta(minutes=2)
"""Past the lease and past the settle delays."""


@pytest.fixture
def outside(sandbox: SandboxProcess) -> Outside:
    return outside_at(sandbox.url)


def made(control: SandboxControl, outside: Outside) -> tuple[int, int]:
    """How many tickets and messages there are of this test."""
    tickets = [ticket for ticket in control.tickets() if ticket["subject"] == outside.subject]
    return len(tickets), len(control.chat(outside.channel))


def finished(opened: Callable[..., Journal], clock: MovingClock, outside: Outside) -> dict[str, Any]:
    """Have another process, later, run the thread to its end, and check the record."""
    clock.move(LATER)
    journal = opened(clock=clock, lease=LEASE)
    done = errands(journal, outside).invoke(None, thread(THREAD))
    assert journal.runs.get(THREAD).state == "done"
    assert [record.state for record in journal.effects.list()] == ["settled", "settled"]
    assert list(journal.audit.verify()) == []
    return done


@pytest.mark.parametrize(
    ("point", "nth", "before"),
    [
        ("after effect.claim", 1, (0, 0)),
        ("before effect.settle", 1, (1, 0)),
        ("after effect.settle", 1, (1, 0)),
        ("after effect.claim", 2, (1, 0)),
        ("before effect.settle", 2, (1, 1)),
        ("after effect.settle", 2, (1, 1)),
        ("before call open_ticket", 1, (0, 0)),
        ("after call open_ticket", 1, (1, 0)),
        ("before call post_message", 1, (1, 0)),
        ("after call post_message", 1, (1, 1)),
    ],
)
def test_killed_around_the_execution(
    *,
    url: str,
    opened: Callable[..., Journal],
    clock: MovingClock,
    control: SandboxControl,
    outside: Outside,
    point: str,
    nth: int,
    before: tuple[int, int],
) -> None:
    killed(start(run_errands, url, outside, clock, point, nth))
    assert made(control, outside) == before

    done = finished(opened, clock, outside)
    assert made(control, outside) == (1, 1)
    [message] = control.chat(outside.channel)
    assert done["message"]["ts"] == message["ts"]
    assert message["text"] == f"Ticket {done['ticket']['id']} is open."


@pytest.mark.parametrize(
    ("executed", "point", "before"),
    [
        ("after call open_ticket", "before call open_ticket look-up", (1, 0)),
        ("after call open_ticket", "after call open_ticket look-up", (1, 0)),
        ("after call post_message", "before call post_message look-up", (1, 1)),
        ("after call post_message", "after call post_message look-up", (1, 1)),
    ],
)
def test_killed_around_the_look_up_after_a_kill(
    *,
    url: str,
    opened: Callable[..., Journal],
    clock: MovingClock,
    control: SandboxControl,
    outside: Outside,
    executed: str,
    point: str,
    before: tuple[int, int],
) -> None:
    """One process dies when the service has executed, a second one when it looks that up, a third one ends it."""
    killed(start(run_errands, url, outside, clock, executed))
    clock.move(LATER)
    killed(start(run_errands, url, outside, clock, point))
    assert made(control, outside) == before

    finished(opened, clock, outside)
    assert made(control, outside) == (1, 1)


@pytest.mark.parametrize(("at", "before"), [("tickets", (1, 0)), ("chat", (1, 1))])
def test_killed_while_the_answer_was_on_its_way(
    *,
    url: str,
    opened: Callable[..., Journal],
    clock: MovingClock,
    control: SandboxControl,
    outside: Outside,
    at: str,
    before: tuple[int, int],
) -> None:
    """The service has executed and has yet to answer; the worker is killed from outside."""
    control.fault(at, "hold_after")
    worker = start(run_errands, url, outside, clock)
    control.wait_held()
    assert made(control, outside) == before
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    killed(worker)
    control.release()

    finished(opened, clock, outside)
    assert made(control, outside) == (1, 1)


@pytest.mark.parametrize("kind", ["drop_before", "drop_after", "error_500", "error_500_after", "rate_limit"])
@pytest.mark.parametrize("at", ["tickets", "chat"])
def test_a_lost_answer_is_looked_up_and_not_repeated(
    *, journal: Journal, control: SandboxControl, outside: Outside, at: str, kind: str
) -> None:
    control.fault(at, kind)
    quick = {"settle_delay": timedelta(0), "backoff": timedelta(0)}
    graph = errands(journal, outside, desk=replace(CHECKED, **quick), chat=replace(SLACK, **quick))

    done = asyncio.run(graph.ainvoke({}, thread(THREAD))) if at == "chat" else graph.invoke({}, thread(THREAD))
    assert made(control, outside) == (1, 1)
    assert done["message"]["ts"] == control.chat(outside.channel)[0]["ts"]
