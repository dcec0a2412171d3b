"""
Time at the boundary: aware datetimes outside, integer milliseconds UTC in the store.

A journal given a `clock` takes every time from it, leases too, so that a test moves time by moving the clock. Without one the
store's own time counts: the database's on Postgres, so that hosts with skewed clocks agree, and the system's on SQLite.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Clock = Callable[[], datetime]
"""Returns an aware datetime."""


def system_clock() -> datetime:
    """Return the system's time in UTC."""
    return datetime.now(UTC)


def to_ms(instant: datetime) -> int:
    """
    Return *instant* as milliseconds since 1970.

    Raises:
        ValueError: it has no time zone, so it names no instant.
    """
    if instant.tzinfo is None:
        raise ValueError(f"{instant!r} has no time zone; a clock returns aware datetimes, as datetime.now(UTC) does")
    return int(instant.timestamp() * 1000)


def from_ms(milliseconds: int) -> datetime:
    """Return milliseconds since 1970 as an aware datetime in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def duration_ms(duration: timedelta) -> int:
    """Return *duration* in whole milliseconds."""
    return int(duration.total_seconds() * 1000)
