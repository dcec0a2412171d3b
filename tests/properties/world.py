"""
The world of one history: its folder, its clock, which is a file that every process reads, and how its journal is opened.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from checkpointing import Journal, open_journal
from graph import DurableGraph
from tests.properties.graphs import Site
from tests.properties.history import Part
from tests.properties.receiver import Desk

THREAD = "t"
LEASE = timedelta(seconds=30)
DAWN = datetime(2026, 3, 1, tzinfo=UTC)
INPUT = {"price": 5}
CLERK = "clerk"
"""Who submits, and so may not decide."""


@dataclass(frozen=True)
class World:
    """
    What every process of a history knows.

    Attributes:
        fault: The fault planted into the code under test, by its name in `faults.py`; only the tests of the test name one.
    """

    url: str
    folder: Path
    parts: list[Part]
    fault: str | None = None

    @property
    def desk(self) -> Desk:
        """The receiver."""
        return Desk(self.folder, self.now)

    def now(self) -> datetime:
        """Return the time as the file has it."""
        file = self.folder / "clock"
        return DAWN + timedelta(seconds=int(file.read_text()) if file.exists() else 0)

    def later(self, seconds: int) -> None:
        """Let time pass for every process; the file is replaced whole, because others read it meanwhile."""
        passed = int((self.now() - DAWN).total_seconds())
        (self.folder / "clock.new").write_text(str(passed + seconds))
        os.replace(self.folder / "clock.new", self.folder / "clock")  # noqa: PTH105  # Path.replace says the same

    def open(self) -> Journal:
        """Open the journal under the file's clock."""
        return open_journal(self.url, clock=self.now, lease=LEASE)

    def graph(self, journal: Journal) -> DurableGraph:
        """Build the graph."""
        return Site(journal, self.desk, self.folder).build(self.parts)
