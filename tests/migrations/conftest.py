"""
Journals here begin before their first migration, on Postgres too, where elsewhere they are copies of one that is migrated.
"""

from __future__ import annotations

import pytest


@pytest.fixture
def url(empty_url: str) -> str:
    """The URL of a database that holds nothing."""
    return empty_url
