"""
An approval's question and its record, as values: what is asked, what was decided, and what an effect may act on.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from checkpointing.clock import from_ms
from checkpointing.digest import JSON, sha256
from checkpointing.store import Row
from checkpointing.tiers import Tier, tier_from

ApprovalState = Literal["pending", "decided", "superseded", "expired", "withdrawn"]


@dataclass(frozen=True, slots=True)
class Question:
    """
    What is asked, of whom, and until when.

    Attributes:
        node: The node's path in the graph; with `name` and `visit` it is the question's identity.
        visit: Which visit of the node this is, from 0.
        payload: Exactly what is to be approved, as JSON.
        allowed: The kinds of decision taken.
        approvers: Who may decide; `None`: any principal but the submitter.
        edits: A JSON Schema that an edited payload must fit, over the rule that it keeps the keys and kinds of the one shown; for a graph's own
            interrupt the schema that it publishes for its answer.
        ttl: How long the question stands; `None`: for ever.
        on_expiry: What the expiry counts as: a kind of decision, or `hand_over`.
        interrupt_id: LangGraph's id, for an interrupt that is not an approval node's.
        tiers: The ladder it climbs; where there is one, the tier it stands with says who may decide and for how long.
        amount_in: The payload's key that has what is asked about, in minor units.
        four_eyes: An edited payload takes a second person who wants exactly the same.
        quorum: How many have to say the same, where there is no ladder.
        remind: How long before the end of `ttl` the approvers are reminded.
        about: What is shown beside the payload and binds nothing, as JSON.
    """

    thread_id: str
    node: str
    name: str
    visit: int
    payload: JSON
    allowed: tuple[str, ...]
    approvers: tuple[str, ...] | None = None
    edits: dict[str, JSON] | None = None
    ttl: timedelta | None = None
    on_expiry: str = "reject"
    interrupt_id: str | None = None
    tiers: tuple[Tier, ...] = ()
    amount_in: str | None = None
    four_eyes: bool = False
    quorum: int = 1
    remind: timedelta | None = None
    about: dict[str, JSON] | None = None


@dataclass(frozen=True, slots=True)
class Approval:
    """
    An approval as its row has it.

    Attributes:
        round: Counts the payloads shown in one visit, from 0.
        decision: The decision as recorded; for an expired one `{"type": <on_expiry>}`; `None` while pending.
        decided_by: The principal; `None` for an expiry.
        interrupt_id: Set where the question is a graph's own `interrupt()`.
        withdrawn_by: Who took the question, or the decision, back; the decision stays on record.
        amount: What is asked about, in minor units, where the payload says so under `amount_in`.
        about: What is shown beside the payload; it binds nothing.
        replaces: The approval this one took the place of: the round, or the visit, before it.
        tiers: The ladder; empty for a question that is asked of one set of people.
        tier: The place on it, from 0.
        quorum: How many have to say the same.
        remind_at: When a reminder is due; `None` once it was given, and where there is none.
    """

    id: str
    thread_id: str
    node: str
    name: str
    visit: int
    round: int
    payload: Any
    payload_hash: str
    allowed: tuple[str, ...]
    approvers: tuple[str, ...] | None
    edits: dict[str, Any] | None
    on_expiry: str
    state: ApprovalState
    decision: dict[str, Any] | None
    decided_by: str | None
    decided_at: datetime | None
    opened_at: datetime
    expires_at: datetime | None
    interrupt_id: str | None
    withdrawn_by: str | None = None
    withdrawn_why: str | None = None
    withdrawn_at: datetime | None = None
    amount: int | None = None
    amount_in: str | None = None
    about: dict[str, Any] | None = None
    replaces: str | None = None
    tiers: tuple[Tier, ...] = ()
    tier: int = 0
    quorum: int = 1
    four_eyes: bool = False
    remind_at: datetime | None = None
    reminded_at: datetime | None = None

    @property
    def at_tier(self) -> Tier | None:
        """The tier it stands with, where it has a ladder."""
        return self.tiers[self.tier] if self.tiers else None

    @property
    def next_tier(self) -> Tier | None:
        """The tier that is asked when this one's time is over."""
        return self.tiers[self.tier + 1] if self.tier + 1 < len(self.tiers) else None

    def request(self) -> dict[str, Any]:
        """Return what the interrupt shows: the question, in JSON."""
        return {
            "id": self.id,
            "thread_id": self.thread_id,
            "name": self.name,
            "payload": self.payload,
            "payload_hash": self.payload_hash,
            "allowed": list(self.allowed),
            "approvers": None if self.approvers is None else list(self.approvers),
            "edits": self.edits,
            "expires_at": self.expires_at.isoformat() if self.expires_at else None,
        }

    def terms(self) -> str:
        """Return the hash of the question's terms: who may decide what until when, and what silence counts as."""
        until = self.expires_at.isoformat() if self.expires_at else None
        terms: list[Any] = [self.allowed, self.approvers, self.edits, self.on_expiry, until]
        ladder = [[tier.as_json() for tier in self.tiers], self.tier, self.quorum, self.four_eyes, self.amount_in]
        # A question of before there were ladders has the hash it was opened with.
        return sha256(terms if ladder == [[], 0, 1, False, None] else [*terms, *ladder])

    def record(self) -> dict[str, Any]:
        """
        Return the decided approval as the state holds it, in JSON.

        Keys: `id`, `name`, `visit`, `type` (the decision's, or `withdrawn`), `payload` and `payload_hash` (as approved, or as the approver
        made them), `by`, `at`, `reason`, `expired`; and `with`, where it took several: the others who said the same.
        """
        decision = self.decision or {}
        payload, payload_hash = self.approved()
        if self.state == "withdrawn":
            return {**self._withdrawal(), "payload": payload, "payload_hash": payload_hash}
        return {
            "id": self.id,
            "name": self.name,
            "visit": self.visit,
            "type": decision.get("type"),
            "payload": payload,
            "payload_hash": payload_hash,
            "by": self.decided_by,
            "at": self.decided_at.isoformat() if self.decided_at else None,
            "reason": decision.get("reason"),
            "expired": self.state == "expired",
            **({"with": decision["with"]} if "with" in decision else {}),
        }

    def _withdrawal(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "name": self.name,
            "visit": self.visit,
            "type": "withdrawn",
            "by": self.withdrawn_by,
            "at": self.withdrawn_at.isoformat() if self.withdrawn_at else None,
            "reason": self.withdrawn_why,
            "expired": False,
        }

    def approved(self) -> tuple[Any, str]:
        """Return the payload an effect may act on, and its hash: the one shown, or what an edit made of it."""
        if self.decision and self.decision["type"] == "edit":
            edited = self.decision["payload"]
            return edited, sha256(edited)
        return self.payload, self.payload_hash


