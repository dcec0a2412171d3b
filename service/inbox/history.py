"""
Similar decisions: what was decided of late under the same name, and what of it was about a similar amount. It advises, and binds nobody.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from checkpointing import Approval, Journal

LOOKED_AT = 100
SHOWN = 5


@dataclass(frozen=True, slots=True)
class History:
    """
    Decisions like the one to be made.

    Attributes:
        counted: How many there were of each kind, the most frequent first.
        nearest: Those about the most similar amounts, the latest first.
    """

    counted: tuple[tuple[str, int], ...] = ()
    nearest: tuple[Approval, ...] = ()

    @property
    def count(self) -> int:
        """How many were looked at."""
        return sum(count for _, count in self.counted)


def like(journal: Journal, approval: Approval) -> History:
    """Look at the latest decisions of the same name; a graph's own `interrupt()` has none."""
    if approval.interrupt_id:
        return History()
    found = journal.listing.similar(approval, limit=LOOKED_AT).items
    kinds = Counter(str(one.decision["type"]) for one in found if one.decision)
    nearest = sorted(found, key=lambda one: _distance(one, approval))[:SHOWN]
    return History(tuple(kinds.most_common()), tuple(one for one in found if one in nearest))


def _distance(one: Approval, other: Approval) -> int:
    if one.amount is None or other.amount is None:
        return 0
    return abs(one.amount - other.amount)
