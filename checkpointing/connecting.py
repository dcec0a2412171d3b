"""
How a connection to Postgres is made: in which schema, how soon it notices that the other side is gone, and what it asks of its session.

A connection whose peer disappears without a word (a cable, a firewall, a host) looks like one that waits. Both sides find out:

    this side     keepalives and `tcp_user_timeout`: within a third of a lease, between 1 and 10 s
    the server    keepalives too; and a session that stands still inside a transaction is ended after a lease, at least 5 s, which frees its row locks

Through a proxy that pools transactions nothing can be asked of a session, which is another one each time. There the schema is the role's, and the
rest is said in each transaction (`postgres.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import DictRow, dict_row

from checkpointing.errors import JournalUnreachable, JournalUnusable

CONNECT_S = 5
"""How long to wait for the server when the journal is opened, in seconds."""

PATIENCE_S = (1, 10)
SHORTEST_PAUSE = timedelta(seconds=5)
"""So long may any process stand still in a transaction: a machine may be busy."""

SCHEMA_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")

NOBODY_THERE = ("Connection refused", "timeout", "No route to host", "Network is unreachable", "starting up")
"""What libpq says where no server took the connection yet, in words, for it gives no codes; a server that lets us not in says FATAL."""

LOOK = """
select pg_backend_pid() as pid, current_user::text as role, current_schema()::text as schema, current_setting('search_path') as path,
    (select has_schema_privilege(oid, 'usage') from pg_namespace where nspname = cast(%(schema)s as text)) as usable,
    current_setting('synchronous_commit') = 'off' as slack,
    (select cast(setting as bigint) from pg_settings where name = 'idle_in_transaction_session_timeout') as pause_ms
"""


@dataclass(frozen=True, slots=True)
class Way:
    """
    How one database is reached.

    Attributes:
        place: The database for people, without user and password.
        options: For `psycopg.connect`, beside the URL.
        behind_proxy: The session may be another one in each transaction.
        role: As whom.
        schema: Where the tables are, or are to be.
        slack: A commit may return before it is on disk.
        pause_ms: How long a session may stand still in a transaction before the server ends it; 0 is for ever.
    """

    url: str
    place: str
    options: Mapping[str, Any]
    behind_proxy: bool
    role: str
    schema: str
    slack: bool
    pause_ms: int


def way_to(url: str, *, lease: timedelta, schema: str | None) -> Way:
    """
    Connect once, and find out how it is done here.

    Raises:
        JournalUnreachable: no server answers there.
        JournalUnusable: the URL is malformed, or there is no such host, or the server lets us not in, or not into the schema. None names the password.
    """
    if schema is not None and not SCHEMA_NAME.fullmatch(schema):
        raise JournalUnusable(
            f"{schema!r} cannot be a schema's name here: lower-case letters, digits and _, at most 63"
        )
    place, given = _taken_apart(url)
    plain = _noticing(given, lease)
    asking = {**plain, "options": " ".join(filter(None, (_asked_of_session(lease, schema), given.get("options"))))}
    try:
        options, found, itself = _look(url, (asking, plain), schema)
    except psycopg.Error as error:
        raise _unusable(place, error) from error
    _check_schema(place, found, schema, proxy=not itself)
    return Way(
        url=url,
        place=place,
        options=options,
        behind_proxy=not itself,
        role=found["role"],
        schema=schema or found["schema"],
        slack=found["slack"],
        pause_ms=found["pause_ms"],
    )


def longest_pause_ms(lease: timedelta) -> int:
    """Return how long a session may stand still in a transaction before the server is to end it."""
    return round(max(lease, SHORTEST_PAUSE).total_seconds() * 1000)


def first_line(error: Exception) -> str:
    """Return the first line of what a driver said."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _noticing(given: Mapping[str, Any], lease: timedelta) -> dict[str, Any]:
    """Return what makes this side notice a silent end, as libpq calls it; what the URL says of it stands."""
    shortest, longest = PATIENCE_S
    patience_s = min(max(lease.total_seconds() / 3, shortest), longest)
    wanted = {
        "connect_timeout": CONNECT_S,
        "keepalives_idle": max(1, int(patience_s / 2)),
        "keepalives_interval": max(1, int(patience_s / 4)),
        "keepalives_count": 2,
        "tcp_user_timeout": int(patience_s * 1000),
    }
    # A statement that was prepared before a migration fails after it, and behind a proxy it is prepared on another connection.
    return {"prepare_threshold": None, **{name: value for name, value in wanted.items() if name not in given}}


