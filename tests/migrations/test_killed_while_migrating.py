"""Killed while the tables of Postgres are made: the next one finishes. What both engines pass is in `tests/crash`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from checkpointing import open_journal
from checkpointing.granting import grant
from checkpointing.journal import look_at
from graph import thread
from tests.support.points import die_at
from tests.support.processes import killed, start
from tests.support.roles import Role
from tests.support.small_claim import THREAD, small_claim


def migrating(url: str, role: str | None, point: str) -> None:
    die_at(point)
    with open_journal(url) as journal:
        if role:
            grant(journal.store, role)


@pytest.mark.parametrize("point", ["before schema.queue", "after schema.queue"])
def test_killed_while_the_queue_was_made(new_postgres: Callable[[], str], tmp_path: Path, point: str) -> None:
    url = new_postgres()
    killed(start(migrating, url, None, point))
    assert look_at(url)[0].queue == (look_at(url)[1].queue if point.startswith("after") else None)

    with open_journal(url) as journal:
        small_claim(journal, tmp_path).submit({"claim_id": "0042"}, thread(THREAD))
        with journal.store.reading() as tx:
            assert [row["n"] for row in tx.all("select count(*) as n from procrastinate_jobs")] == [1]


@pytest.mark.parametrize("point", ["before schema.grant", "after schema.grant"])
def test_killed_while_a_role_was_let_in(
    new_role: Callable[[str], Role], new_postgres: Callable[[], str], point: str
) -> None:
    """It may do all or nothing; being let in again is the same."""
    role = new_role(new_postgres())
    killed(start(migrating, role.owners_url, role.name, point))

    assert role.may("runs", "insert") == point.startswith("after")
    assert role.may("procrastinate_jobs", "update") == point.startswith("after")
    migrated_again(role)
    assert role.may("runs", "insert")
    assert not role.may("counterfoil_schema", "insert"), "what says how far the tables are is the owner's to write"


def migrated_again(role: Role) -> None:
    with open_journal(role.owners_url) as journal:
        grant(journal.store, role.name)
