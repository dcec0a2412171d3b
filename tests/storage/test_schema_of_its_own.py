"""
Journals in schemas of their own: several in one database, each with its own queue, none in the way of another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from checkpointing import Journal, open_journal
from checkpointing.errors import JournalUnusable
from tests.support.at_work import LEASE, all_in, approve_all, paid_once_each, submit, workers
from tests.support.roles import Role
from tests.support.small_claim import small_claim

JOBS = "select count(*) from {}.procrastinate_jobs"
ALIVE = "select count(*) from {}.procrastinate_workers"


@contextmanager
def in_schema(url: str, schema: str, folder: Path) -> Iterator[Journal]:
    folder.mkdir(exist_ok=True)
    with open_journal(url, lease=LEASE, schema=schema, artefacts=str(folder / "artefacts")) as journal:
        yield journal


def counted(url: str, query: str, schema: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(SQL(query).format(Identifier(schema))).fetchone()  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        assert row is not None
        return int(row[0])


def test_the_workers_of_two_journals_in_one_database_carry_their_own_runs_on(
    new_postgres: Callable[[], str], tmp_path: Path
) -> None:
    """The same threads are in both; a worker of the one sees, wakes and pays nothing of the other."""
    url, here, there = new_postgres(), tmp_path / "motor", tmp_path / "home"
    with in_schema(url, "motor", here) as motor, in_schema(url, "home", there) as home:
        threads = submit(small_claim(motor, here), 4)
        assert submit(small_claim(home, there), 4) == threads
        with workers(1, url, here, schema="motor"):
            all_in(motor, "parked", 4)
            assert {run.state for run in home.runs.list()} == {"admitted"}
            assert (counted(url, JOBS, "home"), counted(url, ALIVE, "home")) == (4, 0)
            with workers(1, url, there, schema="home"):
                for journal in (motor, home):
                    all_in(journal, "parked", 4)
                    approve_all(journal)
                for journal in (motor, home):
                    all_in(journal, "done", 4)

        paid_once_each(motor, here, threads)
        paid_once_each(home, there, threads)
    with psycopg.connect(url) as connection:
        in_public = connection.execute("select count(*) from pg_class where relnamespace = 'public'::regnamespace")
        assert in_public.fetchone() == (0,)


def test_tables_in_another_schema_of_the_path_are_not_taken_for_the_journals(new_postgres: Callable[[], str]) -> None:
    """Where the role's own path has a second schema, a journal there is a second one."""
    url = new_postgres()
    open_journal(url).close()
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("create schema claims")
    with (
        open_journal(f"{url}{'&' if '?' in url else '?'}options=-c%20search_path%3Dclaims,public") as journal,
        journal.store.transaction("test") as tx,
    ):
        tx.all("insert into leases (name, owner, fence, expires_ms) values ('one', 'me', 1, 1)")

    assert counted(url, "select count(*) from {}.leases", "public") == 0
    assert counted(url, "select count(*) from {}.leases", "claims") == 1


def test_a_schema_is_the_roles_own_where_none_is_named(
    new_postgres: Callable[[], str], new_role: Callable[[str], Role]
) -> None:
    role = new_role(new_postgres())
    role.as_owner("create schema claims")
    role.let_create("claims")
    role.set("search_path", "claims")

    with open_journal(role.url) as journal:
        assert journal.runs.list() == []
    assert counted(role.owners_url, "select count(*) from {}.counterfoil_schema", "claims") > 0


def test_a_role_that_may_not_use_the_schema_is_told_so(
    new_postgres: Callable[[], str], new_role: Callable[[str], Role]
) -> None:
    role = new_role(new_postgres())
    open_journal(role.owners_url, schema="claims").close()

    with pytest.raises(
        JournalUnusable, match=f"may not use the schema 'claims'.*counterfoil migrate --grant {role.name}"
    ):
        open_journal(role.url, schema="claims")


def test_a_schema_that_is_missing_is_not_made_by_who_may_not(
    new_postgres: Callable[[], str], new_role: Callable[[str], Role]
) -> None:
    role = new_role(new_postgres())

    with pytest.raises(JournalUnusable, match="may not change that; run counterfoil migrate .*nothing was changed"):
        open_journal(role.url, schema="claims")


def test_a_role_without_any_schema_is_told_to_name_one(
    new_postgres: Callable[[], str], new_role: Callable[[str], Role]
) -> None:
    role = new_role(new_postgres())
    role.set("search_path", "nowhere")

    with pytest.raises(JournalUnusable, match="has no schema to keep tables in; name one with COUNTERFOIL_SCHEMA"):
        open_journal(role.url)


@pytest.mark.parametrize("name", ["", "Claims", "a b", "x" * 64, "a;drop", "1st", 'a"b', "claims\n"])
def test_what_is_no_name_for_a_schema_is_refused(postgres_server: str, name: str) -> None:
    with pytest.raises(JournalUnusable, match="cannot be a schema's name"):
        open_journal(postgres_server, schema=name)


def test_a_schema_may_have_the_name_of_a_word_of_sql(new_postgres: Callable[[], str]) -> None:
    url = new_postgres()
    with open_journal(url, schema="user") as journal:
        assert journal.runs.list() == []

    assert counted(url, "select count(*) from {}.counterfoil_schema", "user") > 0


def test_a_file_has_no_schema(tmp_path: Path) -> None:
    with pytest.raises(JournalUnusable, match="a SQLite file has no schemas"):
        open_journal(f"sqlite:///{tmp_path}/claims.db", schema="claims")
