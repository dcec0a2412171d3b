"""
What a reconciliation finds: one difference between the ledger and a receiver's list, and what it means.

    missing       settled here, and the receiver has no such execution
    unknown       executed there, and no effect here has its key
    lost          the same, and the journal was restored from an older copy since: it can be recorded, to answer whoever asks for it
    awaited       recorded as lost, and its run has yet to ask for it; not a difference
    unsettled     executed there; claimed by a worker that is gone, in doubt or released here. It can be adopted
    differs       executed there with another amount, currency, payee or id, taken back there, or against what was recorded
    twice         a second execution for one slot
    incomparable  settled here without the receiver's id, and the receiver cannot be asked for its key: nobody can say; not a difference
    in_progress   too young to be judged, or a worker is at it; not a difference

What is unknown or there twice, and was taken back at the receiver, is no finding any more: that is how such a one is mended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from checkpointing import EffectRecord
from checkpointing.restored import same_fact
from tools.executed import Executed

Kind = Literal["missing", "unknown", "lost", "awaited", "unsettled", "differs", "twice", "incomparable", "in_progress"]
DIFFERENCES: tuple[Kind, ...] = ("missing", "unknown", "lost", "unsettled", "differs", "twice")
"""The kinds that must not be."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact on which the two sides do not agree."""

    field: str
    here: Any
    there: Any


@dataclass(frozen=True, slots=True)
class Finding:
    """
    One finding.

    Attributes:
        effect: The effect's name.
        why: One sentence, with the ids.
        record: What the ledger has, or the effect in whose slot the execution belongs; `None` where it knows nothing.
        executed: What the receiver has; `None` where it has nothing.
        differences: The facts that differ, where both sides have some.
    """

    kind: Kind
    effect: str
    why: str
    record: EffectRecord | None = None
    executed: Executed | None = None
    differences: tuple[Difference, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return it as JSON; amounts are minor units, times ISO 8601 in UTC."""
        record, executed = self.record, self.executed
        return {
            "kind": self.kind,
            "effect": self.effect,
            "why": self.why,
            "key": executed.key if executed and executed.key else record.key if record else None,
            "slot_key": record.key if record else None,
            "thread_id": record.thread_id if record else None,
            "state": record.state if record else None,
            "recorded": record.outcome if record else None,
            "executed": _executed(executed) if executed else None,
            "differences": [{"field": one.field, "here": one.here, "there": one.there} for one in self.differences],
            "adopted": False,
        }


def differences(record: EffectRecord, executed: Executed) -> tuple[Difference, ...]:
    """Return where an execution differs from what was asked for, and from what was recorded as its outcome."""
    recorded = record.outcome if record.state == "settled" and isinstance(record.outcome, Mapping) else {}
    asked = {
        field: value for field, value in record.arguments.items() if field != "id"
    }  # an outcome's id is the receiver's
    found = []
    for field, there in executed.outcome.items():
        known = [side[field] for side in (recorded, asked) if field in side]
        if other := [here for here in known if not same_fact(field, here, there)]:
            found.append(Difference(field, other[0], there))
    if executed.taken_back:
        found.append(Difference("taken_back", here=False, there=True))
    return tuple(found)


def _executed(one: Executed) -> dict[str, Any]:
    return {
        "id": one.id,
        "at": one.at.isoformat(),
        "key": one.key,
        "identity": one.identity,
        "outcome": dict(one.outcome),
        "taken_back": one.taken_back,
    }
