"""A journal of an earlier schema is opened by today's code with everything in it, and every order of migrating gives one schema."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from checkpointing import Journal, migrate, open_journal
from checkpointing.migrate import Migration, migrations
from checkpointing.store import Tx
from graph import approve, thread
from tests.support.blocked import Peer
from tests.support.small_claim import THREAD, small_claim

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


def test_the_sum_of_the_migrations_is_the_schema(
    new_url: Callable[[], str], engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other over several openings, or all at once: the same columns and indexes."""
    at_once, stepwise = new_url(), new_url()
    with open_journal(at_once) as journal:
        expected = described(journal, engine)
    for migration in migrations():
        with monkeypatch.context() as patched:
            up_to(migration.version, patched)
            open_journal(stepwise).close()
    with open_journal(stepwise) as journal:
        assert described(journal, engine) == expected


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


def described(journal: Journal, engine: str) -> list[tuple[Any, ...]]:
    with journal.store.reading() as tx:
        return sorted(_columns(tx, engine))


def _columns(tx: Tx, engine: str) -> list[tuple[Any, ...]]:
    if engine == "postgres":
        rows = tx.all(
            "select table_name, column_name, data_type, is_nullable from information_schema.columns where table_schema = 'public'"
        )
        indexes = tx.all("select indexname, indexdef from pg_indexes where schemaname = 'public'")
        return [tuple(row.values()) for row in rows] + [(*row.values(), "", "") for row in indexes]
    return [(row["name"], row["sql"] or "", "", "") for row in tx.all("select name, sql from sqlite_master")]


def test_a_run_that_was_parked_before_the_migration_is_paid_after_it(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row is written as the first schema had it: today's code writes no column it did not know while it parks."""
    with monkeypatch.context() as patched:
        up_to(FIRST, patched)
        with open_journal(url) as journal, journal.store.transaction("test") as tx:
            tx.all("alter table effects add column generation bigint not null default 1")
            tx.all("alter table approvals add column withdrawn_by text")
            tx.all("alter table approvals add column withdrawn_why text")
            tx.all("alter table approvals add column withdrawn_ms bigint")
            tx.all("alter table leases add column before_ms bigint not null default 0")
        with open_journal(url) as journal:
            small_claim(journal, tmp_path).invoke({"claim_id": "0042"}, thread(THREAD))
        with open_journal(url) as journal, journal.store.transaction("test") as tx:
            tx.all("alter table leases drop column before_ms")
            tx.all("alter table effects drop column generation")
            for column in ("withdrawn_by", "withdrawn_why", "withdrawn_ms"):
                tx.all(f"alter table approvals drop column {column}")
    with open_journal(url) as journal:
        graph = small_claim(journal, tmp_path)
        [pending] = journal.approvals.pending(thread_id=THREAD)
        state = graph.invoke(approve(pending), thread(THREAD, principal="adjuster-17"))

    assert state["payment"]["paid"] == 1840_00
