"""
A month in the drawer: a run parks, its process ends, and thirty days later a new process with the next version of the code carries it on.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from langgraph.graph import END, START, StateGraph

from checkpointing import Journal, open_journal
from checkpointing.tiers import Tier
from graph import DurableGraph, DurableState, approve, durable, thread
from nodes import approval_node, effect_node
from service.worker.advancing import advance
from service.worker.draining import Draining
from tests.support.bank import Bank
from tests.support.clock import MovingClock
from tests.support.processes import finish, start

THREAD = "claim-0042"
MONTH = timedelta(days=30)
TIERS = (Tier("adjusters", ttl=timedelta(days=20)), Tier("seniors", ttl=timedelta(days=40)))


class First(DurableState):
    claim_id: str
    amount: int
    payment: dict[str, Any]


class Next(DurableState):
    """The next version has a key more, and a step more after the payment."""

    claim_id: str
    amount: int
    payment: dict[str, Any]
    booked: str


def payout(state: Any) -> dict[str, Any]:
    return {"claim_id": state["claim_id"], "amount": state["amount"]}


def book(state: Any) -> dict[str, Any]:
    return {"booked": state["payment"]["key"]}


def this_version(journal: Journal, folder: Path) -> DurableGraph:
    builder = StateGraph(First)
    builder.add_node("approve", approval_node("payout", journal, payload=payout, amount="amount", tiers=TIERS))
    builder.add_node("pay", effect_node(Bank(folder / "bank").effect(), journal, into="payment", approval="payout"))
    for one, other in ((START, "approve"), ("approve", "pay"), ("pay", END)):
        builder.add_edge(one, other)
    return durable(builder, journal, name="drawer")


def next_version(journal: Journal, folder: Path) -> DurableGraph:
    """Ask with other terms from now on, and book what was paid."""
    builder = StateGraph(Next)
    asks = approval_node("payout", journal, payload=payout, amount="amount", ttl=timedelta(hours=1), four_eyes=True)
    builder.add_node("approve", asks)
    builder.add_node("pay", effect_node(Bank(folder / "bank").effect(), journal, into="payment", approval="payout"))
    builder.add_node("book", book)
    for one, other in ((START, "approve"), ("approve", "pay"), ("pay", "book"), ("book", END)):
        builder.add_edge(one, other)
    return durable(builder, journal, name="drawer")


def submitted(url: str, folder: Path) -> None:
    """Be the process that submits."""
    with open_journal(url, clock=MovingClock()) as journal:
        this_version(journal, folder).invoke({"claim_id": "0042", "amount": 5}, thread(THREAD, principal="clerk"))


def a_month_later(url: str, folder: Path) -> None:
    """Be a worker of the next version, and then the one who decides."""
    clock = MovingClock()
    clock.move(MONTH)
    with open_journal(url, clock=clock) as journal:
        graph = next_version(journal, folder)
        assert journal.runs.due("drawer", limit=10) == (THREAD,)
        assert advance({"drawer": graph}, journal, THREAD, Draining()).outcome == "parked"
        [asked] = journal.approvals.pending()
        assert (asked.tier, asked.expires_at) == (1, clock() + timedelta(days=40))
        graph.submit(approve(asked), thread(THREAD, principal="sue"))
        assert advance({"drawer": graph}, journal, THREAD, Draining()).outcome == "done"


def test_a_run_parked_for_a_month_is_carried_on_by_the_next_version(url: str, tmp_path: Path) -> None:
    """The question keeps the terms it was asked under, and its payload, so the same row is decided; the new step runs."""
    finish(start(submitted, url, tmp_path))
    finish(start(a_month_later, url, tmp_path))

    with open_journal(url) as journal:
        graph = next_version(journal, tmp_path)
        assert graph.get_state(thread(THREAD)).values["booked"] == Bank(tmp_path / "bank").executed[0]["key"]
        assert len(Bank(tmp_path / "bank").executed) == 1
        assert len(journal.approvals.of_thread(THREAD)) == 1
        events = [e.event for e in journal.audit.entries(THREAD) if e.event.startswith("approval.")]
        assert events == ["approval.open", "approval.escalate", "approval.decide"]
        assert list(journal.audit.verify()) == []
