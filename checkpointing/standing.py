"""
How far a database's tables are, found out by reading alone: a role that may not create tables opens a journal that is up to date.

Three parties have tables in a journal: we (a whole number), LangGraph's saver (a whole number) and on Postgres Procrastinate (the name of its newest
change). Tables are looked for in the schema that comes first, where new ones would be made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from checkpointing import queue_schema
from checkpointing.errors import JournalUnusable, SchemaTooNew
from checkpointing.postgres import MAY_NOT
from checkpointing.store import Store, Tx

NEWEST = "select max(version) as version from counterfoil_schema"
SAVERS_NEWEST = "select max(v) as v from checkpoint_migrations"
VERSIONS = {
    "counterfoil_schema": NEWEST,
    "checkpoint_migrations": SAVERS_NEWEST,
    "counterfoil_queue_schema": queue_schema.NEWEST,
}

THERE_ON_SQLITE = "select name from sqlite_master where type = 'table'"
THERE_ON_POSTGRES = "select relname as name from pg_class where relnamespace = to_regnamespace(quote_ident(current_schema())) and relkind = 'r'"


@dataclass(frozen=True, slots=True)
class Standing:
    """
    How far the tables are; `None` where there are none.

    Attributes:
        journal: Our own.
        saver: LangGraph's; on SQLite they have no number, and 0 is that they are there.
        queue: Procrastinate's, on Postgres.
        foreign: A table of somebody else's Procrastinate is there.
    """

    journal: int | None = None
    saver: int | None = None
    queue: str | None = None
    foreign: bool = False

    def reaches(self, wanted: Standing) -> bool:
        """Tell whether nothing is left to do for who wants *wanted*."""
        saver = self.saver is not None and self.saver >= (wanted.saver or 0)
        return saver and (self.journal, self.queue) == (wanted.journal, wanted.queue)

    def __str__(self) -> str:
        """Return it in a few words."""
        if self == Standing(foreign=self.foreign):
            return "no tables"
        queue = f", queue {self.queue.split('_')[0]}" if self.queue else ""
        return f"schema {self.journal or 0}, checkpoints {_number(self.saver)}{queue}"


def found(store: Store) -> Standing:
    """
    Return what is there; nothing is written.

    Raises:
        JournalUnusable: this role may not even read it.
    """
    try:
        return _found(store)
    except MAY_NOT as error:
        raise JournalUnusable(
            f"{str(error).splitlines()[0]}: who owns the journal's tables lets a role in with counterfoil migrate --grant ROLE"
        ) from error


def _found(store: Store) -> Standing:
    with store.reading() as tx:
        if not store.dialect.dispatches:
            there = {row["name"] for row in tx.all(THERE_ON_SQLITE)}
            return Standing(_newest(tx, there, "counterfoil_schema"), saver=0 if "writes" in there else None)
        there = {row["name"] for row in tx.all(THERE_ON_POSTGRES)}
        queue = _newest(tx, there, "counterfoil_queue_schema")
        return Standing(
            journal=_newest(tx, there, "counterfoil_schema"),
            saver=_newest(tx, there, "checkpoint_migrations"),
            queue=queue,
            foreign="procrastinate_jobs" in there and queue is None,
        )


def check(there: Standing, known: Standing) -> None:
    """
    Make sure that this code may work on what is there, or bring it further.

    Raises:
        SchemaTooNew: it was brought further by a newer Counterfoil.
        JournalUnusable: somebody else's Procrastinate is there.
    """
    if (there.journal or 0) > (known.journal or 0) or (there.queue or "") > (known.queue or ""):
        raise SchemaTooNew(
            f"the journal has {there} and this Counterfoil knows up to {known}: update Counterfoil; nothing was changed"
        )
    if there.foreign:
        raise JournalUnusable(
            "there are tables of a Procrastinate that is not this journal's: give the journal a schema of its own (COUNTERFOIL_SCHEMA); "
            "nothing was changed"
        )


def _newest(tx: Tx, there: set[str], table: str) -> Any:
    row = tx.one(VERSIONS[table]) if table in there else None
    return next(iter(row.values())) if row else None


def _number(version: int | None) -> str:
    return "none" if version is None else str(version)
