"""
How long a run that failed is left alone before a worker begins it again: twice as long each time, and never all at the same moment.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import timedelta

from checkpointing.errors import GraphRefused


@dataclass(frozen=True, slots=True)
class Backoff:
    """
    The waits between the attempts of one run. Whoever calls the graph themselves does not wait: these are the workers' waits.

    Attributes:
        first: The wait after the first attempt; each further one is twice the one before.
        longest: No wait is longer.
    """

    first: timedelta = timedelta(seconds=1)
    longest: timedelta = timedelta(minutes=5)

    def __post_init__(self) -> None:
        """Refuse waits that are none."""
        if not timedelta(0) <= self.first <= self.longest:
            raise GraphRefused(f"a wait of {self.first}, and none longer than {self.longest}, is no backoff")

    def wait(self, tries: int) -> timedelta:
        """Return how long to wait after that many tries, between half of the wait and all of it, drawn at random."""
        doublings = min(max(tries - 1, 0), 30)
        share = random.uniform(0.5, 1)  # noqa: S311  # it spreads retries, and guards nothing
        if self.first and self.longest / self.first < 1 << doublings:
            return self.longest * share
        return self.first * (1 << doublings) * share
