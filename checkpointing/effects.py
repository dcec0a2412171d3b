"""
An effect as values: what a node asks of the ledger, what a claim allows, and what the ledger has recorded.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from checkpointing.budget import Spend
from checkpointing.clock import from_ms
from checkpointing.digest import JSON
from checkpointing.leases import Lease
from checkpointing.slots import MAX_KEY_LENGTH, Place, Slot, make_key
from checkpointing.store import Row

EffectState = Literal["claimed", "settled", "in_doubt", "released"]


@dataclass(frozen=True, slots=True)
class Request:
    """
    What a node asks of the ledger.

    Attributes:
        slot: Which effect this is.
        place: Where in the thread's history it is asked from.
        digest: The first 16 hex digits of the arguments' SHA-256, volatile fields left out.
        approved_hash: The whole SHA-256 of all arguments, to be compared with the approval's.
        approval_id: The approval it acts under, or `None`.
        cost: In minor units; 0 if the effect declares none.
        tokens: What a model may use; 0 if the effect declares none.
        repeatable: An abandoned claim does no harm: calling again is no second effect.
        max_key_length: The longest key its receiver takes, in characters.
    """

    slot: Slot
    place: Place
    effect: str
    arguments: dict[str, JSON]
    digest: str
    approved_hash: str
    approval_id: str | None
    cost: int
    max_key_length: int = MAX_KEY_LENGTH
    tokens: int = 0
    repeatable: bool = False

    @property
    def key(self) -> str:
        """What the receiver gets as the first key of the slot."""
        return self.key_of(1)

    def key_of(self, generation: int) -> str:
        """Return what the receiver gets as the key of this *generation* of the slot."""
        return make_key(self.slot, self.digest, max_length=self.max_key_length, generation=generation)

    def columns(self) -> dict[str, Any]:
        """Return the request as the ledger stores it, but for its key."""
        return {
            "slot": self.slot.id,
            "effect": self.effect,
            "thread_id": self.slot.thread_id,
            "step": self.slot.step,
            "arguments": json.dumps(self.arguments),
            "digest": self.digest,
            "approval_id": self.approval_id,
            "cost": self.cost,
            "tokens": self.tokens,
            "repeatable": int(self.repeatable),
            **self.place.columns(),
        }


@dataclass(frozen=True, slots=True)
class Claim:
    """
    The right to call the receiver once more for this slot.

    Attributes:
        doubtful: An earlier call may have happened; `move` says what to do about it.
        age: Time since the key was first claimed, for its life at the receiver.
        since_call: Time since the last call before this claim began, for the receiver's settle delay.
    """

    record: EffectRecord
    lease: Lease
    doubtful: bool
    age: timedelta
    since_call: timedelta


@dataclass(frozen=True, slots=True)
class EffectRecord:
    """
    An effect as its row has it.

    Attributes:
        key: As it was sent to the receiver.
        thread_id: The thread that claimed it; for a `once=` effect others may be answered from it.
        step: The slot's step: node path, visit, index of the `Send`.
        outcome: What the tool returned, or `{"declined": message}`; `None` until settled.
        calls: How many claims led to a call, the first one counted.
        replays: How often it was answered from here instead of being called.
        cost: What was reserved for it before the call, in minor units.
        generation: Which key of the slot this is, from 1; each `reissue` begins the next.
        reissued_as: The key of the next generation, if there is one; this record is then history.
        tokens: What was reserved of a model's tokens.
        spent_money: What it came to; `None` where that is what was reserved, or not known yet.
        spent_tokens: The same for tokens.
    """

    key: str
    effect: str
    slot: str
    thread_id: str
    step: str
    arguments: dict[str, Any]
    digest: str
    state: EffectState
    outcome: Any
    approval_id: str | None
    calls: int
    replays: int
    cost: int
    claimed_at: datetime
    settled_at: datetime | None
    generation: int = 1
    reissued_as: str | None = None
    tokens: int = 0
    spent_money: int | None = None
    spent_tokens: int | None = None

    @property
    def declined(self) -> str | None:
        """The receiver's reason if it declined, else `None`."""
        if isinstance(self.outcome, dict) and self.outcome.keys() == {"declined"}:
            return str(self.outcome["declined"])
        return None


def spent_columns(outcome: JSON, spent: Spend | None = None) -> dict[str, int | None]:
    """Return what an effect with this outcome came to, as the ledger stores it: what a receiver declined costs no money."""
    given = spent or Spend()
    is_no = isinstance(outcome, dict) and outcome.keys() == {"declined"}
    return {"money": 0 if is_no and given.money is None else given.money, "tokens": given.tokens}


def record_from(row: Row) -> EffectRecord:
    """Read an effect from its row, or from that of one of its earlier generations."""
    return EffectRecord(
        key=row["key"],
        effect=row["effect"],
        slot=row["slot"],
        thread_id=row["thread_id"],
        step=row["step"],
        arguments=json.loads(row["arguments"]),
        digest=row["digest"],
        state=row["state"],
        outcome=None if row["outcome"] is None else json.loads(row["outcome"]),
        approval_id=row["approval_id"],
        calls=row["calls"],
        replays=row["replays"],
        cost=row["cost"],
        claimed_at=from_ms(row["claimed_ms"]),
        settled_at=None if row["settled_ms"] is None else from_ms(row["settled_ms"]),
        generation=row["generation"],
        reissued_as=row.get("reissued_as"),
        tokens=row.get("tokens", 0),
        spent_money=row["spent_money"],
        spent_tokens=row["spent_tokens"],
    )
