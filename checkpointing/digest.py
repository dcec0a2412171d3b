"""
Digests that bind: the same JSON always has the same one, and what is not JSON has none.

The text under every digest is RFC 8785 (JSON Canonicalization Scheme), so another program can compute it too.
"""

from __future__ import annotations

import hashlib
from typing import TypeAlias

import rfc8785

from checkpointing.errors import ArgumentsNotJson

DEEPEST = 100
"""How deep JSON may be nested; readers of it recurse too."""

JSON: TypeAlias = "dict[str, JSON] | list[JSON] | str | int | float | bool | None"


def canonical(value: object, *, what: str = "value") -> bytes:
    """
    Return *value* as RFC 8785 JSON.

    Raises:
        ArgumentsNotJson: something in it is not JSON. The message names its place, as in `arguments.amount`, so
            *what* should be the reader's word for the value.
    """
    if place := _not_json(value, what):
        raise ArgumentsNotJson(place)
    return rfc8785.dumps(value)  # type: ignore[arg-type]  # just checked, all the way down


def sha256(value: object, *, what: str = "value") -> str:
    """Return the SHA-256 of *value* as RFC 8785 JSON, as 64 hex digits; errors as `canonical`."""
    return hashlib.sha256(canonical(value, what=what)).hexdigest()


def _not_json(value: object, place: str, depth: int = 0) -> str | None:
    """Name the first place in *value* that RFC 8785 cannot write, or return `None`."""
    if depth > DEEPEST:
        return f"{place[:80]}… is nested deeper than {DEEPEST} levels"
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                return f"{place} has the key {key!r}: keys must be text"
            if found := _not_json(item, f"{place}.{key}", depth + 1):
                return found
        return _not_text("".join(value), place)
    if isinstance(value, list | tuple):
        return next(filter(None, (_not_json(item, f"{place}[{i}]", depth + 1) for i, item in enumerate(value))), None)
    return _not_scalar(value, place)


def _not_scalar(value: object, place: str) -> str | None:
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str):
        return _not_text(value, place)
    if isinstance(value, int):
        return None if abs(value) < 2**53 else f"{place} is {value}: beyond 2^53 JSON readers disagree; pass it as text"
    if isinstance(value, float):
        return None if value - value == 0 else f"{place} is {value}: JSON has no such number"
    return f"{place} is a {type(value).__name__}, which is not JSON; money is integer minor units, dates are text"


def _not_text(value: str, place: str) -> str | None:
    return (
        f"{place} holds a lone surrogate, which is not text" if any("\ud800" <= c <= "\udfff" for c in value) else None
    )
