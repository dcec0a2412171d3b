"""
The schema, brought up to date under a lock: of several processes that open an empty database at once, one migrates.

Migrations are the numbered files in `schema/`, applied in order and never edited once merged. Each is one transaction with the
row that records it, so a crash leaves the schema at a whole number. A schema newer than this code is refused.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files

from psycopg.sql import SQL, Identifier

from checkpointing import queue_schema
from checkpointing.errors import JournalUnusable, SchemaTooNew
from checkpointing.postgres import PostgresEngine
from checkpointing.store import Store, Tx

LOCK = 0x636F756E746572
"""The advisory lock that every migrating process takes on Postgres: the bytes of `counter`."""
LOCK_WAIT_S = 60.0

VERSIONS_TABLE = "create table if not exists counterfoil_schema (version bigint primary key)"
NEWEST = "select max(version) as version from counterfoil_schema"
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


def migrate(store: Store) -> None:
    """
    Bring the schema to this code's version; call it while `alone`.

    A crash before a migration's commit leaves the version before it; opening again goes on from there.

    Raises:
        SchemaTooNew: the database was migrated by a newer Counterfoil.
        JournalUnusable: another process has been migrating for longer than a minute.
    """
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
    _refuse_newer(store)


@contextmanager
def alone(store: Store) -> Iterator[None]:
    """
    Keep every other migrating process out.

    On Postgres by an advisory lock of the session, asked for again and again rather than waited for: a session that waits holds a
    snapshot, and `create index concurrently`, which LangGraph's own setup uses, waits for every snapshot.
    On SQLite a write transaction is alone anyway.
    """
    if not isinstance(store.engine, PostgresEngine):
        yield
        return
    with store.engine.pool.connection() as connection:
        patience = time.monotonic() + LOCK_WAIT_S
        while True:
            row = connection.execute("select pg_try_advisory_lock(%s) as got", (LOCK,)).fetchone()
            if row and row["got"]:
                break
            if time.monotonic() > patience:
                raise JournalUnusable(f"{store.engine.place}: another process has held the migration lock for a minute")
            time.sleep(0.05)
        try:
            yield
        finally:
            connection.execute("select pg_advisory_unlock(%s)", (LOCK,))


def _make_schema(store: Store, tx: Tx) -> None:
    """Make the schema the journal is to be in, where it is missing; asked first, because who may not make one may not say `if not exists` either."""
    if isinstance(engine := store.engine, PostgresEngine) and not tx.one(SCHEMA_THERE, schema=engine.way.schema):
        tx.cursor.execute(SQL("create schema {}").format(Identifier(engine.way.schema)))


def _apply(tx: Tx, migration: Migration) -> None:
    for statement in migration.statements:
        tx.all(statement)
    tx.all(RECORD, version=migration.version)


def _version(tx: Tx) -> int:
    row = tx.one(NEWEST)
    return int(row["version"] or 0) if row else 0


def _refuse_newer(store: Store) -> None:
    with store.reading() as tx:
        found = _version(tx)
    if found > (newest := migrations()[-1].version):
        raise SchemaTooNew(
            f"the journal has schema {found} and this Counterfoil knows up to {newest}: update Counterfoil; nothing was changed"
        )


def _statements(name: str) -> tuple[str, ...]:
    text = files("checkpointing").joinpath("schema", name).read_text(encoding="utf-8")
    code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--"))
    return tuple(statement.strip() for statement in code.split(";") if statement.strip())
