"""An approval as a value, for what only reads one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from checkpointing import Approval
from checkpointing.digest import sha256


def approval_of(payload: Any, **more: Any) -> Approval:
    """Return a pending approval of this payload."""
    given: dict[str, Any] = {
        "id": "apr_00000000000000000000",
        "thread_id": "claim-0042",
        "node": "approve",
        "name": "payout",
        "visit": 0,
        "round": 0,
        "payload": payload,
        "payload_hash": sha256(payload),
        "allowed": ("approve", "edit", "reject"),
        "approvers": None,
        "edits": None,
        "on_expiry": "reject",
        "state": "pending",
        "decision": None,
        "decided_by": None,
        "decided_at": None,
        "opened_at": datetime(2026, 3, 1, 12, tzinfo=UTC),
        "expires_at": None,
        "interrupt_id": None,
    }
    return Approval(**{**given, **more})
