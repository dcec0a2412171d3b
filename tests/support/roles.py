"""
A role of a test's own that may connect and nothing else, as an application has it where somebody else owns the tables.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any, LiteralString
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg.sql import SQL, Identifier


@dataclass(frozen=True)
class Role:
    """
    A role, and the database it works in.

    Attributes:
        owners_url: The database as who may create tables there.
    """

    name: str
    owners_url: str

    @property
    def url(self) -> str:
        """The database as this role."""
        return self.by(self.owners_url)

    def by(self, url: str) -> str:
        """Return what *url* is for this role."""
        parts = urlsplit(url)
        return urlunsplit(parts._replace(netloc=f"{self.name}@{parts.netloc.rpartition('@')[2]}"))

    def let_create(self, schema: str) -> None:
        """Let it create tables in a schema."""
        self.as_owner(SQL("grant usage, create on schema {} to {}").format(Identifier(schema), Identifier(self.name)))

    def may(self, table: str, right: str) -> bool:
        """Tell whether it has a right to a table."""
        [row] = self.as_owner(SQL("select has_table_privilege(%s, %s, %s)"), self.name, table, right)
        return bool(row[0])

    def set(self, name: LiteralString, value: str) -> None:
        """Give its sessions in this database a setting."""
        database = urlsplit(self.owners_url).path.removeprefix("/")
        statement = SQL("alter role {} in database {} set {} = {}")
        self.as_owner(statement.format(Identifier(self.name), Identifier(database), SQL(name), value))

    def as_owner(self, statement: Any, *values: object) -> list[Any]:
        """Run one statement as who may create tables."""
        with psycopg.connect(self.owners_url, autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def drop(self) -> None:
        """Take it away with all its rights."""
        name = Identifier(self.name)
        for statement in ("drop owned by {} cascade", "drop role {}"):
            self.as_owner(SQL(statement).format(name))


def make_role(owners_url: str) -> Role:
    """Make a role that may connect, and take from everybody the right to create tables, as Postgres 15 does by itself."""
    role = Role(f"app_{uuid.uuid4().hex[:12]}", owners_url)
    role.as_owner(SQL("create role {} login").format(Identifier(role.name)))
    role.as_owner(SQL("revoke create on schema public from public"))
    return role
