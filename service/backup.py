"""
A copy of a SQLite journal, made while workers go on: whole, of one moment, and there under its name only once it is safely written.

    FILE.part ── copied in one read transaction, looked through, on the disk ──▶ FILE

SQLite's own backup is used, because the file alone is not the journal: what was committed last stands in the `-wal` beside it. Killed in
between it leaves a `.part`, which the next call makes anew.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from checkpointing.errors import JournalUnusable, Refused
from checkpointing.sqlite import translated


class CopyInTheWay(Refused, FileExistsError):
    """There is a file with that name; an earlier copy is never written over."""


def copy_sqlite(journal: Path, into: Path) -> datetime:
    """
    Copy the journal, and return a moment before which everything committed is in the copy.

    Raises:
        CopyInTheWay: there is something at *into*.
        StoreUnreachable, JournalUnusable: the journal, or the place for the copy, cannot be read or written.
    """
    if into.exists():
        raise CopyInTheWay(f"{into} exists; give the copy a name of its own")
    if not into.parent.is_dir():
        raise JournalUnusable(f"cannot write {into}: there is no folder {into.parent}")
    part = into.with_name(f"{into.name}.{os.getpid()}.part")  # two at once have one each
    made_at = datetime.now(UTC)
    try:
        _copy(journal, part)
        _on_disk(part)
        os.link(part, into)  # unlike a rename, it never takes the place of a file that came meanwhile
        _on_disk(into.parent)
    except FileExistsError as faster:
        raise CopyInTheWay(f"{into} came meanwhile; give the copy a name of its own") from faster
    finally:
        part.unlink(missing_ok=True)
    return made_at


def _on_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _copy(journal: Path, part: Path) -> None:
    # `rw`, not `ro`: reading a journal with a write-ahead log takes a file of shared memory beside it. It never makes a journal.
    place = f"{journal.absolute().as_uri()}?mode=rw"
    with (
        translated(journal),
        closing(sqlite3.connect(place, uri=True)) as source,
        closing(sqlite3.connect(part, isolation_level=None)) as target,
    ):
        source.backup(target)  # all pages in one step: in several, every write would make it begin anew
        target.execute("pragma journal_mode = delete").fetchall()  # one file, whatever becomes of it
        found = target.execute("pragma quick_check").fetchall()
    if found != [("ok",)]:
        raise JournalUnusable(f"the copy of {journal} is damaged, and so is the journal: {found[0][0]}")