def _asked_of_session(lease: timedelta, schema: str | None) -> str:
    wanted: dict[str, object] = {
        "idle_in_transaction_session_timeout": longest_pause_ms(lease),
        "tcp_keepalives_idle": PATIENCE_S[1],
        "tcp_keepalives_interval": PATIENCE_S[1],
        "tcp_keepalives_count": 2,
    }
    if schema:
        wanted["search_path"] = schema
    return " ".join(f"-c {name}={value}" for name, value in wanted.items())


def _look(
    url: str, ways: tuple[Mapping[str, Any], Mapping[str, Any]], schema: str | None
) -> tuple[Mapping[str, Any], DictRow, bool]:
    """Look around by the first of two ways, by the second where a proxy refuses what the first one asks; tell whether the server itself answered."""
    asking, plain = ways
    try:
        return asking, *_looked(url, asking, schema)
    except psycopg.OperationalError as error:
        if "parameter" not in str(error):
            raise
    found, _ = _looked(url, plain, schema)
    return plain, found, False


def _looked(url: str, options: Mapping[str, Any], schema: str | None) -> tuple[DictRow, bool]:
    """Look around; the process that answers is another than the one which took the connection where a pooling proxy stands between."""
    with psycopg.Connection[DictRow].connect(url, row_factory=dict_row, **options) as connection:
        found = connection.execute(LOOK, {"schema": schema}).fetchone()
        assert found is not None
        return found, found["pid"] == connection.info.backend_pid


def _check_schema(place: str, found: DictRow, schema: str | None, *, proxy: bool) -> None:
    role = found["role"]
    if schema is None:
        if found["schema"] is None:
            raise JournalUnusable(
                f"{place}: role {role!r} has no schema to keep tables in; name one with COUNTERFOIL_SCHEMA"
            )
        return
    if found["usable"] is False:
        raise JournalUnusable(
            f"{place}: role {role!r} may not use the schema {schema!r}; its owner lets it in with counterfoil migrate --grant {role}"
        )
    first = found["path"].split(",")[0].strip().strip('"')
    if schema not in (found["schema"], first):
        why = "a proxy stands between, which drops what a connection asks for; " if proxy else ""
        raise JournalUnusable(
            f"{place}: connections are in the schema {found['schema']!r} and not in {schema!r}: {why}"
            f"set it on the role: alter role {role} in database … set search_path = {schema}"
        )


def _taken_apart(url: str) -> tuple[str, dict[str, Any]]:
    """Return the database's name for people, without user and password, and what the URL says by libpq's names."""
    try:
        parts: dict[str, Any] = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        # The error's own words may hold a part of the password.
        raise JournalUnusable("not a Postgres URL: one is postgresql://user@host:5432/database") from error
    # An unescaped `@` in a password ends up in front of the host.
    host = str(parts.get("host", "localhost")).rpartition("@")[2]
    return f"postgres database {parts.get('dbname', '')!r} at {host}:{parts.get('port', 5432)}", parts


def _unusable(place: str, error: psycopg.Error) -> JournalUnusable:
    said = "no such host" if "resolve host" in str(error) else first_line(error)
    kind = JournalUnreachable if any(word in said for word in NOBODY_THERE) else JournalUnusable
    return kind(f"cannot open {place}: {said}")
