"""
A run's timeline as the pages draw it: a step an entry of a list, each with its bar on a common axis, and below it what it did, asked and waited for.

The bars are SVG with classes and no style, which the pages' policy asks for; they say nothing that the words beside them do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from checkpointing import Approval, EffectRecord
from graph.axis import WIDTH, Axis
from graph.timeline import StepView, Timeline
from service.inbox import words
from service.inbox.differences import between
from service.words import CHANNELS, currency_of, effect_state, times

WAITED = {
    "parked": "waited",
    "dead": "was a dead letter",
    "done": "was done",
    "left": "was left to another worker",
    "died": "its worker had died, nobody had it",
}
"""What is said of a pause of each kind, before its length."""


@dataclass(frozen=True, slots=True)
class Piece:
    """
    A part of a step's bar, in pixels of the axis.

    Attributes:
        kind: `work`; or `wait`, or `trouble`, for a pause.
    """

    kind: str
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Mark:
    """An outcome or a decision at its instant on the axis."""

    x: float
    tone: str


@dataclass(frozen=True, slots=True)
class Effect:
    """
    An effect as a step shows it.

    Attributes:
        said: Its outcome in words.
        times: How often it was called, and answered from the record.
    """

    record: EffectRecord
    state: str
    said: str
    times: str


@dataclass(frozen=True, slots=True)
class Question:
    """An approval as a step shows it: how it stands, and what a decision says beyond its kind."""

    approval: Approval
    said: str
    more: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """
    One step as it is drawn.

    Attributes:
        took: How long a worker was at it; empty for the one the run stands in.
        waits: The long pauses in it, in words.
        is_standing: The run stands in it.
    """

    number: int
    name: str
    began: datetime
    took: str
    changed: tuple[str, ...]
    effects: tuple[Effect, ...]
    questions: tuple[Question, ...]
    waits: tuple[str, ...]
    pieces: tuple[Piece, ...]
    marks: tuple[Mark, ...]
    starts: int
    is_standing: bool


@dataclass(frozen=True, slots=True)
class Drawn:
    """
    A timeline as it is drawn.

    Attributes:
        worked: How long workers were at it altogether.
        width: Of the axis, in pixels.
    """

    steps: tuple[Step, ...]
    worked: str
    width: int


def draw(timeline: Timeline) -> Drawn:
    """Lay the timeline out."""
    axis = Axis(timeline)
    return Drawn(tuple(_step(step, timeline, axis) for step in timeline.steps), _short(axis.shown), WIDTH)


def _step(step: StepView, timeline: Timeline, axis: Axis) -> Step:
    standing = step is timeline.standing
    return Step(
        number=step.number,
        name=", ".join(words.label(node) for node in step.nodes),
        began=step.began,
        took=_took(step, axis),
        changed=tuple(_changed(step)),
        effects=tuple(_effect(one) for one in step.effects),
        questions=tuple(_question(one) for one in step.approvals),
        waits=tuple(_waits(step, axis, standing=standing)),
        pieces=tuple(_pieces(step, axis, standing=standing)),
        marks=tuple(_marks(step, axis)),
        starts=step.attempts,
        is_standing=standing,
    )


def _effect(record: EffectRecord) -> Effect:
    state = effect_state(record)
    said = {"settled": "done once", "claimed": "under way", "in_doubt": "nobody knows whether it happened", "released": "did not happen"}  # fmt: skip
    return Effect(record, state, record.declined or said.get(state, state), times(record))


def _question(approval: Approval) -> Question:
    decision = approval.decision or {}
    edited = (
        between(approval.payload, decision["payload"], amount_in=approval.amount_in) if "payload" in decision else []
    )
    more = [f"{one.label}: {one.before} → {one.after}" for one in edited]
    return Question(
        approval, words.question(approval), (*more, *([str(decision["reason"])] if "reason" in decision else []))
    )


def _changed(step: StepView) -> Iterator[str]:
    """Yield what the step made of the state, a line a key; what stands in its receipts and decisions is said there."""
    currency = currency_of({**step.before, **step.update})
    for key, new in step.update.items():
        said = _value(key, new, currency)
        if said and key not in CHANNELS and step.before.get(key) != new:
            yield f"{words.label(key)}: {said}"


def _value(key: str, new: Any, currency: str) -> str:
    """Return a value in a few words; empty for one that takes more."""
    match new:
        case int() if key == "payout":
            said = words.money(new, currency)
        case {"payout": int(payout), "currency": str(of)}:
            said = f"payable {words.money(payout, of)}"
        case {"declined": reason}:
            said = f"declined: {reason}"
        case {"amount": int(amount), "currency": str(of)}:
            said = words.money(amount, of)
        case {"status": status}:
            said = str(status)
        case dict() | list():
            said = ""
        case _:
            said = words.value(new).replace("_", " ")
    return words.cut(said, 200)


def _took(step: StepView, axis: Axis) -> str:
    if step.ended is None:
        return ""
    paused = (pause.length for pause in axis.pauses if step.began <= pause.began < step.ended)
    return _short(step.ended - step.began - sum(paused, timedelta(0)))


def _waits(step: StepView, axis: Axis, *, standing: bool) -> Iterator[str]:
    for pause in axis.long:
        if step.began <= pause.began < (step.ended or axis.ended):
            yield f"{WAITED[pause.kind]} {words.duration(pause.length)}"
    if standing and axis.open:
        yield f"{WAITED[axis.open.kind]} since {words.moment(axis.open.began)}"


def _pieces(step: StepView, axis: Axis, *, standing: bool) -> Iterator[Piece]:
    """Yield the bar: work between the pauses, and the pauses."""
    left, right = axis.x(step.began), axis.x(step.ended or axis.ended)
    inside = [one for one in axis.long if one.began < (step.ended or axis.ended) and one.end > step.began]
    edges = [left, *(axis.x(at) for one in inside for at in (one.began, one.end)), right]
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        yield Piece("work", min(begin, WIDTH - 3.0), max(3.0, end - begin))
    for one in inside:
        yield Piece(_tone(one.kind), axis.x(one.began), axis.x(one.end) - axis.x(one.began))
    if standing and axis.open:
        yield Piece(_tone(axis.open.kind), right, float(axis.tail))


def _marks(step: StepView, axis: Axis) -> Iterator[Mark]:
    until = step.ended or axis.ended
    for effect in step.effects:
        if effect.settled_at and step.began <= effect.settled_at <= until:
            yield Mark(axis.x(effect.settled_at), effect_state(effect))
    for approval in step.approvals:
        if approval.decided_at and step.began <= approval.decided_at <= until:
            yield Mark(axis.x(approval.decided_at), approval.state)


def _tone(kind: str) -> str:
    return "trouble" if kind in ("dead", "died") else "wait"


def _short(time: timedelta) -> str:
    """Return how long work took: shorter than people's durations."""
    seconds = max(0.0, time.total_seconds())
    if seconds >= 60:
        return words.duration(time)
    return f"{seconds:.1f} s" if seconds >= 0.1 else f"{round(seconds * 1000)} ms"
