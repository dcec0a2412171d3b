"""Claims of which one is poison: its node always raises, whoever runs it. What a worker of its own runs, in a process of its own."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from langgraph.graph import START, StateGraph

from checkpointing import Journal, open_journal
from graph import DurableGraph, DurableState, durable
from graph.backoff import Backoff
from nodes import effect_node
from service.worker import work
from tests.support.bank import Bank
from tests.support.plain import Trace

POISON = "claim-7"
CLAIMS = 20
ATTEMPTS = 4
BACKOFF = Backoff(first=timedelta(milliseconds=400))


class State(DurableState):
    claim_id: str
    amount: int


def claims(journal: Journal, folder: Path) -> DurableGraph:
    """Pay, then close; the poison's `close` always raises. When it ran stands in a file, in seconds, a line a run."""
    tried = Trace(folder / "tried")

    def close(state: State) -> dict[str, Any]:
        if state["claim_id"] == POISON:
            tried.mark(f"{time.monotonic()}")
            raise ValueError("poison")
        return {}

    def arguments(state: Any) -> dict[str, Any]:
        return {"claim_id": state["claim_id"], "amount": state["amount"]}

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("pay", effect_node(Bank(folder / "bank").effect(), journal, arguments=arguments))
    builder.add_node("close", close)
    builder.add_edge(START, "pay")
    builder.add_edge("pay", "close")
    return durable(builder, journal, name="claims", attempts=ATTEMPTS, backoff=BACKOFF)


def worker(url: str, folder: Path) -> None:
    """Be a worker until it is killed."""
    with open_journal(url) as journal:
        work([claims(journal, folder)], concurrency=4)
