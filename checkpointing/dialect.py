"""
What differs between the two engines, and nothing else does.

The SQL of every module is written once, in the words both engines read: named `:parameters`, integer milliseconds, JSON as
text, `on conflict`, `returning`. Row locks are written as Postgres has them (`for share`, `for update`); a write transaction on
SQLite holds the whole file, so there the clause is dropped. `:now` is the store's time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_ROW_LOCK = re.compile(r"\s+for (share|update)( skip locked)?\s*$")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z][a-z_0-9]*)")
_POSTGRES_NOW = "(extract(epoch from clock_timestamp()) * 1000)::bigint"


@dataclass(frozen=True, slots=True)
class Dialect:
    """
    How one engine reads the common SQL.

    Attributes:
        name: `sqlite` or `postgres`.
        database_clock: `:now` is the database's own time instead of a parameter.
    """

    name: str
    database_clock: bool

    @property
    def dispatches(self) -> bool:
        """Whether the engine has a queue of jobs beside the journal."""
        return self.name == "postgres"

    def translate(self, sql: str) -> str:
        """Return the common *sql* as this engine's driver takes it."""
        return _translate(self.name, self.database_clock, sql)


@lru_cache(maxsize=512)
def _translate(name: str, database_clock: bool, sql: str) -> str:  # a cache key, not a flag
    if name == "sqlite":
        return _ROW_LOCK.sub("", sql).replace("{blob}", "blob")
    if database_clock:
        sql = re.sub(r":now\b", _POSTGRES_NOW.replace(":", "\0"), sql)
    sql = _PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%"))
    return sql.replace("\0", ":").replace("{blob}", "bytea")
