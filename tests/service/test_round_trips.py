"""
What one run costs in the database, from its submission to its end: counted, so that it is the same on every machine.

The numbers are what a run of four nodes, one question to a model and one effect takes today. Whoever has to raise one says in the commit what the
run gets for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

from benchmarks.claim import NAME, measured_claim
from checkpointing import Journal
from graph import thread
from service.worker import Draining
from service.worker.advancing import advance
from tests.support.plans import sent

TRANSACTIONS = 19
"""Commits, each of which waits for the disk where it wrote something."""
READS = 18
STATEMENTS = {"sqlite": 113, "postgres": 110}
"""All of them, in transactions too; a list of rows that is written at once is one on Postgres, and what is told to a new connection is none."""


def test_a_run_costs_no_more_of_the_database_than_it_did(journal: Journal) -> None:
    graph, lent = measured_claim(journal, model_s=0), Counter[str]()

    with ExitStack() as stack:
        for way in ("writing", "reading"):
            stack.enter_context(patch.object(journal.store.engine, way, counting(journal, way, lent)))
        found = stack.enter_context(sent(journal))
        graph.submit({"claim_id": "0042"}, thread("claim-0042"))
        assert advance({NAME: graph}, journal, "claim-0042", Draining()).outcome == "done"

    assert lent["writing"] <= TRANSACTIONS
    assert lent["reading"] <= READS
    assert 0 < found.count <= STATEMENTS[journal.store.engine.name]


def counting(journal: Journal, way: str, lent: Counter[str]) -> Callable[[], Any]:
    original = getattr(journal.store.engine, way)

    def counted() -> Any:
        lent[way] += 1
        return original()

    return counted
