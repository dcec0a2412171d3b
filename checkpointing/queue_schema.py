"""
The tables of Procrastinate, which dispatches on Postgres: installed and brought up to date by the journal's own migration.

Procrastinate ships its schema, and one file a change since. A new database gets the schema; one that has it gets the files that are newer than
the one on record. All of it is one transaction with that record, so a crash leaves the tables as they were or as they are to be.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from procrastinate.schema import SchemaManager

from checkpointing.errors import SchemaTooNew
from checkpointing.store import Tx

RECORD_TABLE = "create table if not exists counterfoil_queue_schema (change text primary key)"
NEWEST = "select max(change) as change from counterfoil_queue_schema"
RECORD = "insert into counterfoil_queue_schema (change) values (:change) on conflict do nothing"


def changes() -> list[str]:
    """Return the names of Procrastinate's changes, oldest first."""
    folder = files("procrastinate.sql").joinpath("migrations")
    return sorted(path.name for path in folder.iterdir() if path.name.endswith(".sql"))


def installed(tx: Tx) -> str | None:
    """Return the newest change on record, or `None`; its table must be there."""
    row = tx.one(NEWEST)
    return str(row["change"]) if row and row["change"] else None


def install(tx: Tx) -> None:
    """
    Bring Procrastinate's tables to the version of the package.

    Raises:
        SchemaTooNew: they were brought to a newer one by a newer Counterfoil.
    """
    tx.all(RECORD_TABLE)
    found, known = installed(tx), changes()
    if found is None:
        _run(tx.cursor, SchemaManager.get_schema())
    elif found > known[-1]:
        raise SchemaTooNew(
            f"the journal's queue has the tables of a newer Procrastinate ({found}); update Counterfoil; nothing was changed"
        )
    for change in known if found else ():
        if found and change > found:
            _run(tx.cursor, files("procrastinate.sql").joinpath("migrations", change).read_text(encoding="utf-8"))
    tx.all(RECORD, change=known[-1])


def _run(cursor: Any, script: str) -> None:
    """Run a script of many statements as it is, which a cursor with binary results cannot."""
    with cursor.connection.cursor(binary=False) as plain:
        plain.execute(script)
