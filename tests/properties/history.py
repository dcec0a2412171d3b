"""
A history as plain data: the parts of a graph, and what happens to its one run; what a failing example prints as a script.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

Shape = Literal["chain", "loop", "fan", "both", "sub"]
Question = Literal["none", "lasting", "rejects", "approves"]
"""Whether a person is asked before the effect, and what the expiry of the question counts as."""
Kind = Literal["keyed", "looked_up", "asked"]
"""Receivers: one that honours keys for a day, one that can be looked up, one of which only a person can find out."""
Verb = Literal[
    "submit", "submit_other", "nudge", "decide", "stale", "misread", "own", "two", "travel", "rewrite", "later", "mood",
    "resolve", "redrive", "overtaken",
]  # fmt: skip
RAW = ("travel", "rewrite")
"""What is done with LangGraph's own graph."""

POINTS = (
    "before run.admit", "after run.admit", "after lease.take", "before run.start", "after run.start",
    "before effect.claim", "after effect.claim", "executed", "before effect.settle", "after effect.settle",
    "before checkpoint.put", "after checkpoint.put", "before checkpoint.put_writes", "after checkpoint.put_writes",
    "before approval.open", "after approval.open", "before approval.decide", "after approval.decide",
    "before approval.expire", "after approval.expire", "after effect.doubt", "after effect.release",
    "after effect.resolve", "after run.redrive", "after run.stand_by", "after run.die",
    "before run.park", "after run.park", "before run.finish", "after run.finish",
)  # fmt: skip
STANDS = (
    "before run.start", "before effect.claim", "executed", "before effect.settle", "before checkpoint.put",
    "before checkpoint.put_writes", "before approval.open", "before run.park", "before run.finish",
)  # fmt: skip
"""Where a worker that is overtaken stands still, holding no lock."""
RIVALS = ("after run.start", "after effect.claim", "after effect.settle", "after checkpoint.put")


class Short:
    """Shows itself as the call that makes it, without what is at its default."""

    def __repr__(self) -> str:
        """Return Python that makes an equal one."""
        shown = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if getattr(self, f.name) != f.default]  # type: ignore[arg-type]  # a dataclass
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(frozen=True, repr=False)
class Part(Short):
    """
    One part of the graph; the parts follow one another.

    Attributes:
        shape: A step alone, in a loop, sent to, beside another one and a model, or in a subgraph.
        times: How often the loop goes round, or how wide the fan is.
        question: What is asked before the effect; nothing is asked under a `Send`.
        receiver: Who executes the effect.
    """

    shape: Shape
    times: int = 1
    question: Question = "none"
    receiver: Kind = "keyed"


@dataclass(frozen=True, repr=False)
class Crash(Short):
    """The process dies at a point, at the nth time it gets there; and how long others wait before they act, in seconds."""

    point: str
    nth: int = 1
    then_s: int = 60


@dataclass(frozen=True, repr=False)
class Event(Short):
    """
    Something that happens to the run.

    Attributes:
        what: The kind of the decision, or the receiver's mood, or what others do to the run while its worker stands still.
        choice: Which approval or checkpoint, or how many seconds.
        amount: What an edit or a rewriting makes of the amount.
        crash: Where the process dies; for `overtaken`, where it stands still.
        rival: For `overtaken`: where the one that takes over dies; `None` if it carries the run on as far as that goes.
    """

    verb: Verb
    what: str = ""
    choice: int = 0
    amount: int = 5
    crash: Crash | None = None
    rival: Crash | None = None


def operations(name: str, part: Part) -> list[str]:
    """Return the names of the logical operations of a part: each is to happen once."""
    match part.shape:
        case "loop" | "fan":
            return [f"{name}/{turn}" for turn in range(part.times)]
        case "both":
            return [f"{name}-left/0", f"{name}-right/0"]
        case _:
            return [f"{name}/0"]


def named(parts: list[Part]) -> list[tuple[str, Part]]:
    """Return the parts with their names."""
    return [(f"{part.shape}{number}", part) for number, part in enumerate(parts)]


def question_of(parts: list[Part]) -> dict[str, Question]:
    """Return, for every operation of the graph, the question it needs an answer to."""
    return {
        one: "none" if part.shape == "fan" else part.question
        for name, part in named(parts)
        for one in operations(name, part)
    }
