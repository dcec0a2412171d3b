"""
Many runs at once, carried to their end by threads that come back whenever the storage was away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langgraph.graph import START, StateGraph

from checkpointing import Journal
from checkpointing.errors import RunBusy, StoreUnreachable
from graph import DurableGraph, DurableState, durable, thread
from nodes import effect_node
from tests.support.bank import Bank
from tests.support.processes import until

THREADS = 8
STEPS = ("first", "second", "third")


class Claim(DurableState):
    claim_id: str


def three_payments(journal: Journal, folder: Path) -> DurableGraph:
    """Pay three times; every payment names its run and its step."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(Claim)
    bank = Bank(folder / "bank")
    for step, before in zip(STEPS, (START, *STEPS), strict=False):
        builder.add_node(
            step,
            effect_node(
                bank.effect(),
                journal,
                arguments=lambda s, step=step: {"claim_id": f"{s['claim_id']}/{step}", "amount": 1},
            ),
        )
        builder.add_edge(before, step)
    return durable(builder, journal, attempts=1)


class Workers:
    """Threads that carry all runs to their end and come back whenever the storage was away."""

    def __init__(self, graph: DurableGraph, *, runs: int) -> None:
        """Carry this many *runs*, with one attempt each."""
        self.graph, self.runs = graph, runs
        self.told: Counter[str] = Counter()

    def run(self, number: int) -> None:
        """Carry one run to its end."""

        def ended() -> bool | None:
            try:
                self.graph.invoke({"claim_id": f"{number}"}, thread(f"run-{number}"))
            except StoreUnreachable as error:
                self.told[str(error)] += 1
                return None
            except RunBusy:
                return None
            return True

        until(ended, timeout_s=90)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """All runs are at work inside; at the end they have ended."""
        with ThreadPoolExecutor(THREADS) as pool:
            futures = [pool.submit(self.run, number) for number in range(self.runs)]
            yield
            for future in futures:
                future.result()


def check_all(journal: Journal, folder: Path, *, count: int) -> None:
    """Every run is done without a spent attempt, and every payment was made once."""
    runs = journal.runs.list()
    assert [(run.state, run.error, run.attempts) for run in runs] == [("done", None, 0)] * count
    paid = sorted(call["claim_id"] for call in Bank(folder / "bank").executed)
    assert paid == sorted(f"{number}/{step}" for number in range(count) for step in STEPS)
    assert {one.state for one in journal.effects.list()} == {"settled"}
    assert list(journal.audit.verify()) == []


def paid(folder: Path, times: int) -> None:
    """Wait until the runs are that far."""
    until(lambda: True if len(Bank(folder / "bank").calls) >= times else None, timeout_s=90)
