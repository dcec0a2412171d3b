"""What Procrastinate's tables hold, row by row of them, so that nothing piles up there unseen."""

from __future__ import annotations

from checkpointing import Journal
from checkpointing.dispatch import TASK

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


def tables(journal: Journal) -> dict[str, int]:
    """Return what the queue's tables hold; empty where there is no queue."""
    if not journal.store.dialect.dispatches:
        return {}
    with journal.store.reading() as tx:
        row = tx.one(TABLES, task=TASK)
    assert row is not None
    return {name: int(value) for name, value in row.items()}
