"""
A worker's host is cut off from the database in the middle of runs, and healed later: another host takes over within the lease, everything is paid once,
and the worker that was cut off stops those runs by itself and goes on with others.
"""

from __future__ import annotations

import time

import pytest

from service.worker.signals import CUT_OFF
from tests.hosts.network import Cut, Host
from tests.hosts.site import LEASE_S, SWEEP_S, Site, Worker
from tests.support.processes import until

SLOW_S = 4.0
"""What a busy machine may add until a worker has got its job."""
PATIENCE_S = 120
"""How long anything may take that is not measured."""


def held_early(site: Site) -> str:
    """Submit a run that stands still in a step which has claimed nothing yet, and return its claim."""
    site.control.fault("claims", "hold_before", method="GET")
    claim_id = site.submit()
    site.control.wait_held(1, PATIENCE_S)
    return claim_id


def held_paying(site: Site, *, with_others: int = 0) -> str:
    """Submit a run whose money has moved and whose answer is held back, and return its claim."""
    site.control.fault("transfers", "hold_after")
    claim_id = site.submit()
    site.control.wait_held(with_others + 1, PATIENCE_S)
    return claim_id


def taken_over(site: Site, claim_id: str, host: Host) -> int:
    """Wait until *host* has begun the run, and return when that was, in milliseconds, by the database's clock."""

    def begun() -> int | None:
        entries = site.entries(claim_id, host, "run.start")
        return entries[0].at_ms if entries else None

    return until(begun, PATIENCE_S)


def done(site: Site, *claims: str) -> None:
    """Wait until the runs are done, without another take-over."""
    for claim_id in claims:
        until(lambda one=claim_id: True if site.run(one).state == "done" else None, PATIENCE_S)


def stopped(worker: Worker, *claims: str) -> None:
    """Wait until the worker says by itself that it lost the runs, or that it could write nothing more."""
    for claim_id in claims:
        until(lambda one=claim_id: True if worker.came_to(one) else None, PATIENCE_S)
        assert set(worker.came_to(claim_id)) <= {"lost", "away"}


@pytest.mark.parametrize("how", ["silent", "refused"])
def test_another_host_takes_over_and_the_one_that_was_cut_off_stops_by_itself(site: Site, how: Cut) -> None:
    a, b = site.net.hosts
    cut_off = site.start(a)
    claims = (held_early(site), held_paying(site, with_others=1))
    other = site.start(b)

    cut_ms, cut = site.app.journal.store.now_ms(), time.monotonic()
    site.net.cut(a, how)
    took = {claim_id: (taken_over(site, claim_id, b) - cut_ms) / 1000 for claim_id in claims}
    print(f"{how}: taken over after", *(f"{seconds:.2f} s" for seconds in took.values()))  # noqa: T201  # with -s
    site.control.release()
    done(site, *claims)
    ended = {claim_id: (site.entries(claim_id), site.checkpoints(claim_id)) for claim_id in claims}

    site.net.heal(a)
    stopped(cut_off, *claims)
    assert other.drained(PATIENCE_S) == 0
    later = site.submit()
    done(site, later)

    assert all(seconds <= LEASE_S + SWEEP_S + SLOW_S for seconds in took.values()), (took, time.monotonic() - cut)
    for claim_id in claims:
        assert (site.run(claim_id).resumes, len(site.control.payments(claim_id))) == (1, 1)
        assert (site.entries(claim_id), site.checkpoints(claim_id)) == ended[claim_id]
    assert cut_off.alive
    assert {one.actor.partition(":")[0] for one in site.entries(later, event="run.start")} == {a.name}
    assert len(site.control.payments(later)) == 1
    assert cut_off.drained(PATIENCE_S) == 0
    assert list(site.app.journal.audit.verify()) == []


def test_a_transaction_that_was_cut_in_the_middle_keeps_nobody_out(site: Site) -> None:
    """The server has the locks of a session whose client is gone, and hears nothing of it; the lease's row is one of them."""
    a, b = site.net.hosts
    cut_off = site.start(a)
    claim_id = held_early(site)
    site.start(b)

    with site.blocked_in_a_transaction(a, "insert into audit "):
        site.control.release()
    cut_ms = site.app.journal.store.now_ms()
    took_s = (taken_over(site, claim_id, b) - cut_ms) / 1000
    print(f"in a transaction: taken over after {took_s:.2f} s")  # noqa: T201  # with -s
    done(site, claim_id)
    site.net.heal(a)
    stopped(cut_off, claim_id)

    assert took_s <= LEASE_S + SWEEP_S + SLOW_S
    assert len(site.control.payments(claim_id)) == 1
    assert [one.event for one in site.entries(claim_id, a)] == ["run.start"]
    assert list(site.app.journal.audit.verify()) == []


def test_a_worker_that_stays_cut_off_gives_its_run_up_and_takes_it_up_again_when_healed(site: Site) -> None:
    """Nobody tells it that its packets are lost: its connections have to find out."""
    a, _ = site.net.hosts
    worker = site.start(a, impatient=True)
    claim_id = held_early(site)

    site.net.cut(a, "silent")
    site.control.release()
    until(lambda: True if worker.came_to(claim_id) else None, PATIENCE_S)
    until(lambda: True if worker.events("queue_away") else None, PATIENCE_S)
    said, alive = worker.came_to(claim_id), worker.alive
    site.net.heal(a)
    done(site, claim_id)

    assert (said, alive) == (["away"], True)
    assert len(site.control.payments(claim_id)) == 1
    assert worker.drained(PATIENCE_S) == 0
    assert list(site.app.journal.audit.verify()) == []


def test_a_healed_worker_takes_other_runs_up_though_a_call_of_before_the_cut_still_lasts(site: Site) -> None:
    a, _ = site.net.hosts
    worker = site.start(a, impatient=True)
    lasting = held_paying(site)

    site.net.cut(a, "refused")
    until(lambda: True if worker.events("queue_away") else None, PATIENCE_S)
    site.net.heal(a)
    later = site.submit()
    done(site, later)
    released = site.control.release()
    done(site, lasting)

    assert released == 1  # the call of before the cut, whoever had its run by then: a cut may outlast the lease
    assert [len(site.control.payments(claim_id)) for claim_id in (lasting, later)] == [1, 1]
    assert worker.drained(PATIENCE_S) == 0
    assert list(site.app.journal.audit.verify()) == []


def test_a_drain_ends_in_time_though_the_database_is_cut_off_and_a_run_stands_still(site: Site) -> None:
    a, _ = site.net.hosts
    worker = site.start(a, "--drain", "2")
    claim_id = held_paying(site)
    site.net.cut(a, "silent")

    asked = time.monotonic()
    code = worker.drained(PATIENCE_S)
    took_s = time.monotonic() - asked

    assert (code, took_s < 2 + SLOW_S) == (CUT_OFF, True), took_s
    site.net.heal(a)
    site.control.release()
    site.start(a)
    done(site, claim_id)
    assert len(site.control.payments(claim_id)) == 1


def test_a_drain_of_an_idle_worker_does_not_wait_for_a_database_that_is_cut_off(site: Site) -> None:
    a, _ = site.net.hosts
    worker = site.start(a, "--drain", "60")
    site.net.cut(a, "silent")

    assert worker.drained(40) == 0
