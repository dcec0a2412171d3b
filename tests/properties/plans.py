"""
What a property test draws: a graph, and what happens to its one run, as plain data that a failing example prints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hypothesis import strategies as st

Shape = Literal["pay", "model", "ask", "loop", "fan", "both", "sub"]

POINTS = (
    "before run.admit", "after run.admit", "after lease.take", "before run.start", "after run.start",
    "before effect.claim", "after effect.claim", "executed", "before effect.settle", "after effect.settle",
    "before checkpoint.put", "after checkpoint.put", "before checkpoint.put_writes", "after checkpoint.put_writes",
    "before approval.open", "after approval.open", "before approval.decide", "after approval.decide",
    "before run.park", "after run.park", "before run.finish", "after run.finish",
)  # fmt: skip


@dataclass(frozen=True)
class Part:
    """One part of the chain; `times` is how often a loop goes round, or how wide a fan is."""

    shape: Shape
    times: int


@dataclass(frozen=True)
class Event:
    """
    Something that happens to the run.

    Attributes:
        kind: `submit`, `nudge`, `approve`, `two` (two approve at once), `travel` (the raw graph goes on from an old checkpoint) or `later`.
        point: Where the process dies, or `None`.
        nth: At which passing of the point.
        choice: Which checkpoint is travelled to, or how many minutes pass.
    """

    kind: Literal["submit", "nudge", "approve", "two", "travel", "later"]
    point: str | None
    nth: int
    choice: int


@dataclass(frozen=True)
class Plan:
    """A graph and a history."""

    parts: tuple[Part, ...]
    events: tuple[Event, ...]


points = st.sampled_from([None, None, *POINTS])
nths = st.sampled_from([1, 1, 1, 2, 3])
later = st.builds(Event, st.just("later"), st.none(), st.just(1), st.integers(0, 40))
acting = st.builds(
    Event,
    st.sampled_from(["submit", "nudge", "approve", "approve", "approve", "two", "two", "travel"]),
    points,
    nths,
    st.integers(0, 40),
)
first = st.builds(Event, st.just("submit"), points, nths, st.just(0))
parts = st.builds(
    Part, st.sampled_from(["pay", "model", "ask", "ask", "ask", "loop", "fan", "both", "sub"]), st.integers(1, 3)
)


def _with_time(events: list[Event]) -> tuple[Event, ...]:
    """Let the lease of whoever died run out before the next event, or its victim would only be told to wait."""
    return tuple(one for event in events for one in (event, Event("later", None, 1, 1 if event.point else 0)))


plans = st.builds(
    lambda chain, begin, rest: Plan(tuple(chain), _with_time([begin, *rest])),
    st.lists(parts, min_size=1, max_size=4),
    first,
    st.lists(st.one_of(acting, acting, acting, later), min_size=3, max_size=8),
)
