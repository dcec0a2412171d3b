"""
`counterfoil worker` asked to end, by SIGTERM and SIGINT: what is under way is finished to the step and given back, and nothing is lost.

The leases last half a minute, so whoever goes on at once does so because they were given back.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.context import ForkServerProcess

import pytest

from checkpointing import Run, standing
from checkpointing.leases import thread_lease
from graph import thread
from service.cli.app import main
from service.settings import load_settings
from service.submission import accept, read_submission
from service.wiring import App, wired
from tests.service.conftest import Filed
from tests.support.points import after
from tests.support.processes import start, until
from tools.sandbox import SandboxControl

Make = Callable[..., Filed]
SOON_S = 5
"""How long a worker with nothing under way may take to end, on a machine that is busy with other tests."""

ENDED_AT_ONCE = 128 + signal.SIGTERM
CUT_OFF = 75


@pytest.fixture
def app(settings: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    """What the commands work with, in this process."""
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    with wired(load_settings()) as opened:
        yield opened


def command(settings: dict[str, str], while_starting: signal.Signals | None, arguments: tuple[str, ...]) -> None:
    """Be a command in a process of its own, and get a signal while the journal is opened if one is given."""
    os.environ.update(settings)
    sys.argv = ["counterfoil", "worker", *arguments]
    if number := while_starting:
        after(standing, "found", lambda: os.kill(os.getpid(), number))
    main()


@contextmanager
def worker(
    settings: dict[str, str], *arguments: str, while_starting: signal.Signals | None = None
) -> Iterator[ForkServerProcess]:
    """Run a worker; it is killed at the end if it has not ended."""
    process = start(command, settings, while_starting, arguments)
    try:
        yield process
    finally:
        process.kill()
        process.join(SOON_S)


def tell(process: ForkServerProcess, number: signal.Signals = signal.SIGTERM) -> float:
    """Send a signal, and return when."""
    assert process.pid is not None
    os.kill(process.pid, number)
    return time.monotonic()


def ends(process: ForkServerProcess, within_s: float = 30) -> int | None:
    process.join(within_s)
    return process.exitcode


def submit(app: App, claim: Filed) -> None:
    """File a claim and leave it to the workers."""
    submission = read_submission(claim.path)
    accept(app, submission, claim.thread_id)
    app.graph.submit(submission.input, thread(claim.thread_id, principal="intake"))


def becomes(app: App, claim: Filed, *states: str) -> Run:
    def there() -> Run | None:
        run = app.journal.runs.get(claim.thread_id)
        return run if run.state in states else None

    return until(there)


def approve(app: App, claim: Filed) -> None:
    """Record a decision and leave the rest to the workers."""
    [asked] = app.journal.approvals.pending(thread_id=claim.thread_id)
    app.journal.approvals.decide(asked.id, {"type": "approve"}, principal="adjuster-17")


def check_given_back(app: App, claim: Filed) -> None:
    """It is ready, nobody holds it, and it has its attempts and no takeover."""
    run = app.journal.runs.get(claim.thread_id)
    assert (run.state, run.attempts, run.resumes, run.error) == ("admitted", 0, 0, None)
    assert app.journal.leases.holder(thread_lease(claim.thread_id)) is None
    assert claim.thread_id in app.journal.runs.due(app.graph.name, limit=99)


def check_paid_once(app: App, control: SandboxControl, claim: Filed) -> None:
    assert len(control.payments(claim.claim_id)) == 1
    assert len(control.messages(claim.claim_id)) == 1
    assert list(app.journal.audit.verify()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_worker_ends_at_once(app: App, settings: dict[str, str], filed: Make, number: signal.Signals) -> None:
    submit(app, claim := filed())
    with worker(settings) as process:
        becomes(app, claim, "parked")
        asked = tell(process, number)

        assert ends(process) == 0
        assert time.monotonic() - asked < SOON_S


def test_a_worker_that_is_asked_while_it_starts_takes_up_nothing(
    app: App, settings: dict[str, str], filed: Make
) -> None:
    submit(app, claim := filed())
    with worker(settings, while_starting=signal.SIGTERM) as process:
        assert ends(process) == 0

    assert app.journal.runs.get(claim.thread_id).state == "admitted"
    assert [one.event for one in app.journal.audit.entries(claim.thread_id)] == ["run.admit"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_step_under_way_is_finished_and_another_worker_goes_on_with_the_next(
    app: App, settings: dict[str, str], filed: Make, control: SandboxControl, number: signal.Signals
) -> None:
    submit(app, claim := filed())
    with worker(settings) as first:
        becomes(app, claim, "parked")
        control.fault("transfers", "hold_after", match=claim.claim_id)
        approve(app, claim)
        control.wait_held()
        tell(first, number)
        control.release()
        assert ends(first) == 0

    check_given_back(app, claim)
    assert app.graph.get_state(thread(claim.thread_id)).next == ("notify",)
    with worker(settings) as second:
        run = becomes(app, claim, "done")
        assert (run.resumes, run.error) == (0, None)
        check_paid_once(app, control, claim)
        tell(second)
        assert ends(second) == 0


def test_a_decision_that_is_recorded_while_a_worker_drains_is_not_lost(
    app: App, settings: dict[str, str], filed: Make, control: SandboxControl
) -> None:
    submit(app, decided := filed())
    with worker(settings) as first:
        becomes(app, decided, "parked")
        busy = filed()
        control.fault("claims", "hold_before", method="GET")
        submit(app, busy)
        control.wait_held()
        tell(first)
        approve(app, decided)
        control.release()
        assert ends(first) == 0

    assert app.journal.runs.get(decided.thread_id).state in ("admitted", "done")
    check_given_back(app, busy)
    with worker(settings):
        becomes(app, decided, "done")
        becomes(app, busy, "parked")
    check_paid_once(app, control, decided)


def test_every_run_under_way_is_given_back(
    app: App, settings: dict[str, str], filed: Make, control: SandboxControl
) -> None:
    """And the one that nobody has begun waits as before."""
    claims = [filed() for _ in range(7)]
    for claim in claims:
        submit(app, claim)
    control.fault("claims", "hold_before", method="GET", times=6)
    with worker(settings, "--concurrency", "6") as first:
        control.wait_held(6)
        tell(first)
        control.release()
        assert ends(first) == 0

    for claim in claims:
        check_given_back(app, claim)
    with worker(settings, "--concurrency", "6"):
        for claim in claims:
            assert becomes(app, claim, "parked").resumes == 0


@pytest.mark.parametrize(
    ("arguments", "again", "code"), [((), True, ENDED_AT_ONCE), (("--drain", "0.2"), False, CUT_OFF)]
)
def test_a_worker_that_ends_in_the_middle_of_a_step_loses_nothing_and_repeats_nothing(
    app: App,
    settings: dict[str, str],
    filed: Make,
    control: SandboxControl,
    arguments: tuple[str, ...],
    again: bool,
    code: int,
) -> None:
    """By a second signal, or because the step takes longer than the drain may: it is a crash, whose attempt counts."""
    short = settings | {"COUNTERFOIL_LEASE_SECONDS": "1"}
    submit(app, claim := filed())
    with worker(short, *arguments) as first:
        becomes(app, claim, "parked")
        control.fault("transfers", "hold_after", match=claim.claim_id)
        approve(app, claim)
        control.wait_held()
        asked = tell(first)
        if again:
            until(lambda: tell(first) and None if first.is_alive() else True)
        assert ends(first) == code
        assert time.monotonic() - asked < SOON_S
    control.release()

    assert app.journal.runs.get(claim.thread_id).state == "running"
    with worker(short):
        assert becomes(app, claim, "done").resumes == 1
    check_paid_once(app, control, claim)
