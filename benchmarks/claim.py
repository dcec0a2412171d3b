"""
The graph that is measured: a small claim with everything that makes a run cost something, and receivers that cost nothing.

    load ──▶ assess (a model, which takes its time) ──▶ [ask (a person)] ──▶ pay (an effect) ──▶ close
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from langgraph.graph import START, StateGraph

from checkpointing import Journal
from graph import DurableGraph, DurableState, durable
from nodes import approval_node, effect_node, model_node
from tools import Receiver, effect

NAME = "measured"
MODEL_S = 0.05
"""What stands for a call to a model, in seconds."""
TTL = timedelta(days=30)
"""How long the question stands; so a parked run has a time at which it is due, far away."""


class State(DurableState):
    """A claim, and what became of it."""

    claim_id: str
    amount: int
    assessment: dict[str, Any]
    payment: dict[str, Any]


@effect(receiver=Receiver(honours_keys=True, key_life=timedelta(hours=24)))
def pay(*, claim_id: str, amount: int, key: str) -> dict[str, Any]:
    """Pay at a receiver that answers at once."""
    return {"claim_id": claim_id, "paid": amount, "key": key}


def measured_claim(journal: Journal, *, model_s: float = MODEL_S, asks: bool = False) -> DurableGraph:
    """Make the graph in *journal*, with a model that takes *model_s*; one that *asks* a person parks there."""

    def assess(*, claim_id: str, amount: int) -> dict[str, Any]:
        time.sleep(model_s)
        return {"claim_id": claim_id, "payout": amount}

    builder = StateGraph(State)
    builder.add_node("load", _load)
    builder.add_node("assess", model_node(assess, journal, arguments=_claim, into="assessment"))
    builder.add_node("pay", effect_node(pay, journal, arguments=_claim, into="payment"))
    builder.add_node("close", _close)
    nodes = ["load", "assess", "pay", "close"]
    if asks:
        builder.add_node("ask", approval_node("payout", journal, payload=_claim, ttl=TTL))
        nodes.insert(2, "ask")
    for one, other in zip((START, *nodes), nodes, strict=False):
        builder.add_edge(one, other)
    return durable(builder, journal, name=NAME)


def _load(state: State) -> dict[str, Any]:
    return {"amount": 100 + len(state["claim_id"])}


def _close(state: State) -> dict[str, Any]:  # noqa: ARG001  # a node takes the state
    return {}


def _claim(state: Any) -> dict[str, Any]:
    return {"claim_id": state["claim_id"], "amount": state["amount"]}
