"""A journal of an earlier schema is opened by today's code with everything in it, and the migrations add up to the schema that is written down."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from checkpointing import Journal, migrate, open_journal
from checkpointing.migrate import Migration, migrations
from graph import approve, thread
from tests.migrations.described import described
from tests.support.bank import Bank
from tests.support.blocked import Peer
from tests.support.small_claim import THREAD, small_claim

HERE = Path(__file__).parent
FIRST = 1
INSERT = """
insert into approvals (id, thread_id, node, name, visit, round, root, task, checkpoint, payload, payload_hash, allowed, on_expiry, state,
    opened_ms) values ('apr_1', 't', 'ask', 'payout', 0, 0, 'r', 't', '@r', '{"a": 1}', 'h', '["approve"]', 'reject', 'decided', 7)
"""


def up_to(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this code one that knows no later schema than *version*."""
    known = migrations()

    def earlier() -> list[Migration]:
        return [one for one in known if one.version <= version]

    monkeypatch.setattr(migrate, "migrations", earlier)


def test_a_journal_of_the_first_schema_keeps_its_rows(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        up_to(FIRST, patched)
        with open_journal(url) as journal, journal.store.transaction("test") as tx:
            tx.all(INSERT)
    with open_journal(url) as journal:
        kept = journal.approvals.get("apr_1")

    assert (kept.state, kept.payload, kept.withdrawn_by) == ("decided", {"a": 1}, None)
    assert kept.opened_at.timestamp() == timedelta(milliseconds=7).total_seconds()


def test_the_migrations_add_up_to_the_schema_that_is_written_down(url: str, engine: str) -> None:
    """Nobody changes a column, an index or a check unnoticed; `described.py` says how to write a new one down."""
    with open_journal(url) as journal:
        assert described(journal, engine) == (HERE / f"schema.{engine}.txt").read_text().splitlines()


def test_a_decision_under_way_while_the_table_is_made_anew_is_not_lost(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker of the earlier code decides; the migration waits for it, and the decision is there afterwards."""
    with open_journal_at_first_schema(url, monkeypatch) as before:
        with before.store.transaction("test") as tx:
            tx.all(INSERT.replace("'decided'", "'pending'"))
        with before.store.transaction("approval.decide") as tx:
            tx.all("update approvals set state = 'decided' where id = 'apr_1'")
            opening = Peer(before, lambda: open_journal(url))
            opening.until_blocked()
        with opening.result() as after:
            assert after.approvals.get("apr_1").state == "decided"


def open_journal_at_first_schema(url: str, monkeypatch: pytest.MonkeyPatch) -> Journal:
    with monkeypatch.context() as patched:
        up_to(FIRST, patched)
        return open_journal(url)


def test_a_worker_goes_on_after_a_migration_beside_it(url: str, engine: str) -> None:
    """Statements that a connection had prepared would fail for ever, once a column is added to their table."""
    with open_journal(url) as worker:
        for _ in range(30):
            worker.effects.list(thread_id="t")
        with open_journal(url) as other, other.store.transaction("test") as tx:
            tx.all("alter table effects add column later_on text")
        for _ in range(5):
            assert worker.effects.list(thread_id="t") == []


def load(url: str, engine: str, script: str) -> None:
    """Fill an empty database with what another code wrote."""
    if engine == "sqlite":
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            connection.executescript(script)
    else:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(script)  # pyright: ignore[reportArgumentType, reportCallIssue]  # our own file


def test_a_run_that_was_parked_by_the_first_schemas_code_is_paid_by_todays(
    url: str, engine: str, tmp_path: Path
) -> None:
    """The journal is one that the code of the first schema wrote while it parked the claim."""
    load(url, engine, (HERE / f"parked_at_first_schema.{engine}.sql").read_text())
    with open_journal(url) as journal:
        graph = small_claim(journal, tmp_path)
        [pending] = journal.approvals.pending(thread_id=THREAD)
        state = graph.invoke(approve(pending), thread(THREAD, principal="adjuster-17"))
        assert list(journal.audit.verify()) == []
        assert journal.runs.get(THREAD).state == "done"

    assert state["payment"]["paid"] == 1840_00
    assert len(Bank(tmp_path / "bank").calls) == 1
    assert not (tmp_path / "model").exists(), "what the model had said then is what was approved"
