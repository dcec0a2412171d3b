"""A small graph that asks and pays, with the name and the input of the claims graph."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from langgraph.graph import START, StateGraph

from checkpointing import Journal
from graph import DurableGraph, DurableState, durable
from nodes import approval_node, effect_node
from tests.support.bank import Bank

TTL = timedelta(hours=1)


class Input(DurableState):
    claim_id: str
    documents: list[dict[str, Any]]


class State(Input):
    payment: dict[str, Any]


def desk_graph(journal: Journal, folder: Path, **asking: Any) -> DurableGraph:
    """Ask for a payout, then pay it; called `claims`, with the input of the claims graph."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State, input_schema=Input)

    options: dict[str, Any] = {"ttl": TTL, "amount": "amount", "allowed": ("approve", "edit", "reject"), **asking}
    builder.add_node(
        "approve",
        approval_node("payout", journal, payload=lambda s: {"claim_id": s["claim_id"], "amount": 5}, **options),
    )
    builder.add_node("pay", effect_node(Bank(folder / "bank").effect(), journal, into="payment", approval="payout"))
    builder.add_edge(START, "approve")
    builder.add_edge("approve", "pay")
    return durable(builder, journal, name="claims")
