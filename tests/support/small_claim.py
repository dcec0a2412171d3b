"""
A small claim whose every step leaves a trace outside, run in a process that may be told where to die.

What ran stands in a folder: `nodes` and `model`, one line a run, and `bank` and `post`, one line a call.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from langgraph.graph import START, StateGraph

from checkpointing import Journal, open_journal
from graph import DurableGraph, DurableState, approve, durable, thread
from nodes import approval_node, effect_node, model_node
from tests.support.bank import KEYED, Bank
from tests.support.points import die_after, die_at
from tools import Receiver

THREAD = "claim-0042"
LEASE = timedelta(milliseconds=400)


class State(DurableState):
    claim_id: str
    amount: int
    assessment: dict[str, Any]
    payment: dict[str, Any]
    notice: dict[str, Any]


def small_claim(
    journal: Journal,
    folder: Path,
    *,
    receiver: Receiver = KEYED,
    ttl: timedelta | None = None,
    attempts: int = 9,
) -> DurableGraph:
    """
    Load, ask a model, ask a person, pay, notify, close.

    Args:
        journal: where its runs are kept.
        folder: where the world keeps its traces.
        receiver: the bank's profile.
        ttl: how long the person has; afterwards the claim counts as approved.
        attempts: starts without a new checkpoint before the run is a dead letter.
    """

    def mark(file: str, text: str) -> None:
        with (folder / file).open("a") as trace:
            trace.write(text + "\n")

    def load(state: State) -> dict[str, Any]:
        mark("nodes", "load")
        return {"amount": 184_000}

    def ask(*, claim_id: str, amount: int) -> dict[str, Any]:
        mark("model", claim_id)
        return {"payout": amount}

    def close(state: State) -> dict[str, Any]:
        mark("nodes", "close")
        return {}

    builder = StateGraph(State)
    builder.add_node("load", load)
    builder.add_node(
        "assess",
        model_node(
            ask,
            journal,
            arguments=lambda s: {"claim_id": s["claim_id"], "amount": s["amount"]},
            into="assessment",
        ),
    )
    builder.add_node(
        "approve",
        approval_node(
            "payout",
            journal,
            payload=lambda s: {"claim_id": s["claim_id"], "amount": s["assessment"]["payout"]},
            ttl=ttl,
            on_expiry="approve",
        ),
    )
    builder.add_node(
        "pay",
        effect_node(Bank(folder / "bank").effect(receiver), journal, into="payment", approval="payout"),
    )
    builder.add_node(
        "notify",
        effect_node(
            Bank(folder / "post").effect(),
            journal,
            arguments=lambda s: {"claim_id": s["claim_id"], "amount": 0},
            into="notice",
        ),
    )
    builder.add_node("close", close)
    for one, other in zip((START, *NODES), NODES, strict=False):
        builder.add_edge(one, other)
    return durable(builder, journal, attempts=attempts)


NODES = ("load", "assess", "approve", "pay", "notify", "close")


def act(graph: DurableGraph, action: str) -> None:
    """Do one thing to the claim, as one process would."""
    match action:
        case "submit":
            graph.invoke({"claim_id": "0042"}, thread(THREAD))
        case "approve":
            [pending] = graph.journal.approvals.pending(thread_id=THREAD)
            graph.invoke(approve(pending), thread(THREAD, principal="adjuster-17"))
        case "resume":
            graph.invoke(None, thread(THREAD))
        case _:
            raise ValueError(action)


def one_process(url: str, folder: Path, action: str, point: str | None = None, nth: int = 1) -> None:
    """Open the journal, do one *action*, and die at *point* if one is given."""
    with open_journal(url, lease=LEASE) as journal:
        graph = small_claim(journal, folder)
        if point == "executed":
            die_after(Bank, "execute")
        elif point:
            die_at(point, nth=nth)
        act(graph, action)
