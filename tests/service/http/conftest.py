"""What the tests of the API share: a desk on the engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from checkpointing import Journal
from service.settings import load_settings
from tests.support.desk import Desk, make_desk
from tests.support.desk_graph import desk_graph


@pytest.fixture
def new_desk(opened: Callable[..., Journal], url: str, tmp_path: Path) -> Callable[..., Desk]:
    """Makes a desk over the journal on the engine."""

    def make(*, clock: Any = None, **asking: Any) -> Desk:
        journal = opened(clock=clock) if clock else opened()
        return make_desk(load_settings(url), journal, desk_graph(journal, tmp_path, **asking))

    return make


@pytest.fixture
def desk(new_desk: Callable[..., Desk]) -> Desk:
    """A desk over a journal on the engine."""
    return new_desk()
