"""
What an application's role needs of a journal's tables and nothing more: to read and write rows, and to use Procrastinate's functions and types.

The tables that say how far the others are it may only read; who may write them can make a half-migrated journal pass for a whole one. Granting is one
transaction, and doing it again changes nothing. Tables that a later migration makes are granted by `counterfoil migrate --grant` again.
"""

from __future__ import annotations

import re

from langgraph.checkpoint.postgres import PostgresSaver
from psycopg.sql import SQL, Identifier

from checkpointing.errors import JournalUnusable
from checkpointing.migrate import migrations
from checkpointing.postgres import MAY_NOT
from checkpointing.standing import VERSIONS
from checkpointing.store import Row, Store

MADE = re.compile(r"create table (?:if not exists )?(\w+)", re.IGNORECASE)

ROLE = "select 1 as there from pg_roles where rolname = :role"
SCHEMA = "select current_schema()::text as schema"
THINGS = """
select case relkind when 'S' then 'usage on sequence' else 'rows' end as what, relname::text as name, oid::regclass::text as called
from pg_class where relnamespace = to_regnamespace(quote_ident(current_schema())) and relkind in ('r', 'S')
union all
select 'execute on routine', proname::text, oid::regprocedure::text
from pg_proc where pronamespace = to_regnamespace(quote_ident(current_schema()))
union all
select 'usage on type', t.typname::text, t.oid::regtype::text
from pg_type t left join pg_class c on c.oid = t.typrelid
where t.typnamespace = to_regnamespace(quote_ident(current_schema())) and (t.typtype = 'e' or c.relkind = 'c')
"""
"""What a schema has, as Postgres itself writes it in a statement."""

GRANTED = "select has_table_privilege(:role, to_regclass('runs'), 'insert') as granted"


def grant(store: Store, role: str) -> None:
    """
    Let *role* work with the journal.

    Raises:
        JournalUnusable: there is no such role, or the journal has none, being a file, or who grants does not own the tables.
    """
    if not store.dialect.dispatches:
        raise JournalUnusable("a SQLite file has no roles to grant anything to; nothing was granted")
    try:
        _grant(store, role)
    except MAY_NOT as error:
        raise JournalUnusable(
            f"{str(error).splitlines()[0]}: let the tables' owner grant; nothing was granted"
        ) from error


def _grant(store: Store, role: str) -> None:
    with store.transaction("schema.grant") as tx:
        if not tx.one(ROLE, role=role):
            raise JournalUnusable(f"the server has no role {role!r}; nothing was granted")
        to = Identifier(role)
        row = tx.one(SCHEMA)
        assert row is not None
        tx.cursor.execute(SQL("grant usage on schema {} to {}").format(Identifier(row["schema"]), to))
        for thing in tx.all(THINGS):
            if _is_ours(thing["name"]):
                tx.cursor.execute(SQL("grant {} to {}").format(_right(thing), to))
        # Who may do a thing without owning it only gets a warning.
        if not (told := tx.one(GRANTED, role=role)) or not told["granted"]:
            raise JournalUnusable("only the tables' owner can grant; nothing was granted")


def _right(thing: Row) -> SQL:
    what = thing["what"]
    if what == "rows":
        what = "select on table" if thing["name"] in VERSIONS else "select, insert, update, delete on table"
    return SQL(f"{what} {thing['called']}")  # pyright: ignore[reportArgumentType]  # Postgres has quoted it


def _is_ours(name: str) -> bool:
    scripts = [statement for one in migrations() for statement in one.statements] + list(PostgresSaver.MIGRATIONS)
    made = {table for script in scripts for table in MADE.findall(script)}
    return name in made | VERSIONS.keys() or name.startswith("procrastinate_")