def approval_id(thread_id: str, node: str, name: str, visit: int, round_: int) -> str:
    """Return the id of a question: derived from its identity, so asking again after a crash gives the same one."""
    return "apr_" + sha256([thread_id, node, name, visit, round_])[:20]


def amount_of(payload: Any, key: str | None) -> int | None:
    """Return what *payload* asks about in minor units; `None` where it does not say."""
    found = payload.get(key) if key is not None and isinstance(payload, dict) else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def approval_from(row: Row) -> Approval:
    """Read an approval from its row."""
    return Approval(
        id=row["id"],
        thread_id=row["thread_id"],
        node=row["node"],
        name=row["name"],
        visit=row["visit"],
        round=row["round"],
        payload=json.loads(row["payload"]),
        payload_hash=row["payload_hash"],
        allowed=tuple(json.loads(row["allowed"])),
        approvers=None if row["approvers"] is None else tuple(json.loads(row["approvers"])),
        edits=None if row["edits"] is None else json.loads(row["edits"]),
        on_expiry=row["on_expiry"],
        state=row["state"],
        decision=None if row["decision"] is None else json.loads(row["decision"]),
        decided_by=row["decided_by"],
        decided_at=None if row["decided_ms"] is None else from_ms(row["decided_ms"]),
        opened_at=from_ms(row["opened_ms"]),
        expires_at=None if row["expires_ms"] is None else from_ms(row["expires_ms"]),
        interrupt_id=row["interrupt_id"],
        withdrawn_by=row["withdrawn_by"],
        withdrawn_why=row["withdrawn_why"],
        withdrawn_at=None if row["withdrawn_ms"] is None else from_ms(row["withdrawn_ms"]),
        amount=row["amount"],
        amount_in=row["amount_in"],
        about=None if row["about"] is None else json.loads(row["about"]),
        replaces=row["replaces"],
        tiers=() if row["tiers"] is None else tuple(map(tier_from, json.loads(row["tiers"]))),
        tier=row["tier"],
        quorum=row["quorum"],
        four_eyes=bool(row["four_eyes"]),
        remind_at=None if row["remind_ms"] is None else from_ms(row["remind_ms"]),
        reminded_at=None if row["reminded_ms"] is None else from_ms(row["reminded_ms"]),
    )
