"""A clock that stands until somebody moves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class MovingClock:
    """Returns the same instant until `move`."""

    def __init__(self) -> None:
        """Begin at a fixed instant."""
        self.now = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Return the instant."""
        return self.now

    def move(self, by: timedelta) -> None:
        """Let *by* pass; negative to go back."""
        self.now += by
