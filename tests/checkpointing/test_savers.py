"""The fence in every write of the savers: who lost the lease writes nothing, and who is behind is told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint

from checkpointing import Journal, Lease
from checkpointing.errors import CheckpointSuperseded, ClockBehind, LeaseLost, RunBusy
from checkpointing.leases import check_fence, thread_lease
from checkpointing.savers import LEASE
from tests.support.blocked import Peer
from tests.support.clock import MovingClock

NAME = thread_lease("t")
DURATION = timedelta(seconds=30)


@pytest.fixture
def journal(opened: Callable[..., Journal], clock: MovingClock) -> Journal:
    return opened(clock=clock, lease=DURATION)


def config(lease: Lease | None, parent: str | None = None) -> Any:
    return {
        "configurable": {
            "thread_id": "t",
            "checkpoint_ns": "",
            "checkpoint_id": parent,
            LEASE: lease,
        }
    }


def checkpoint(checkpoint_id: str) -> Any:
    return {**empty_checkpoint(), "id": checkpoint_id}


def put(journal: Journal, lease: Lease | None, checkpoint_id: str, parent: str | None = None) -> None:
    journal.saver.put(
        config(lease, parent),
        checkpoint(checkpoint_id),
        {"source": "loop", "step": 0, "parents": {}},
        {},
    )


def put_writes(journal: Journal, lease: Lease | None, checkpoint_id: str) -> None:
    journal.saver.put_writes(config(lease, checkpoint_id), [("amount", 5)], "task-1")


def stored(journal: Journal) -> list[str]:
    return [found.config["configurable"]["checkpoint_id"] for found in journal.saver.list(config(None))]


def test_the_holder_writes(journal: Journal) -> None:
    lease = journal.leases.take(NAME)
    put(journal, lease, "1")
    put_writes(journal, lease, "1")
    put(journal, lease, "2", "1")

    assert stored(journal) == ["2", "1"]


def test_who_lost_the_lease_writes_nothing(journal: Journal, clock: MovingClock) -> None:
    stale = journal.leases.take(NAME)
    put(journal, stale, "1")
    clock.move(DURATION)
    fresh = journal.leases.take(NAME)

    for write in (lambda: put(journal, stale, "2", "1"), lambda: put_writes(journal, stale, "1")):
        with pytest.raises(LeaseLost, match="fence 1"):
            write()
    put(journal, fresh, "2", "1")
    assert stored(journal) == ["2", "1"]
    found = journal.saver.get_tuple(config(None, "1"))
    assert found is not None
    assert found.pending_writes == []


def test_who_gave_the_lease_back_writes_nothing(journal: Journal) -> None:
    lease = journal.leases.take(NAME)
    journal.leases.give_back(lease)

    with pytest.raises(LeaseLost):
        put(journal, lease, "1")


def test_an_expired_lease_that_nobody_took_still_writes(journal: Journal, clock: MovingClock) -> None:
    lease = journal.leases.take(NAME)
    clock.move(10 * DURATION)
    put(journal, lease, "1")

    assert stored(journal) == ["1"]


def test_without_a_lease_one_writes_only_while_nobody_holds_one(journal: Journal, clock: MovingClock) -> None:
    put(journal, None, "1")
    lease = journal.leases.take(NAME)
    with pytest.raises(RunBusy):
        put(journal, None, "2", "1")
    with pytest.raises(RunBusy):
        journal.saver.delete_thread("t")
    journal.leases.give_back(lease)
    put(journal, None, "2", "1")

    assert stored(journal) == ["2", "1"]


def test_a_parent_that_is_not_the_head_is_superseded(journal: Journal) -> None:
    lease = journal.leases.take(NAME)
    put(journal, lease, "1")
    put(journal, lease, "2", "1")

    with pytest.raises(CheckpointSuperseded, match="the head is 2"):
        put(journal, lease, "3", "1")
    assert stored(journal) == ["2", "1"]


def test_a_clock_that_is_behind_is_told(journal: Journal) -> None:
    lease = journal.leases.take(NAME)
    put(journal, lease, "5")

    with pytest.raises(ClockBehind, match="behind the head 5"):
        put(journal, lease, "4", "5")
    assert stored(journal) == ["5"]


def test_a_take_over_waits_for_a_write_under_way(journal: Journal, clock: MovingClock) -> None:
    """Without the lock on the lease's row the stale write would commit after the take-over."""
    stale = journal.leases.take(NAME)
    clock.move(DURATION)
    order = []
    with journal.store.transaction("test.write") as tx:
        check_fence(tx, stale)
        taker = Peer(journal, lambda: order.append(f"taken with fence {journal.leases.take(NAME).fence}"))
        taker.until_blocked()
        order.append("written")
    taker.result()

    assert order == ["written", "taken with fence 2"]


def test_a_reader_may_read_inside_its_own_loop(journal: Journal) -> None:
    """The official SQLite saver waits for itself here."""
    lease = journal.leases.take(NAME)
    put(journal, lease, "1")
    put(journal, lease, "2", "1")

    seen = [journal.saver.get_tuple(found.config) for found in journal.saver.list(config(None))]
    assert len(seen) == 2


def test_a_write_that_fails_leaves_nothing(journal: Journal) -> None:
    lease = journal.leases.take(NAME)

    with pytest.raises(TypeError):
        journal.saver.put(config(lease), checkpoint("1"), {"source": object()}, {})  # type: ignore[typeddict-item]  # not JSON
    assert stored(journal) == []
    put(journal, lease, "1")
    assert stored(journal) == ["1"]
