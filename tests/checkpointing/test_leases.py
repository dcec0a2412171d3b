"""Leases: what a holding that is over can do (nothing), and a heartbeat whose store does not answer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from checkpointing import Journal, Lease, leases
from checkpointing.admissions import Admission
from checkpointing.effects import Claim, Request
from checkpointing.errors import EffectConflict, LeaseLost, RunBusy, StoreUnreachable
from checkpointing.leases import TAKE, Heartbeat, Leases, check_fence
from checkpointing.questions import Question
from checkpointing.slots import Place, Slot
from checkpointing.store import Tx
from tests.support.blocked import WAITING
from tests.support.clock import MovingClock
from tests.support.processes import until

NAME = "thread:claim-0042"
LEASE = timedelta(seconds=30)
SHORT = timedelta(milliseconds=1500)
"""Renewed every half second of real time."""

LOCK = "select fence from leases where name = :name for update"


@pytest.fixture
def journal(opened: Callable[..., Journal], clock: MovingClock) -> Journal:
    return opened(clock=clock, lease=LEASE)


def taken_over(journal: Journal, clock: MovingClock) -> tuple[Lease, Lease]:
    """A holding that is over, and the one that followed it."""
    stale = journal.leases.take(NAME)
    clock.move(LEASE)
    return stale, journal.leases.take(NAME)


def test_a_lease_that_was_taken_over_is_not_renewed(journal: Journal, clock: MovingClock) -> None:
    """Else a stale worker's heartbeat would keep its successor's lease alive after that one's death."""
    stale, _ = taken_over(journal, clock)
    clock.move(LEASE - timedelta(seconds=1))
    with pytest.raises(LeaseLost, match="fence 1"):
        journal.leases.renew(stale)

    clock.move(timedelta(seconds=1))
    assert journal.leases.holder(NAME) is None


def test_a_lease_that_was_given_back_is_not_renewed(journal: Journal) -> None:
    lease = journal.leases.take(NAME)
    journal.leases.give_back(lease)

    with pytest.raises(LeaseLost):
        journal.leases.renew(lease)


def test_who_lost_the_lease_cannot_give_it_back(journal: Journal, clock: MovingClock) -> None:
    stale, fresh = taken_over(journal, clock)
    journal.leases.give_back(stale)

    assert journal.leases.holder(NAME) == fresh.owner
    with pytest.raises(RunBusy):
        journal.leases.take(NAME)


