"""
The schema, brought up to date under a lock: of several processes that open an empty database at once, one migrates.

Migrations are the numbered files in `schema/`, applied in order and never edited once merged. Each is one transaction with the
row that records it, so a crash leaves the schema at a whole number. A schema newer than this code is refused. One that is up to date is only read,
so that a role which may not create tables can open it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files

from psycopg.sql import SQL, Identifier

from checkpointing import queue_schema, standing
from checkpointing.errors import JournalUnusable
from checkpointing.postgres import IN_THE_WAY, MAY_NOT, PostgresEngine
from checkpointing.standing import NEWEST, Standing
from checkpointing.store import Store, Tx

LOCK = 0x636F756E746572
"""The advisory lock that every migrating process takes on Postgres: the bytes of `counter`."""
LOCK_WAIT_S = 60.0

VERSIONS_TABLE = "create table if not exists counterfoil_schema (version bigint primary key)"
TRY_LOCK = "select pg_try_advisory_xact_lock(%s) as got"
STAND_STILL = "select set_config('idle_in_transaction_session_timeout', '0', true)"
SCHEMA_THERE = "select 1 as there from pg_namespace where nspname = :schema"
RECORD = "insert into counterfoil_schema (version) values (:version)"


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema: its number, and its statements in order."""

    version: int
    statements: tuple[str, ...]


def migrations() -> list[Migration]:
    """Return every migration this code has, oldest first."""
    found = sorted(
        path.name for path in files("checkpointing").joinpath("schema").iterdir() if path.name.endswith(".sql")
    )
    return [Migration(int(name.split("_")[0]), _statements(name)) for name in found]


def known(savers: int, *, dispatches: bool) -> Standing:
    """Return how far this code brings the tables, with or without a queue beside them; LangGraph's saver brings its own up to *savers*."""
    return Standing(migrations()[-1].version, saver=savers, queue=queue_schema.changes()[-1] if dispatches else None)


def bring_up_to_date(store: Store, aim: Standing, make_savers_tables: Callable[[], None]) -> Standing:
    """
    Bring all tables to *aim*, and return how far they were; where nothing is to be done nothing is written and no lock is taken.

    A crash before a migration's commit leaves the version before it; opening again goes on from there.

    Raises:
        SchemaTooNew: the database was migrated by a newer Counterfoil.
        JournalUnusable: this role may not change tables, or another's are in the way, or another process has been migrating for longer than a minute.
    """
    before = standing.found(store)
    standing.check(before, aim)
    # LangGraph's tables on SQLite have no version, so whether they are its newest is for it to see.
    if store.dialect.dispatches and before.reaches(aim):
        return before
    try:
        with alone(store):
            migrate(store)
            make_savers_tables()
    except (MAY_NOT, *IN_THE_WAY) as error:
        raise JournalUnusable(_why_not(store, before, aim, error)) from error
    return before


def migrate(store: Store) -> None:
    """Bring our tables and Procrastinate's to this code's version; call it while `alone`."""
    with store.transaction("schema.begin") as tx:
        _make_schema(store, tx)
        tx.all(VERSIONS_TABLE)
    for migration in migrations():
        with store.transaction("schema.migrate") as tx:
            if _version(tx) < migration.version:
                _apply(tx, migration)
    if store.dialect.dispatches:
        with store.transaction("schema.queue") as tx:
            queue_schema.install(tx)


@contextmanager
def alone(store: Store) -> Iterator[None]:
    """
    Keep every other migrating process out.

    On Postgres by an advisory lock of a transaction, which a proxy leaves on one connection, and which ends with it. It is asked for again and
    again rather than waited for: a statement that waits holds a snapshot, and `create index concurrently`, which LangGraph's own setup uses, waits
    for every snapshot. A transaction that stands still between two statements has none.
    On SQLite a write transaction is alone anyway.
    """
    if not isinstance(store.engine, PostgresEngine):
        yield
        return
    patience = time.monotonic() + LOCK_WAIT_S
    with store.engine.lent() as connection:
        while time.monotonic() < patience:
            with connection.transaction():
                row = connection.execute(TRY_LOCK, (LOCK,)).fetchone()
                if row and row["got"]:
                    connection.execute(STAND_STILL)
                    yield
                    return
            time.sleep(0.05)
    raise JournalUnusable(f"{store.engine.place}: another process has held the migration lock for a minute")


def _make_schema(store: Store, tx: Tx) -> None:
    """Make the schema the journal is to be in, where it is missing; asked first, because who may not make one may not say `if not exists` either."""
    if isinstance(engine := store.engine, PostgresEngine) and not tx.one(SCHEMA_THERE, schema=engine.way.schema):
        tx.cursor.execute(SQL("create schema {}").format(Identifier(engine.way.schema)))


def _why_not(store: Store, before: Standing, aim: Standing, error: Exception) -> str:
    after, role = standing.found(store), store.engine.way.role if isinstance(store.engine, PostgresEngine) else ""
    if isinstance(error, MAY_NOT):
        do = f"role {role!r} may not change that; run counterfoil migrate as a role that may create tables"
    else:
        do = f"{str(error).splitlines()[0]}; give the journal a schema of its own (COUNTERFOIL_SCHEMA)"
    changed = "nothing was changed" if after == before else "what was done stays done"
    return f"the journal has {after} and this Counterfoil needs {aim}: {do}; {changed}"


def _apply(tx: Tx, migration: Migration) -> None:
    for statement in migration.statements:
        tx.all(statement)
    tx.all(RECORD, version=migration.version)


def _version(tx: Tx) -> int:
    row = tx.one(NEWEST)
    return int(row["version"] or 0) if row else 0


def _statements(name: str) -> tuple[str, ...]:
    text = files("checkpointing").joinpath("schema", name).read_text(encoding="utf-8")
    code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--"))
    return tuple(statement.strip() for statement in code.split(";") if statement.strip())
