"""
The schema of a database in words, one line a column, an index and a check; LangGraph's and Procrastinate's own tables are left out.

What it is to be stands in `schema.sqlite.txt` and `schema.postgres.txt`; where a migration changes it, the new one is printed by

    uv run python -m tests.migrations.described sqlite:////tmp/new.db > tests/migrations/schema.sqlite.txt
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from checkpointing import Journal, open_journal
from checkpointing.store import Tx

LANGGRAPHS = {"checkpoints", "writes", "checkpoint_blobs", "checkpoint_writes", "checkpoint_migrations"}

SQLITE_TABLES = "select name, sql from sqlite_master where type = 'table'"
SQLITE_COLUMNS = 'select name, type, "notnull" as filled, dflt_value as preset from pragma_table_info(:name)'
SQLITE_INDEXES = """
select l.name, l."unique" as one_each, coalesce(m.sql, '') as sql from pragma_index_list(:name) l
left join sqlite_master m on m.name = l.name
"""
SQLITE_INDEXED = "select name from pragma_index_info(:name) order by seqno"

POSTGRES_COLUMNS = """
select table_name, column_name, data_type, is_nullable, column_default from information_schema.columns where table_schema = 'public'
"""
POSTGRES_INDEXES = "select tablename, indexdef from pg_indexes where schemaname = 'public'"
POSTGRES_CHECKS = """
select conrelid::regclass::text as table_name, pg_get_constraintdef(oid) as definition from pg_constraint
where contype = 'c' and connamespace = 'public'::regnamespace
"""


def described(journal: Journal, engine: str) -> list[str]:
    """Return the lines that describe the journal's schema, sorted."""
    with journal.store.reading() as tx:
        lines = _postgres(tx) if engine == "postgres" else _sqlite(tx)
        return sorted(
            line for table, line in lines if table not in LANGGRAPHS and not table.startswith("procrastinate_")
        )


def _sqlite(tx: Tx) -> Iterator[tuple[str, str]]:
    for table in tx.all(SQLITE_TABLES):
        name = table["name"]
        for column in tx.all(SQLITE_COLUMNS, name=name):
            yield name, _column(name, column["name"], column["type"], column["filled"], column["preset"])
        for index in tx.all(SQLITE_INDEXES, name=name):
            columns = ", ".join(one["name"] or "an expression" for one in tx.all(SQLITE_INDEXED, name=index["name"]))
            unique = "unique index" if index["one_each"] else "index"
            yield name, f"{name}: {unique} ({columns}){''.join(re.findall(r' where .*', index['sql']))}"
        for check in re.findall(r"check (\(.*?\)\))", table["sql"]):
            yield name, f"{name}: check {check}"


def _postgres(tx: Tx) -> Iterator[tuple[str, str]]:
    for row in tx.all(POSTGRES_COLUMNS):
        table = row["table_name"]
        filled = row["is_nullable"] == "NO"
        yield table, _column(table, row["column_name"], row["data_type"], filled, row["column_default"])
    for row in tx.all(POSTGRES_INDEXES):
        unique = "unique index" if "UNIQUE" in row["indexdef"] else "index"
        yield row["tablename"], f"{row['tablename']}: {unique} {row['indexdef'].partition(' USING btree ')[2]}"
    for row in tx.all(POSTGRES_CHECKS):
        yield row["table_name"], f"{row['table_name']}: {row['definition']}"


def _column(table: str, name: str, kind: str, filled: object, preset: object) -> str:
    return f"{table}.{name} {kind.lower()}{' not null' if filled else ''}{f' default {preset}' if preset is not None else ''}"


if __name__ == "__main__":
    with open_journal(sys.argv[1]) as opened:
        which = "postgres" if sys.argv[1].startswith("postgres") else "sqlite"
        sys.stdout.writelines(f"{line}\n" for line in described(opened, which))
