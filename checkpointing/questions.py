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
        edits: A JSON Schema that an edited payload must fit, over the rule that it keeps the keys and kinds of the one shown.
        ttl: How long the question stands; `None`: for ever.
        on_expiry: The kind of decision the expiry counts as.
        interrupt_id: LangGraph's id, for an interrupt that is not an approval node's.
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
        return sha256([self.allowed, self.approvers, self.edits, self.on_expiry, until])

    def record(self) -> dict[str, Any]:
        """
        Return the decided approval as the state holds it, in JSON.

        Keys: `id`, `name`, `visit`, `type` (the decision's, or `withdrawn`), `payload` and `payload_hash` (as approved, or as the approver
        made them), `by`, `at`, `reason`, `expired`.
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
    )
