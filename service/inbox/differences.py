"""
What changed between two questions, or between what was asked and what an approver made of it: a line a value, with the words of the pages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from checkpointing import Approval
from service.inbox import words

MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True, slots=True)
class Difference:
    """
    One value that is another than before.

    Attributes:
        before: As text; `nothing` where there was none.
        moved: By how much an amount went up or down, with its sign; empty for anything else.
    """

    label: str
    before: str
    after: str
    moved: str = ""


def between(before: Any, after: Any, *, amount_in: str | None = None) -> list[Difference]:
    """Return what is different in *after*, in its order, what is gone last."""
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return [] if before == after else [Difference("Asked", words.value(before), words.value(after))]
    return [
        _difference(key, before, after, amount_in)
        for key in dict.fromkeys((*after, *before))
        if before.get(key) != after.get(key)
    ]


def of_facts(before: Approval, after: Approval) -> list[Difference]:
    """Return which of the facts shown beside the payload are different."""
    old, new = (one.about.get("facts") if one.about else None for one in (before, after))
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return []
    return [
        Difference(str(key), words.value(old.get(key)), words.value(new.get(key)))
        for key in dict.fromkeys((*new, *old))
        if old.get(key) != new.get(key)
    ]


def _difference(key: str, before: Mapping[str, Any], after: Mapping[str, Any], amount_in: str | None) -> Difference:
    old, new = before.get(key), after.get(key)
    if not (words.is_amount(key, old, before, amount_in) and words.is_amount(key, new, after, amount_in)):
        return Difference(words.label(key), words.value(old), words.value(new))
    was, now = words.currency_of(before), words.currency_of(after)
    moved = ""
    if was == now and isinstance(old, int) and isinstance(new, int):
        moved = f"{'+' if new > old else MINUS}{words.number(abs(new - old), now)}"
    return Difference(words.label(key), words.money(old or 0, was), words.money(new or 0, now), moved)
