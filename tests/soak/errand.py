"""The cheapest graph that does something to the world: one payment, which the bank's file counts."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from langgraph.graph import START, StateGraph

from checkpointing import Journal, open_journal
from graph import DurableGraph, DurableState, durable, thread
from nodes import effect_node
from service.worker.draining import Draining
from service.worker.signals import drained_by_signals
from service.worker.work import work
from tests.soak.crew import QUICK
from tests.support.bank import Bank

NAME = "errand"
PRINCIPAL = "intake"


class State(DurableState):
    claim_id: str
    payment: dict[str, Any]


def errand(journal: Journal, folder: Path) -> DurableGraph:
    """Pay, and nothing else."""
    builder = StateGraph(State)
    pay = Bank(folder / "bank").effect()
    builder.add_node(
        "pay",
        effect_node(pay, journal, arguments=lambda s: {"claim_id": s["claim_id"], "amount": 1}, into="payment"),
    )
    builder.add_edge(START, "pay")
    return durable(builder, journal, name=NAME)


def thread_of(number: int) -> str:
    """Return the thread of an errand."""
    return f"errand-{number:05}"


def submit(url: str, folder: Path, numbers: list[int], together: Any) -> None:
    """Submit these errands, from the moment on at which all who submit are ready."""
    with open_journal(url, artefacts=str(folder)) as journal:
        graph = errand(journal, folder)
        together.wait()
        for number in numbers:
            graph.submit({"claim_id": str(number)}, thread(thread_of(number), principal=PRINCIPAL))


def drain(url: str, folder: Path, concurrency: int) -> None:
    """Be a worker of errands until SIGTERM."""
    os.chdir(folder)
    draining = Draining()
    with (
        drained_by_signals(draining, within=timedelta(seconds=30)),
        open_journal(url, artefacts=str(folder)) as journal,
    ):
        work([errand(journal, folder)], concurrency=concurrency, draining=draining, rhythm=QUICK, told=_nobody)


def _nobody(_: object) -> None:
    """Log nothing: ten thousand lines are not read."""
