"""
A point in the past, as people give it: a date, a time, or how long ago.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from checkpointing.errors import Refused

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
AGO = re.compile(r"([0-9]{1,6})([smhdw])")


class TimeUnclear(Refused, ValueError):
    """What was given is no time in the past, or no duration."""


def since(text: str, *, option: str, now: datetime) -> datetime:
    """
    Return the instant that *text* names: an ISO 8601 date or time, UTC where it names no zone, or a duration back from *now*.

    Raises:
        TimeUnclear: it is neither, or it lies ahead.
    """
    if AGO.fullmatch(text.strip()):
        ago = duration(text, option=option)
        try:
            return now - ago
        except OverflowError:
            raise TimeUnclear(f"{option} {text!r} is longer than there has been time") from None
    try:
        given = datetime.fromisoformat(text.strip())
        instant = given.replace(tzinfo=given.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        raise TimeUnclear(
            f"{option} takes a date, a time or a duration, as in 2026-03-01, 2026-03-01T08:00 (UTC) or 7d; not {text!r}"
        ) from None
    if instant > now:
        raise TimeUnclear(f"{option} {text!r} lies ahead: it is {now:%Y-%m-%d %H:%M} UTC")
    return instant


def duration(text: str, *, option: str) -> timedelta:
    """
    Return the duration that *text* names, as in 90s, 5m, 12h, 7d or 2w.

    Raises:
        TimeUnclear: it is none.
    """
    found = AGO.fullmatch(text.strip())
    if found is None:
        raise TimeUnclear(f"{option} takes a duration, as in 90s, 5m, 12h, 7d or 2w; not {text!r}")
    try:
        return timedelta(**{UNITS[found[2]]: int(found[1])})
    except OverflowError:
        raise TimeUnclear(f"{option} {text!r} is longer than there has been time") from None