def test_the_fence_alone_tells_two_holdings_apart(
    journal: Journal, clock: MovingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As two copies of one machine would draw the same random part."""
    monkeypatch.setattr(leases, "new_owner", lambda: "host:1:same")
    stale, fresh = taken_over(journal, clock)
    assert (stale.owner, stale.fence) == (fresh.owner, fresh.fence - 1)

    with pytest.raises(LeaseLost):
        journal.leases.renew(stale)
    journal.leases.give_back(stale)
    with pytest.raises(LeaseLost), journal.store.transaction("test") as tx:
        check_fence(tx, stale)

    assert journal.leases.holder(NAME) == fresh.owner


@pytest.fixture
def running(journal: Journal, clock: MovingClock) -> tuple[Lease, Lease]:
    """A run that was taken over by its second worker, whose lease is the second."""
    journal.runs.admit(Admission("claim-0042", "json", b"{}", "digest", "", None, "", takes_turns=False))
    stale = journal.leases.take(NAME)
    journal.runs.start(stale, "claim-0042", head="")
    clock.move(LEASE)
    fresh = journal.leases.take(NAME)
    journal.runs.start(fresh, "claim-0042", head="")
    return stale, fresh


def test_who_lost_the_lease_ends_nothing(journal: Journal, running: tuple[Lease, Lease]) -> None:
    """It may have failed, or found the end, or want to wait: the run is its successor's."""
    stale, fresh = running
    runs = journal.runs
    ends: tuple[Callable[[], object], ...] = (
        lambda: runs.park(stale, "claim-0042", reason="approval", still_waiting=lambda tx: True),
        lambda: runs.finish(stale, "claim-0042"),
        lambda: runs.die(stale, "claim-0042", reason="attempts", error="slow"),
        lambda: runs.stand_by(stale, "claim-0042", error=None, refund=True),
    )
    for end in ends:
        with pytest.raises(LeaseLost):
            end()

    assert (runs.get("claim-0042").state, journal.leases.holder(NAME)) == ("running", fresh.owner)
    assert list(journal.audit.verify()) == []


def test_who_lost_the_lease_asks_nothing(journal: Journal, running: tuple[Lease, Lease]) -> None:
    question = Question(
        thread_id="claim-0042",
        node="approve",
        name="payout",
        visit=0,
        payload={"amount": 5},
        allowed=("approve", "reject"),
        approvers=None,
        edits=None,
        ttl=None,
        on_expiry="reject",
    )
    with pytest.raises(LeaseLost):
        journal.approvals.open(question, place=Place(running[0], "root", "task", "@root"))

    assert journal.approvals.pending() == []


class Watched(Leases):
    """Leases that remember how each renewal went: the error's kind, or `None`."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(journal.store, lease=journal.leases.lease)
        self.seen: list[type[Exception] | None] = []

    def renew(self, lease: Lease) -> None:
        try:
            super().renew(lease)
        except (StoreUnreachable, LeaseLost) as error:
            self.seen.append(type(error))
            raise
        self.seen.append(None)


@pytest.fixture
def outage(
    url: str, opened: Callable[..., Journal], monkeypatch: pytest.MonkeyPatch
) -> Callable[[Tx, Watched, int], None]:
    """Makes the next renewals fail as a store fails: the lease's row is locked, and then the connection is cut or gives up."""
    monkeypatch.setattr("checkpointing.sqlite.BUSY_S", 0.05)

    def fails(tx: Tx, leases: Watched, times: int) -> None:
        tx.all(LOCK, name=NAME)
        until(lambda: cut_off(url) if leases.seen.count(StoreUnreachable) < times else True)

    return fails


def cut_off(url: str) -> None:
    """End every connection that waits for a lock; SQLite's give up by themselves."""
    if url.startswith("postgres"):
        with closing(psycopg.connect(url, autocommit=True)) as server:
            for (pid,) in server.execute(WAITING).fetchall():
                server.execute("select pg_terminate_backend(%s)", (pid,))


def test_a_heartbeat_that_failed_once_is_tried_again(opened: Callable[..., Journal], outage: Any) -> None:
    first, second = opened(lease=SHORT), opened()
    leases = Watched(first)
    lease = leases.take(NAME)
    heartbeat = Heartbeat(leases, lease)
    with second.store.transaction("test.outage") as tx:
        outage(tx, leases, 1)
    until(lambda: True if leases.seen[-1] is None else None)

    assert first.leases.holder(NAME) == lease.owner
    with pytest.raises(RunBusy):
        second.leases.take(NAME)
    heartbeat.stop()
    assert StoreUnreachable in leases.seen


def test_a_heartbeat_that_fails_for_a_whole_lease_loses_it(
    opened: Callable[..., Journal], outage: Any, clock: MovingClock
) -> None:
    first, second = opened(lease=SHORT, clock=clock), opened(clock=clock)
    leases = Watched(first)
    stale = leases.take(NAME)
    heartbeat = Heartbeat(leases, stale)
    with second.store.transaction("lease.take") as tx:
        outage(tx, leases, 2)
        clock.move(SHORT)
        assert tx.one(TAKE, name=NAME, owner="second", lease_ms=30_000)
    until(lambda: True if leases.seen[-1] is LeaseLost else None)
    heartbeat.stop()

    assert first.leases.holder(NAME) == "second"
    request = Request(
        Slot("claim-0042", "pay.0", "pay"), Place(stale, "root", "task", "@root"), "pay", {}, "d", "d", None, 0
    )
    with pytest.raises(LeaseLost):
        first.effects.claim(request, person_needed=lambda age: False)
    with pytest.raises(LeaseLost):
        first.runs.start(stale, "claim-0042", head="")
    assert first.effects.list() == []


def test_a_holder_from_before_a_restore_has_a_number_that_is_given_out_again_and_nothing_else(
    journal: Journal, clock: MovingClock
) -> None:
    """An older copy was restored under a worker that did not notice, so the fences went back to before its lease."""
    stale = journal.leases.take(NAME)
    set_back(journal)
    fresh = journal.leases.take(NAME)
    assert stale.fence == fresh.fence

    with pytest.raises(LeaseLost):
        journal.leases.renew(stale)
    with pytest.raises(LeaseLost), journal.store.transaction("test.write") as tx:
        check_fence(tx, stale)
    journal.leases.give_back(stale)
    assert journal.leases.holder(NAME) == fresh.owner


def test_a_holder_from_before_a_restore_says_nothing_of_its_successors_claim(journal: Journal) -> None:
    stale = claimed(journal)
    set_back(journal)
    fresh = claimed(journal)
    assert (stale.record.key, stale.lease.fence) == (fresh.record.key, fresh.lease.fence)

    journal.effects.release(stale, why="the receiver refused it")
    journal.effects.doubt(stale, why="no answer")
    assert journal.effects.get(fresh.record.key).state == "claimed"
    with pytest.raises(LeaseLost):
        journal.effects.check_mine(stale)
    journal.effects.release(fresh, why="the receiver refused it")
    assert journal.effects.get(fresh.record.key).state == "released"


def claimed(journal: Journal) -> Claim:
    """Claim the payment under a lease that is taken for it."""
    place = Place(journal.leases.take(NAME), "root", "task", "@root")
    asked = Request(Slot("claim-0042", "pay.0", "pay"), place, "pay", {"amount": 5}, "d", "whole", None, 0)
    claim = journal.effects.claim(asked, person_needed=lambda _age: False)
    assert isinstance(claim, Claim)
    return claim


def set_back(journal: Journal) -> None:
    """Make the tables what they were before anything happened."""
    with journal.store.transaction("test.restore") as tx:
        for emptied in ("delete from leases", "delete from effects", "delete from audit", "delete from audit_heads"):
            tx.all(emptied)


def test_what_a_call_from_before_a_restore_came_to_is_kept(journal: Journal) -> None:
    """It was executed: the outcome of the same key where that was claimed anew, and else in the audit."""
    stale = claimed(journal)
    set_back(journal)
    with pytest.raises(EffectConflict):
        journal.effects.settle(stale, {"id": "tr_1"})
    assert [entry.event for entry in journal.audit.entries("claim-0042")] == ["effect.settle_late"]

    fresh = claimed(journal)
    journal.effects.settle(stale, {"id": "tr_1"})
    assert journal.effects.settle(fresh, {"id": "tr_2"}).outcome == {"id": "tr_1"}
