"""
A broken history as a script: it tells the same story from the repository's folder, and fails as long as the fault is there.
"""

from __future__ import annotations

import os
import sys
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg

from service.throwaway_postgres import throwaway_postgres
from tests.properties.history import Event, Part
from tests.properties.story import Story

TEXT = '''"""
{said}

From the repository's folder: uv run python {name}
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path.cwd()))

from tests.properties.history import Crash, Event, Part
from tests.properties.script import retell

PARTS = [
{parts}]
EVENTS = [
{events}]

if __name__ == "__main__":
    retell({engine!r}, PARTS, EVENTS{fault})
'''
MEMORY = Path("/dev/shm")  # noqa: S108  # each example has a folder of its own there
"""Where a folder is no disk's: a killed process leaves the same files there."""


def written(
    error: BaseException, *, engine: str, parts: Sequence[Part], events: Sequence[Event], fault: str | None
) -> Path:
    """Write the script that retells a history which ended in *error*, and return where it is."""
    file = Path(tempfile.gettempdir()) / f"counterexample-{engine}-{os.getpid()}.py"
    file.write_text(
        TEXT.format(
            said=str(error).splitlines()[0] if str(error) else type(error).__name__,
            name=file,
            parts="".join(f"    {part!r},\n" for part in parts),
            events="".join(f"    {event!r},\n" for event in events),
            engine=engine,
            fault=f", fault={fault!r}" if fault else "",
        )
    )
    return file


def retell(engine: str, parts: list[Part], events: list[Event], *, fault: str | None = None) -> None:
    """Tell the history again, in a journal of its own, to its end."""
    with (
        memory_folder() as folder,
        _journal_on(engine, folder) as url,
        closing(Story(url, folder, parts, fault=fault)) as story,
    ):
        for event in events:
            story.tell(event)
        story.end()
    sys.stdout.write("the history was told to its end, and no promise was broken\n")


@contextmanager
def memory_folder() -> Iterator[Path]:
    """Provide a folder in memory where there is such a thing."""
    with tempfile.TemporaryDirectory(prefix="counterfoil-", dir=MEMORY if MEMORY.is_dir() else None) as folder:
        yield Path(folder)


@contextmanager
def _journal_on(engine: str, folder: Path) -> Iterator[str]:
    if engine == "sqlite":
        yield f"sqlite:///{folder}/journal.db"
    elif given := os.environ.get("COUNTERFOIL_TEST_POSTGRES"):
        name = f"t_{uuid.uuid4().hex}"
        with psycopg.connect(given, autocommit=True) as connection:
            connection.execute(f"create database {name}")  # pyright: ignore[reportArgumentType, reportCallIssue]  # our own name
            yield urlunsplit(urlsplit(given)._replace(path=f"/{name}"))
            connection.execute(f"drop database {name} with (force)")  # pyright: ignore[reportArgumentType, reportCallIssue]
    else:
        with throwaway_postgres(folder) as url:
            yield url
