"""
The cheapest graph that does something to the world: one payment, which the bank's file counts; and two errands that are poison.

The one raises whenever it is begun, and the other kills its worker.
"""

from __future__ import annotations

import os
import signal
from datetime import timedelta
from pathlib import Path
from typing import Any

from langgraph.graph import START, StateGraph

from checkpointing import Journal, open_journal
from graph import DurableGraph, DurableState, durable, thread
from graph.backoff import Backoff
from nodes import effect_node
from service.worker.draining import Draining
from service.worker.jobs import Rhythm
from service.worker.signals import drained_by_signals
from service.worker.work import work
from tests.support.bank import Bank

NAME = "errand"
RAISES, KILLS = "raises", "kills"
"""Claims that are poison."""
ATTEMPTS = 3
BACKOFF = Backoff(first=timedelta(milliseconds=100))


class State(DurableState):
    claim_id: str
    payment: dict[str, Any]


def errand(journal: Journal, folder: Path) -> DurableGraph:
    """Pay, and nothing else; what is poison leaves a line for each time that it is begun."""

    def arguments(state: Any) -> dict[str, Any]:
        claim_id = state["claim_id"]
        if claim_id in (RAISES, KILLS):
            with (folder / f"begun-{claim_id}").open("a") as begun:
                begun.write(f"{os.getpid()}\n")
        if claim_id == RAISES:
            raise ValueError("this claim cannot be read")
        if claim_id == KILLS:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"claim_id": claim_id, "amount": 1}

    builder = StateGraph(State)
    builder.add_node("pay", effect_node(Bank(folder / "bank").effect(), journal, arguments=arguments, into="payment"))
    builder.add_edge(START, "pay")
    return durable(builder, journal, name=NAME, attempts=ATTEMPTS, backoff=BACKOFF)


def thread_of(claim_id: object) -> str:
    """Return the thread of an errand."""
    return f"errand-{claim_id}"


def submit(url: str, folder: Path, claim_ids: list[str], together: Any) -> None:
    """Submit these errands, from the moment on at which all who submit are ready."""
    with open_journal(url, artefacts=str(folder)) as journal:
        graph = errand(journal, folder)
        together.wait()
        for claim_id in claim_ids:
            graph.submit({"claim_id": claim_id}, thread(thread_of(claim_id), principal="intake"))


def drain(url: str, folder: Path, concurrency: int, lease_s: float = 30, rhythm: Rhythm | None = None) -> None:
    """Be a worker of errands until SIGTERM; its lease and its rhythm are those of a worker as it comes, unless others are given."""
    os.chdir(folder)
    draining = Draining()
    with (
        drained_by_signals(draining, within=timedelta(seconds=30)),
        open_journal(url, lease=timedelta(seconds=lease_s), artefacts=str(folder)) as journal,
    ):
        work([errand(journal, folder)], concurrency=concurrency, draining=draining, rhythm=rhythm, told=_nobody)


def _nobody(_: object) -> None:
    """Log nothing: ten thousand lines are not read."""
