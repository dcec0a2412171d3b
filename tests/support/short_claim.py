"""A claim of two steps for races: somebody approves it, and it is paid."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

from langgraph.graph import START, StateGraph

from checkpointing import Journal
from checkpointing.errors import RunBusy
from graph import DurableGraph, DurableState, durable, thread
from nodes import approval_node, effect_node
from tests.support.bank import Bank
from tests.support.processes import until

TTL = timedelta(hours=1)
"""How long the question stands, where it does not stand for ever."""


class State(DurableState):
    claim_id: str
    payment: dict[str, Any]


def claim(journal: Journal, folder: Path, *, ttl: timedelta | None = None) -> DurableGraph:
    """Ask for ever, then pay."""
    builder = StateGraph(State)
    asks = approval_node("payout", journal, payload=lambda s: {"claim_id": s["claim_id"], "amount": 5}, ttl=ttl)
    builder.add_node("approve", asks)
    builder.add_node("pay", effect_node(Bank(folder / "bank").effect(), journal, into="payment", approval="payout"))
    builder.add_edge(START, "approve")
    builder.add_edge("approve", "pay")
    return durable(builder, journal)


def expiring_claim(journal: Journal, folder: Path) -> DurableGraph:
    """As `claim`, but the question is rejected after `TTL`."""
    return claim(journal, folder, ttl=TTL)


def thread_of(number: int) -> str:
    return f"claim-{number}"


def submit(graph: DurableGraph, number: int) -> str:
    """Submit one claim; it parks."""
    state = graph.invoke({"claim_id": f"{number}"}, thread(thread_of(number)))
    return "parked" if "__interrupt__" in state else "advanced"


def nudges(graph: DurableGraph, number: int) -> str:
    """Look whether there is anything to do for one claim, and say `nudged`, or that somebody else holds it."""
    try:
        graph.invoke(None, thread(thread_of(number)))
    except RunBusy:
        return "busy"
    return "nudged"


def advanced(graph: DurableGraph, thread_id: str) -> str:
    """Advance the thread as soon as nobody holds it, and return the state of its run."""

    def at_rest() -> bool | None:
        try:
            graph.invoke(None, thread(thread_id))
        except RunBusy:
            return None
        return True

    until(at_rest)
    return graph.journal.runs.get(thread_id).state


def payments(folder: Path) -> Counter[str]:
    """How often each claim was paid."""
    return Counter(call["claim_id"] for call in Bank(folder / "bank").executed)


def calls(folder: Path) -> Counter[str]:
    """How often the bank was called for each claim, repeats of a key too."""
    return Counter(call["claim_id"] for call in Bank(folder / "bank").calls)
