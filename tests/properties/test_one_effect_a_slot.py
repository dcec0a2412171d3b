"""
Any graph, any history: every effect is executed once, every approval is decided once, one worker writes, and the record is whole.

Examples: 240 on SQLite and 60 on Postgres, the same ones every time, in four parts that run side by side under `pytest -n`. With
`COUNTERFOIL_EXAMPLES` that many, and new ones; `just properties` is the long run.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import psycopg
import pytest

from checkpointing import open_journal
from tests.properties.machine import NewUrl, explore

EXAMPLES = {"sqlite": 240, "postgres": 60}
PARTS = 4


def examples(engine: str) -> int:
    return int(os.environ.get("COUNTERFOIL_EXAMPLES", EXAMPLES[engine])) // PARTS or 1


@pytest.fixture
def journal_for(engine: str, request: pytest.FixtureRequest) -> NewUrl:
    """Makes an empty journal for every example: a file in its folder, or one database that is emptied again."""
    if engine == "sqlite":
        return lambda folder: f"sqlite:///{folder}/journal.db"
    create: Callable[[], str] = request.getfixturevalue("new_postgres")
    url = create()
    open_journal(url).close()
    return lambda folder: emptied(url)


def emptied(url: str) -> str:
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute("select tablename from pg_tables where schemaname = 'public'").fetchall()
        kept = {"counterfoil_schema", "counterfoil_queue_schema", "checkpoint_migrations"}
        names = ", ".join(sorted(name for (name,) in rows if name not in kept))
        connection.execute(f"truncate {names}")  # pyright: ignore[reportArgumentType, reportCallIssue]  # our own names
    return url


@pytest.mark.parametrize("part", range(PARTS))
def test_any_graph_and_any_history(engine: str, part: int, journal_for: NewUrl) -> None:
    fixed = None if "COUNTERFOIL_EXAMPLES" in os.environ else part

    explore(engine, journal_for, examples=examples(engine), fixed=fixed)
