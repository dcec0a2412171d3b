"""What the facts about LangGraph stand on: its own saver on each engine, what ran, and a bank that counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.bank import Bank
from tests.support.plain import OfficialSaver, Trace, official_saver


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[OfficialSaver]:
    """LangGraph's own saver on SQLite, for what its loop does on any engine."""
    with official_saver(f"sqlite:///{tmp_path}/plain.db") as opened:
        yield opened


@pytest.fixture
def each_saver(url: str) -> Iterator[OfficialSaver]:
    """LangGraph's own saver on each engine."""
    with official_saver(url) as opened:
        yield opened


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """What ran."""
    return Trace(tmp_path / "trace")


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    """A bank that counts."""
    return Bank(tmp_path / "bank")
