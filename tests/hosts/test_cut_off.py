"""
A worker's host is cut off from the database in the middle of runs, and healed later: another host takes over within the lease, everything is paid once,
and the worker that was cut off stops those runs by itself and goes on with others.
"""

from __future__ import annotations

import time

import pytest

from tests.hosts.network import Cut, Host
from tests.hosts.site import LEASE_S, SWEEP_S, Site, Worker
from tests.support.processes import until

SLOW_S = 2.0
"""What a busy machine may add: until a worker has got its job, and until we look."""
PATIENCE_S = 90
"""How long anything may take that is not measured."""


def held_before_and_after(site: Site) -> tuple[str, str]:
    """Two runs stand still: one in a step that has claimed nothing yet, and one whose money has moved and whose answer is held back."""
    site.control.fault("claims", "hold_before", method="GET")
    early = site.submit()
    site.control.wait_held(1, PATIENCE_S)
    site.control.fault("transfers", "hold_after")
    paying = site.submit()
    site.control.wait_held(2, PATIENCE_S)
    return early, paying


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
    claims = held_before_and_after(site)
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
