"""
Values that a client shows to a person and sends back as text, read as the kinds of value that were shown.

A form has text fields, so what comes back for 184000 is "184000". What was shown says what it stands for, and only where that leaves no doubt is it
taken: "184000" for a whole number, "184000.0", "184 000" and "1e5" for nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from math import isfinite
from typing import Any

from checkpointing.errors import DecisionInvalid

WHOLE = re.compile(r"-?(0|[1-9][0-9]*)", re.ASCII)
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
TRUTH = {"true": True, "True": True, "false": False, "False": False}
LONGEST_NUMBER = 40


def read_as(shown: Any, given: Any, what: str) -> Any:
    """
    Return *given*, which stands where *shown* stood, as a value of the kind of *shown*.

    Raises:
        DecisionInvalid: it is of another kind, or its text could be read in more than one way.
    """
    if isinstance(shown, Mapping):
        return _mapping(shown, _parsed(given, what), what)
    if isinstance(shown, list):
        return _list(shown, _parsed(given, what), what)
    if isinstance(shown, str):
        if not isinstance(given, str):
            raise _refusal("text", given, what)
        return given
    if shown is None:
        if given is not None and given != "null":
            raise _refusal("null", given, what)
        return None
    return _scalar(shown, given, what)


def same(one: Any, other: Any) -> bool:
    """Tell whether two values are the same JSON: `True` is not 1, and 1.0 is."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _scalar(shown: bool | float, given: Any, what: str) -> bool | float:
    if isinstance(shown, bool):
        found = TRUTH.get(given) if isinstance(given, str) else given
        if not isinstance(found, bool):
            raise _refusal("true or false", given, what)
        return found
    found = _number(given, whole=isinstance(shown, int)) if isinstance(given, str) else given
    kinds = int if isinstance(shown, int) else int | float
    if isinstance(found, bool) or not isinstance(found, kinds) or (isinstance(found, float) and not isfinite(found)):
        raise _refusal("a whole number" if isinstance(shown, int) else "a number", given, what)
    return found


def _number(text: str, *, whole: bool) -> float | None:
    """Return the number *text* writes in full; `None` where it writes none, or one that would be rounded."""
    if len(text) > LONGEST_NUMBER:
        return None
    if WHOLE.fullmatch(text) and text != "-0":
        return int(text)
    if whole or not NUMBER.fullmatch(text):
        return None
    found = float(text)
    return found if isfinite(found) and Decimal(repr(found)) == Decimal(text) else None


def _mapping(shown: Mapping[str, Any], given: Any, what: str) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise _refusal("a mapping", given, what)
    if given.keys() != shown.keys():
        raise DecisionInvalid(f"{what} must have the keys that were shown: {', '.join(sorted(shown))}")
    return {key: read_as(shown[key], given[key], f"{key!r} in {what}") for key in shown}


def _list(shown: list[Any], given: Any, what: str) -> list[Any]:
    """A list of another length is taken where all its entries were text, or all were numbers: then an entry's kind is no question."""
    if not isinstance(given, list):
        raise _refusal("a list", given, what)
    if len(given) == len(shown):
        like = shown
    elif shown and len({type(one) for one in shown}) == 1 and isinstance(shown[0], str | int | float):
        like = shown[:1] * len(given)
    else:
        raise _refusal(f"a list with {len(shown)} entries", given, what)
    return [
        read_as(one, entry, f"entry {at} of {what}") for at, (one, entry) in enumerate(zip(like, given, strict=True))
    ]


def _parsed(given: Any, what: str) -> Any:
    """Return what text of JSON says; anything else as it is."""
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given, object_pairs_hook=_once_each, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise DecisionInvalid(f"{what} is not JSON: {error}") from error


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _refusal(kind: str, given: Any, what: str) -> DecisionInvalid:
    return DecisionInvalid(f"{what} was {kind}, and {given!r:.80} is not, or leaves doubt")
