"""
Two that meet at a lock: one is held inside its transaction, the other is seen to wait, then the first goes on.

Without its lock each of these loses on Postgres, under read committed; SQLite has one writer at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint

from checkpointing import Journal
from checkpointing.approvals import all_pending
from checkpointing.audit import HEAD, append
from checkpointing.budget import Caps
from checkpointing.digest import sha256
from checkpointing.effects import Claim, Request
from checkpointing.errors import CapReached, EffectBusy, EffectNotApproved, RunBusy
from checkpointing.leases import TAKE, check_free, thread_lease
from checkpointing.slots import Place, Slot
from checkpointing.store import Store, Tx
from graph import thread
from tests.support.blocked import Peer
from tests.support.points import at
from tests.support.short_claim import claim

THREAD = "claim-0042"
LEASE = thread_lease(THREAD)


def put_without_a_lease(journal: Journal) -> None:
    config: Any = {"configurable": {"thread_id": THREAD, "checkpoint_ns": ""}}
    journal.saver.put(config, {**empty_checkpoint(), "id": "1"}, {"source": "loop", "step": 0, "parents": {}}, {})


@pytest.fixture(params=[False, True], ids=["never-held", "held-before"])
def held_before(request: pytest.FixtureRequest, journal: Journal) -> bool:
    """Whether the lease has its row already; the first writer makes it."""
    if request.param:
        journal.leases.give_back(journal.leases.take(LEASE))
    return bool(request.param)


def test_a_take_over_waits_for_a_writer_without_a_lease(journal: Journal, held_before: bool) -> None:
    order = []
    with journal.store.transaction("test.write") as tx:
        check_free(tx, LEASE)
        taker = Peer(journal, lambda: order.append(f"taken with fence {journal.leases.take(LEASE).fence}"))
        taker.until_blocked()
        order.append("written")
    taker.result()

    assert order == ["written", f"taken with fence {1 + held_before}"]
    with pytest.raises(RunBusy):
        put_without_a_lease(journal)


def test_a_writer_without_a_lease_waits_for_a_take_over_and_is_kept_out(journal: Journal, held_before: bool) -> None:
    with journal.store.transaction("lease.take") as tx:
        assert tx.one(TAKE, name=LEASE, owner="worker-1", lease_ms=30_000)
        writer = Peer(journal, lambda: put_without_a_lease(journal))
        writer.until_blocked()

    assert isinstance(writer.error(), RunBusy)
    assert journal.saver.head(THREAD) == ""


def parked(journal: Journal, folder: Path) -> dict[str, Any]:
    """Park the claim, and return what it asks."""
    state = claim(journal, folder).invoke({"claim_id": "0042"}, thread(THREAD))
    request: dict[str, Any] = state["__interrupt__"][0].value
    return request


def test_a_decision_waits_for_a_run_that_parks(journal: Journal, tmp_path: Path) -> None:
    """It is either seen by the run or finds it parked; between the two it would be read by nobody."""
    asked = parked(journal, tmp_path)["id"]
    lease = journal.leases.take(LEASE)
    journal.runs.start(lease, THREAD, head=journal.saver.head(THREAD))
    deciders = []

    def still_waiting(tx: Tx) -> bool:
        waits = all_pending(tx, THREAD, [asked])
        deciders.append(
            Peer(journal, lambda: journal.approvals.decide(asked, {"type": "approve"}, principal="adjuster-17"))
        )
        deciders[0].until_blocked()
        return waits

    assert journal.runs.park(lease, THREAD, reason="approval", still_waiting=still_waiting)
    deciders[0].result()

    assert journal.runs.get(THREAD).state == "admitted"


def test_two_effects_at_once_under_one_approval(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither sees the other's claim before it is committed; the approval allows one all the same."""
    request = parked(journal, tmp_path)
    journal.approvals.decide(request["id"], {"type": "approve"}, principal="adjuster-17")
    first, second = (asked(journal, step, request) for step in ("pay.0", "pay.1"))
    claimed, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        if not claimed.is_set():
            claimed.set()
            go_on.wait(30)

    monkeypatch.setattr(Store, "transaction", Store.transaction)  # so that it is put back
    at("committing effect.claim", hold)
    winner = Peer(journal, lambda: claim_of(journal, first))
    assert claimed.wait(30)
    loser = Peer(journal, lambda: claim_of(journal, second))
    loser.until_blocked()
    go_on.set()

    assert isinstance(winner.result(), Claim)
    assert isinstance(loser.error(), EffectBusy | EffectNotApproved)
    with pytest.raises(EffectNotApproved, match="it allows one"):
        claim_of(journal, second)
    assert [record.step for record in journal.effects.list()] == ["pay.0"]


def test_a_branch_that_wants_the_last_of_a_budget_waits_for_the_one_before_it(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither would see what the other reserves before it is committed; both would find that it fits."""
    parked(journal, tmp_path)
    first, second = (priced(journal, step) for step in ("pay.0", "pay.1"))
    claimed, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        if not claimed.is_set():
            claimed.set()
            go_on.wait(30)

    monkeypatch.setattr(Store, "transaction", Store.transaction)  # so that it is put back
    at("committing effect.claim", hold)
    winner = Peer(journal, lambda: claim_of(journal, first))
    assert claimed.wait(30)
    loser = Peer(journal, lambda: claim_of(journal, second))
    loser.until_blocked()
    go_on.set()

    assert isinstance(winner.result(), Claim)
    assert isinstance(loser.error(), CapReached)
    assert [record.step for record in journal.effects.list()] == ["pay.0"]


def priced(journal: Journal, step: str) -> Request:
    """What an effect node at *step* would ask for 60 of a budget of 100."""
    place = Place(journal.leases.take(f"slot:{step}"), "root", step, "@root", caps=Caps(money=100))
    return Request(Slot(THREAD, step, "pay"), place, "pay", {"amount": 60}, "d", "", None, 60)


def asked(journal: Journal, step: str, request: dict[str, Any]) -> Request:
    """What an effect node at *step* would ask under the approval."""
    place = Place(journal.leases.take(f"slot:{step}"), "root", step, "@root")
    payload = request["payload"]
    return Request(Slot(THREAD, step, "pay"), place, "pay", payload, "d", sha256(payload), request["id"], 0)


def claim_of(journal: Journal, request: Request) -> Any:
    return journal.effects.claim(request, person_needed=lambda age: False)


def test_two_transitions_of_a_thread_get_two_places_in_its_audit(journal: Journal) -> None:
    def write(event: str) -> Callable[[], None]:
        def transition() -> None:
            with journal.store.transaction(event) as tx:
                append(tx, THREAD, event, actor="worker-1", subject=THREAD)

        return transition

    write("first")()
    with journal.store.transaction("second") as tx:
        tx.one(HEAD, thread_id=THREAD)  # as an entry begins
        third = Peer(journal, write("third"))
        third.until_blocked()
        append(tx, THREAD, "second", actor="worker-1", subject=THREAD)

    assert third.error() is None
    assert [(entry.seq, entry.event) for entry in journal.audit.entries(THREAD)] == [
        (1, "first"),
        (2, "second"),
        (3, "third"),
    ]
