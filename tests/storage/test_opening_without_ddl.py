"""
A role that may not create tables: it opens a journal that is up to date, and is told in one line what to do where it is not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from checkpointing import migrate, open_journal, queue_schema
from checkpointing.errors import JournalUnusable, SchemaTooNew
from checkpointing.granting import grant
from checkpointing.journal import look_at
from checkpointing.migrate import migrations
from tests.migrations.test_schema import FIRST, up_to
from tests.support.at_work import LEASE, all_in, approve_all, paid_once_each, submit, workers
from tests.support.roles import Role
from tests.support.small_claim import small_claim

WRITING = re.compile(r"\s*(create|alter|drop|insert|update|delete|begin|grant)\b|pg_try_advisory", re.IGNORECASE)


@pytest.fixture
def role(new_postgres: Callable[[], str], new_role: Callable[[str], Role]) -> Role:
    """An application's role, in a database whose tables are somebody else's to make."""
    return new_role(new_postgres())


def let_in(role: Role) -> None:
    with open_journal(role.owners_url) as journal:
        grant(journal.store, role.name)


@contextmanager
def every_statement() -> Iterator[list[str]]:
    """Note what is said to Postgres inside."""
    said: list[str] = []
    original = psycopg.Cursor.execute

    def execute(self: Any, query: Any, *rest: Any, **options: Any) -> Any:
        said.append(query.decode() if isinstance(query, bytes) else str(query))
        return original(self, query, *rest, **options)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(psycopg.Cursor, "execute", execute)
        yield said


def test_a_journal_that_is_up_to_date_is_opened_by_reading(new_postgres: Callable[[], str]) -> None:
    """One look around, one at the tables, one at each of three versions; no lock, no write, nothing that takes a right."""
    url = new_postgres()
    open_journal(url).close()

    with every_statement() as said:
        open_journal(url).close()

    asked = [one for one in said if "synchronous_commit', 'on'" not in one and one]
    assert len(asked) == 5
    assert [one for one in asked if WRITING.match(one)] == []


def test_a_role_without_the_right_to_create_tables_opens_submits_and_works(role: Role, tmp_path: Path) -> None:
    let_in(role)
    with pytest.raises(psycopg.errors.InsufficientPrivilege), psycopg.connect(role.url) as app:
        app.execute("create table if not exists counterfoil_schema (version bigint)")

    with open_journal(role.url, lease=LEASE, artefacts=str(tmp_path / "artefacts")) as journal:
        threads = submit(small_claim(journal, tmp_path), 3)
        with workers(2, role.url, tmp_path):
            all_in(journal, "parked", 3)
            approve_all(journal)
            all_in(journal, "done", 3)

        paid_once_each(journal, tmp_path, threads)


def test_an_empty_database_is_refused_and_left_as_it_is(role: Role) -> None:
    with pytest.raises(JournalUnusable) as told:
        open_journal(role.url)

    newest = migrations()[-1].version
    assert f"the journal has no tables and this Counterfoil needs schema {newest}, " in str(told.value)
    assert f"role {role.name!r} may not change that; run counterfoil migrate as a role that may create tables" in str(
        told.value
    )
    assert str(told.value).endswith("nothing was changed")
    assert role.as_owner("select relname from pg_class where relnamespace = 'public'::regnamespace") == []


def test_a_migration_that_is_pending_is_told_to_who_may_not_make_it(
    role: Role, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        up_to(FIRST, patched)
        let_in(role)
    before = look_at(role.url)[0]

    with pytest.raises(
        JournalUnusable, match=f"has schema {FIRST}, .* needs schema {migrations()[-1].version}, .*nothing was changed"
    ):
        open_journal(role.url)

    assert look_at(role.url)[0] == before
    let_in(role)
    open_journal(role.url).close()


def test_a_role_that_was_not_let_in_is_told_so(role: Role) -> None:
    open_journal(role.owners_url).close()

    with pytest.raises(JournalUnusable, match="permission denied for table .*counterfoil migrate --grant ROLE"):
        open_journal(role.url)


@pytest.mark.parametrize(
    "newer",
    [
        "insert into counterfoil_schema values (999)",
        "insert into counterfoil_queue_schema values ('99.00.00_01.sql')",
    ],
)
def test_a_newer_schema_is_refused_to_a_role_that_only_reads_too(role: Role, newer: str) -> None:
    let_in(role)
    role.as_owner(newer)

    for url in (role.url, role.owners_url):
        with pytest.raises(SchemaTooNew, match="update Counterfoil; nothing was changed"):
            open_journal(url)


def test_only_who_owns_the_tables_lets_a_role_in(role: Role, new_role: Callable[[str], Role]) -> None:
    let_in(role)
    another = new_role(role.owners_url)

    with open_journal(role.url) as journal:
        with pytest.raises(JournalUnusable, match="owner"):
            grant(journal.store, another.name)
        with pytest.raises(JournalUnusable, match="has no role 'nobody-at-all'; nothing was granted"):
            grant(journal.store, "nobody-at-all")

    assert not another.may("runs", "select")


def test_a_table_of_somebody_elses_is_not_given_away(role: Role) -> None:
    role.as_owner("create table salaries (person text)")
    let_in(role)

    assert role.may("runs", "insert")
    assert not role.may("salaries", "select")


def test_tables_of_another_procrastinate_are_left_alone(role: Role) -> None:
    role.as_owner("create table procrastinate_jobs (id bigint)")

    with pytest.raises(JournalUnusable, match="a schema of its own .*nothing was changed"):
        open_journal(role.owners_url)

    assert look_at(role.owners_url)[0].journal is None
    with open_journal(role.owners_url, schema="claims") as journal:
        assert journal.runs.list() == []


def test_a_table_of_somebody_elses_in_the_way_is_named(role: Role) -> None:
    role.as_owner("create table runs (kilometres bigint)")

    with pytest.raises(JournalUnusable, match='relation "runs" already exists; give the journal a schema of its own'):
        open_journal(role.owners_url)


def test_the_queues_tables_are_brought_up_by_the_changes_of_the_package(
    role: Role, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest change alone is applied to tables that have all before it."""
    known = queue_schema.changes()
    with open_journal(role.owners_url) as journal, journal.store.transaction("test") as tx:
        tx.all("delete from counterfoil_queue_schema")
        tx.all("insert into counterfoil_queue_schema (change) values (:change)", change=known[-2])
        tx.all("drop function procrastinate_trigger_function_status_events_update_v1 cascade")
    assert look_at(role.owners_url)[0].queue == known[-2]

    open_journal(role.owners_url).close()

    assert look_at(role.owners_url)[0].queue == known[-1]
    [made] = role.as_owner(
        "select count(*) from pg_trigger where tgname = 'procrastinate_trigger_status_events_update_v1'"
    )
    assert made == (1,)


def test_a_migration_lock_that_somebody_holds_is_waited_for_and_named(
    role: Role, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "LOCK_WAIT_S", 0.2)
    with psycopg.connect(role.owners_url) as other:
        other.execute("select pg_advisory_xact_lock(%s)", (migrate.LOCK,))
        with pytest.raises(JournalUnusable, match="another process has held the migration lock"):
            open_journal(role.owners_url)


def test_tables_are_made_where_the_database_reads_repeatably(role: Role) -> None:
    """A transaction that stands still with a snapshot would keep LangGraph's `create index concurrently` waiting for ever."""
    role.as_owner(
        "do $$ begin execute format('alter database %I set default_transaction_isolation = ''repeatable read''', current_database()); end $$"
    )
    role.as_owner(
        "do $$ begin execute format('alter database %I set statement_timeout = ''20s''', current_database()); end $$"
    )

    with open_journal(role.owners_url) as journal, journal.store.transaction("test") as tx:
        assert tx.one("show transaction_isolation") == {"transaction_isolation": "read committed"}
