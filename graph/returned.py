"""
Values that a client shows to a person and sends back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def same(one: Any, other: Any) -> bool:
    """Tell whether two values are the same JSON: `True` is not 1, and 1.0 is."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, Sequence) and isinstance(other, Sequence) and not isinstance(one, str):
        return len(one) == len(other) and all(map(same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)
