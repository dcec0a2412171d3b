"""
The scratch of a reconciliation: a temporary SQLite file with the receivers' lists and what was found, gone at the end.

The lists are written here before anything is compared, for two reasons: a list that broke off must not be taken for a whole one, and neither side
may have to be held in memory to find who is missing and who is there twice. Whoever reads gets a page at a time.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import islice
from typing import Any

from checkpointing.clock import from_ms, to_ms
from checkpointing.reconciling import KEYS
from checkpointing.text import storable
from tools.executed import Executed

PAGE = KEYS
"""A page of the scratch is one question to the ledger."""

SCHEMA = """
create table executed (
    effect text not null,
    id text not null,
    key text not null,
    identity text not null,
    at_ms integer not null,
    outcome text not null,
    taken_back integer not null,
    primary key (effect, id)
) without rowid;
create index by_key on executed (effect, key, taken_back, at_ms, id);
create index by_identity on executed (effect, identity, taken_back, at_ms, id) where identity <> '';
create table findings (
    number integer primary key,
    kind text not null,
    adopted integer not null default 0,
    document text not null
);
create index by_kind on findings (kind, adopted, number);
"""
"""
A text that is not there is empty: no receiver's key, identity or id is. Every question is answered by an index in the order it asks for: one that
sorted, or walked the list, would make the comparison quadratic.
"""

ADD = "insert or ignore into executed values (:effect, :id, :key, :identity, :at_ms, :outcome, :taken_back)"
OURS = """
select * from executed where effect = :effect and (key, taken_back, at_ms, id) > (:key, :taken_back, :at_ms, :id)
    and (key <> '' or identity <> '') order by key, taken_back, at_ms, id limit :limit
"""
BY_ID = "select * from executed where effect = :effect and id = :id"
BY_KEY = "select * from executed where effect = :effect and key = :key order by taken_back, at_ms, id limit 1"
EARLIER_OF_KEY = """
select id from executed where effect = :effect and key = :key and taken_back = 0 and (at_ms, id) < (:at_ms, :id)
order by at_ms, id limit 1
"""
EARLIER_OF_IDENTITY = EARLIER_OF_KEY.replace("key = :key", "identity = :identity and identity <> ''")
COUNT = "select count(*) as listed, count(*) filter (where key = '' and identity = '') as unidentified from executed where effect = :effect"
FOUND = "insert into findings (kind, document) values (:kind, :document)"
FINDINGS = "select * from findings where number > :after order by number limit :limit"
OF_KIND = FINDINGS.replace("where", "where kind = :kind and adopted = :adopted and")
CHANGE = "update findings set kind = :kind, adopted = :adopted, document = :document where number = :number"
COUNTS = "select kind, adopted, count(*) as count from findings group by kind, adopted"


class Scratch:
    """The open scratch; made by `scratch`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Use *connection*, to an empty file."""
        self._connection = connection
        connection.row_factory = sqlite3.Row
        connection.executescript(f"pragma journal_mode = off; pragma synchronous = off; {SCHEMA}")

    def add(self, effect: str, executed: Iterable[Executed]) -> Iterator[int]:
        """Write a receiver's list down page by page, and yield how many entries of it were read so far."""
        entries, count = iter(executed), 0
        while page := list(islice(entries, PAGE)):
            self._connection.executemany(ADD, [_columns(effect, one) for one in page])
            count += len(page)
            yield count

    def counts(self, effect: str) -> tuple[int, int]:
        """Return how many executions of *effect* were listed, and how many of those have neither key nor identity."""
        (row,) = self._rows(COUNT, effect=effect)
        return int(row["listed"]), int(row["unidentified"])

    def pages(self, effect: str) -> Iterator[list[Executed]]:
        """Yield the executions that have a key or an identity, ordered by key and time, those that stand in front."""
        last = {"key": "", "taken_back": 0, "at_ms": -1, "id": ""}
        while rows := self._rows(OURS, effect=effect, limit=PAGE, **last):
            yield [_executed(row) for row in rows]
            last = {name: rows[-1][name] for name in last}

    def by_id(self, effect: str, executed_id: str) -> Executed | None:
        """Return the execution with this id, if it was listed."""
        return self._one(BY_ID, effect=effect, id=executed_id)

    def by_key(self, effect: str, key: str) -> Executed | None:
        """Return the first execution with this key, if one was listed; one that stands where there is one."""
        return self._one(BY_KEY, effect=effect, key=key)

    def earlier_of_key(self, effect: str, one: Executed) -> str | None:
        """Return the id of the first execution with the same key that stands, if *one* is not it."""
        return self._earlier(EARLIER_OF_KEY, effect, one) if one.key else None

    def earlier_of_identity(self, effect: str, one: Executed) -> str | None:
        """Return the id of the first execution with the same identity that stands, if *one* is not it."""
        return self._earlier(EARLIER_OF_IDENTITY, effect, one) if one.identity else None

    def found(self, kind: str, document: Mapping[str, Any]) -> None:
        """Write a finding down."""
        self._connection.execute(FOUND, {"kind": kind, "document": json.dumps(document)})

    def change(self, number: int, kind: str, document: Mapping[str, Any], *, adopted: bool) -> None:
        """Write down what became of a finding."""
        values = {"number": number, "kind": kind, "adopted": int(adopted), "document": json.dumps(document)}
        self._connection.execute(CHANGE, values)

    def findings(self, kind: str | None = None, *, adopted: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the findings with their numbers, in the order they were made: all, or those of a kind that were adopted, or not."""
        sql, after = OF_KIND if kind else FINDINGS, 0
        while rows := self._rows(sql, kind=kind, adopted=int(adopted), after=after, limit=PAGE):
            for row in rows:
                yield int(row["number"]), json.loads(row["document"])
            after = rows[-1]["number"]

    def totals(self) -> dict[tuple[str, bool], int]:
        """Return how many findings there are of each kind, adopted or not."""
        return {(row["kind"], bool(row["adopted"])): int(row["count"]) for row in self._rows(COUNTS)}

    def _earlier(self, sql: str, effect: str, one: Executed) -> str | None:
        rows = self._rows(sql, **_columns(effect, one))
        return str(rows[0]["id"]) if rows else None

    def _one(self, sql: str, **values: object) -> Executed | None:
        rows = self._rows(sql, **values)
        return _executed(rows[0]) if rows else None

    def _rows(self, sql: str, **values: object) -> list[sqlite3.Row]:
        return self._connection.execute(sql, values).fetchall()


@contextmanager
def scratch() -> Iterator[Scratch]:
    """Make an empty scratch: SQLite's own kind of temporary file, without a name, so that a killed process leaves nothing either."""
    with closing(sqlite3.connect("", isolation_level=None)) as connection:
        yield Scratch(connection)


def _columns(effect: str, one: Executed) -> dict[str, Any]:
    return {
        "effect": effect,
        "id": storable(one.id),
        "key": storable(one.key or ""),
        "identity": "" if one.identity is None else storable(one.identity),
        "at_ms": to_ms(one.at),
        "outcome": json.dumps(dict(one.outcome)),
        "taken_back": int(one.taken_back),
    }


def _executed(row: sqlite3.Row) -> Executed:
    return Executed(
        id=row["id"],
        at=from_ms(row["at_ms"]),
        outcome=json.loads(row["outcome"]),
        key=row["key"] or None,
        identity=row["identity"] or None,
        taken_back=bool(row["taken_back"]),
    )
