"""What stands in the queue: how much is due and since when, and what Procrastinate's tables hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from checkpointing import Journal
from checkpointing.dispatch import TASK

DUE = """
select count(*) as runs, coalesce(:now - min(due_ms), 0) as lag_ms from runs where graph = :graph and due_ms <= :now
"""
TABLES = """
select
    (select count(*) from procrastinate_jobs where status = 'todo' and task_name = :task) as todo,
    (select count(*) from procrastinate_jobs where status = 'doing' and task_name = :task) as doing,
    (select count(*) from procrastinate_jobs where status = 'failed') as failed,
    (select count(*) from procrastinate_jobs) as jobs,
    (select count(*) from procrastinate_events) as events,
    (select count(*) from procrastinate_periodic_defers) as defers,
    (select count(*) from procrastinate_workers) as workers
"""


@dataclass(frozen=True, slots=True)
class Lag:
    """
    How far the workers are behind.

    Attributes:
        runs: How many are due; those that are being carried on are among them.
        oldest_ms: For how long the first of them has been.
    """

    runs: int
    oldest_ms: int


def lag(journal: Journal, graph: str) -> Lag:
    """Return how far the workers of the graph are behind."""
    with journal.store.reading() as tx:
        row = tx.one(DUE, graph=graph)
    assert row is not None
    return Lag(int(row["runs"]), int(row["lag_ms"]))


def tables(journal: Journal) -> dict[str, int]:
    """Return what the queue's tables hold; empty where there is no queue."""
    if not journal.store.dialect.dispatches:
        return {}
    with journal.store.reading() as tx:
        rows: list[dict[str, Any]] = tx.all(TABLES, task=TASK)
    return {name: int(value) for name, value in rows[0].items()}
