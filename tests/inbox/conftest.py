"""The pages over an empty journal of each engine, by a clock that tests move."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from checkpointing import Journal
from tests.inbox.pages import Pages, asking, pages_over
from tests.support.clock import MovingClock

Make = Callable[..., Pages]


@pytest.fixture
def make_inbox(opened: Callable[..., Journal], clock: MovingClock, tmp_path: Path) -> Make:
    """Makes the pages of a graph whose approval has the terms that are given."""

    def make(**terms: Any) -> Pages:
        journal = opened(clock=clock)
        return pages_over(journal, asking(journal, tmp_path, **terms), tmp_path)

    return make


@pytest.fixture
def inbox(make_inbox: Make) -> Pages:
    """The pages of a graph that asks anybody, for three days."""
    return make_inbox()
