"""
The time axis of a drawn run: when nobody worked on it, and which pixel an instant is.

    started ── work ── parked · dead · done · left · died ── started ── work ── …
               shown in     a pause: short ones as they are,
               proportion   long ones at a fixed width

A pause is long where it would squeeze everything else. Of two clocks that disagree, the store's and the host's, neither is believed: an instant
outside the run lies on its edge.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from checkpointing.clock import from_ms
from graph.timeline import Timeline

WIDTH = 520
"""The time axis, in pixels."""
PAUSE_WIDTH = 92
"""What a compressed pause takes of it."""

RESTS: dict[str, Literal["parked", "dead", "done", "left"]] = {
    "run.park": "parked",
    "run.die": "dead",
    "run.finish": "done",
    "run.stand_by": "left",
}
"""Which entry of the audit leaves a run to which rest; after any other one its worker died."""


@dataclass(frozen=True, slots=True)
class Pause:
    """
    A time in which no worker had the run.

    Attributes:
        ended: `None` where nobody has taken it up yet.
        kind: Why: it was parked, a dead letter or done; it was left to the next call; its worker died.
    """

    began: datetime
    ended: datetime | None
    kind: Literal["parked", "dead", "done", "left", "died"]

    @property
    def end(self) -> datetime:
        """When it ended; where it has not, when it began."""
        return self.ended or self.began

    @property
    def length(self) -> timedelta:
        """How long it was, never nothing: a pause is divided by."""
        return max(self.end - self.began, timedelta(microseconds=1))


class Axis:
    """
    Instants to pixels: work in proportion, long pauses at a fixed width.

    Attributes:
        began: The left edge, when the first step began.
        ended: The right edge, the last thing known of the run.
        pauses: The pauses that ended, in order.
        long: Those of them that are compressed.
        pause_width: What each of these takes, in pixels.
        open: The pause that lasts until now, or `None`.
        tail: What that one takes beyond the right edge, in pixels.
    """

    def __init__(self, timeline: Timeline) -> None:
        """Lay out *timeline*."""
        steps = timeline.steps
        self.began = steps[0].began if steps else timeline.run.created_at
        ends = [step.ended or step.began for step in steps]
        ends += [from_ms(entry.at_ms) for entry in timeline.entries]
        self.ended = max([self.began, *ends])
        found = pauses(timeline)
        self.pauses = [pause for pause in found if pause.ended]
        self.open = next((pause for pause in found if not pause.ended), None)
        self.long = [pause for pause in self.pauses if pause.length > self._without(self.pauses) / 6]
        self.tail = PAUSE_WIDTH if self.open else 0
        self.pause_width = min(PAUSE_WIDTH, WIDTH * 0.6 / max(1, len(self.long)))
        free = WIDTH - self.tail - self.pause_width * len(self.long)
        self._per_second = free / max(self.shown.total_seconds(), 1e-6)

    @property
    def shown(self) -> timedelta:
        """How much time stands in proportion: everything but the long pauses."""
        return self._without(self.long)

    def x(self, at: datetime) -> float:
        """Return where *at* is, in pixels from the left."""
        at = min(max(at, self.began), self.ended)
        seconds, left = (at - self.began).total_seconds(), 0.0
        for pause in self.long:
            inside = min(max(at - pause.began, timedelta(0)), pause.length)
            seconds -= inside.total_seconds()
            left += self.pause_width * (inside / pause.length)
        return left + max(0.0, seconds) * self._per_second

    def _without(self, left_out: Iterable[Pause]) -> timedelta:
        return self.ended - self.began - sum((pause.length for pause in left_out), timedelta(0))


def pauses(timeline: Timeline) -> list[Pause]:
    """Return when nobody worked on the run: from the last thing one worker did to the start of the next, and since the last one's end."""
    found = []
    worker, last = "", None
    for entry in timeline.entries:
        if entry.event == "run.start":
            at = from_ms(entry.at_ms)
            if last is not None and entry.actor != worker:
                began = max([from_ms(last.at_ms), *_checkpoints(timeline, before=at)])
                found.append(Pause(began, at, RESTS.get(last.event, "died")))
            worker, last = entry.actor, entry
        elif entry.actor == worker:
            last = entry
    if last is not None and timeline.standing and (kind := RESTS.get(last.event)):
        found.append(Pause(from_ms(last.at_ms), None, kind))
    return found


def _checkpoints(timeline: Timeline, *, before: datetime) -> Iterable[datetime]:
    return (step.began for step in timeline.steps if step.began <= before)
