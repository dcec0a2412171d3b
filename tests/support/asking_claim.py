"""
A claim that asks: an amount that a file may change, an approval with whatever terms, a payment, and how it was decided.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langgraph.graph import END, START, StateGraph

from checkpointing import Journal
from graph import DurableGraph, DurableState, durable
from nodes import approval_node, effect_node
from tests.support.bank import Bank


class State(DurableState):
    claim_id: str
    amount: int
    payment: dict[str, Any]
    outcome: str


def asking_claim(journal: Journal, folder: Path, *, amount_in: str | None = "amount", **terms: Any) -> DurableGraph:
    """Return the graph; the approval is called `payout`, and a file `amount` in *folder* has the amount where it is there."""

    def payload(state: Any) -> dict[str, Any]:
        changed = folder / "amount"
        return {
            "claim_id": state["claim_id"],
            "amount": int(changed.read_text()) if changed.exists() else state["amount"],
        }

    def close(state: Any) -> dict[str, Any]:
        return {"outcome": state["approvals"]["payout"]["type"]}

    builder = StateGraph(State)
    allowed = ("approve", "edit", "reject")
    builder.add_node(
        "approve", approval_node("payout", journal, payload=payload, allowed=allowed, amount=amount_in, **terms)
    )
    builder.add_node("pay", effect_node(Bank(folder / "bank").effect(), journal, into="payment", approval="payout"))
    builder.add_node("close", close)
    for one, other in ((START, "approve"), ("approve", "pay"), ("pay", "close"), ("close", END)):
        builder.add_edge(one, other)
    return durable(builder, journal, name="asking")
