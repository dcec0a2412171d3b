"""
How a database means to run a statement: what was sent is recorded, and explained afterwards in a database that is full.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, cast
from unittest.mock import patch

import psycopg

from checkpointing import Journal
from checkpointing.sqlite import SqliteEngine
from checkpointing.store import Tx

GROWING = {
    "approval_votes",
    "approvals",
    "audit",
    "audit_heads",
    "checkpoint_blobs",
    "checkpoint_writes",
    "checkpoints",
    "effect_generations",
    "effects",
    "idempotency_keys",
    "leases",
    "notices",
    "procrastinate_events",
    "procrastinate_jobs",
    "runs",
    "submissions",
    "writes",
}
"""Tables that have more rows the more runs there were; `writes` is LangGraph's on SQLite."""

WALKED = {
    "approvals_queue": "in the order in which they expire, up to the limit",
    "approvals_pending": "in the order in which they expire, up to the limit",
    "notices_by_time": "only what nobody was told of yet is in it, up to the limit",
    "procrastinate_jobs_lock_idx_v1": "only jobs that are at work are in it",
    "procrastinate_jobs_priority_idx_v1": "only jobs that wait are in it, in the order in which they are fetched",
}
"""Indexes that may be read from their beginning, and why that is not the whole table."""

NUMBERS = count()
EXPLAINED = re.compile(r"\s*(select(?! set_config)|insert|update|delete|with|replace)\b", re.IGNORECASE)


@dataclass
class Sent:
    """
    What was sent to the database.

    Attributes:
        statements: Each with the parameters it was sent with last; SQLite's have theirs in the text.
        count: How many were sent.
    """

    statements: dict[str, Any] = field(default_factory=dict)
    count: int = 0

    def note(self, sql: str, parameters: Any = None) -> None:
        """Note one."""
        if EXPLAINED.match(sql):
            self.count += 1
            self.statements[sql] = parameters


@contextmanager
def sent(journal: Journal) -> Iterator[Sent]:
    """Record what the journal sends while the block runs, in whichever thread."""
    engine, found = journal.store.engine, Sent()
    with ExitStack() as stack:
        if isinstance(engine, SqliteEngine):
            _trace(stack, engine, found)
        else:
            for method in ("execute", "executemany"):
                stack.enter_context(
                    patch.object(psycopg.Cursor, method, _noting(getattr(psycopg.Cursor, method), found))
                )
        yield found


def _noting(original: Any, found: Sent) -> Any:
    def noting(self: Any, sql: Any, parameters: Any = None, *rest: Any, **named: Any) -> Any:
        many = original.__name__ == "executemany"
        given = list(parameters) if many else parameters
        if isinstance(sql, str) and (given or not many):
            found.note(sql, given[0] if many else given)
        return original(self, sql, given, *rest, **named)

    return noting


def _trace(stack: ExitStack, engine: SqliteEngine, found: Sent) -> None:
    connect = engine.connect

    def traced() -> Any:
        connection = connect()
        connection.set_trace_callback(found.note)
        return connection

    stack.enter_context(patch.object(engine, "connect", traced))
    for connection in engine._all:
        connection.set_trace_callback(found.note)
        stack.callback(connection.set_trace_callback, None)


def scans(tx: Tx, sql: str, parameters: Any = None) -> list[str]:
    """Return what reads the whole of a table that grows, or of an index of it, in the database's plan for the statement."""
    if tx.dialect.name == "sqlite":
        return [step for step in sqlite_steps(tx, sql, parameters) if _is_sqlite_scan(step)]
    return [_words(node) for node in nodes(postgres_plan(tx, sql, parameters)) if _is_postgres_scan(node)]


def sorts(tx: Tx, sql: str, parameters: Any = None) -> list[str]:
    """Return what the database would put in order itself, so that it has to read everything before the first row."""
    if tx.dialect.name == "sqlite":
        return [step for step in sqlite_steps(tx, sql, parameters) if "TEMP B-TREE" in step]
    return [node["Node Type"] for node in nodes(postgres_plan(tx, sql, parameters)) if "Sort" in node["Node Type"]]


def _is_sqlite_scan(step: str) -> bool:
    found = re.match(r"SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?", step)
    return found is not None and found[1] in GROWING and found[2] not in WALKED


def _is_postgres_scan(node: dict[str, Any]) -> bool:
    kind, table, index = node["Node Type"], node.get("Relation Name"), node.get("Index Name")
    if "Seq Scan" in kind:
        return table in GROWING
    return index is not None and "Index Cond" not in node and index not in WALKED


def _words(node: dict[str, Any]) -> str:
    return f"{node['Node Type']} of {node.get('Relation Name', node.get('Index Name'))}"


def sqlite_steps(tx: Tx, sql: str, parameters: Any = None) -> list[str]:
    """Return the steps of SQLite's plan."""
    # A text that was never sent before: Python keeps prepared statements, and an `explain` that was prepared before an index was dropped stays as it was.
    return [str(row["detail"]) for row in _rows(tx, f"explain query plan {sql} -- {next(NUMBERS)}", parameters)]


def postgres_plan(tx: Tx, sql: str, parameters: Any = None, *, run: bool = False) -> dict[str, Any]:
    """Return Postgres's plan, with what it really did if it is to *run* the statement."""
    [row] = _rows(tx, f"explain (format json{', analyze' if run else ''}) {sql}", parameters)
    plan = row["QUERY PLAN"]
    return cast("dict[str, Any]", (json.loads(plan) if isinstance(plan, str | bytes) else plan)[0]["Plan"])


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every node of the plan."""
    yield plan
    for one in plan.get("Plans", ()):
        yield from nodes(one)


def rows_read(plan: dict[str, Any]) -> dict[str, int]:
    """Return how many rows a plan that was run has read, by table, those too that it threw away."""
    found: dict[str, int] = {}
    for node in nodes(plan):
        if (table := node.get("Relation Name")) in GROWING and "Scan" in node["Node Type"]:
            thrown = sum(value for name, value in node.items() if name.startswith("Rows Removed by"))
            found[table] = found.get(table, 0) + round((node["Actual Rows"] + thrown) * node["Actual Loops"])
    return found


def _rows(tx: Tx, sql: str, parameters: Any = None) -> list[dict[str, Any]]:
    if parameters is None:
        tx.cursor.execute(sql)
    else:
        tx.cursor.execute(sql, parameters)
    columns = [column[0] for column in tx.cursor.description]
    return [
        dict(row) if isinstance(row, dict) else dict(zip(columns, row, strict=True)) for row in tx.cursor.fetchall()
    ]
