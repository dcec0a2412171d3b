"""
What a decision may look like, and what the one who came too late is told.

A decision is checked whole before any of it is recorded. What is kept of it is exactly what its kind needs, so a client's extra
fields (a principal, say) never reach the record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from checkpointing.digest import canonical
from checkpointing.errors import (
    AlreadyDecided,
    ApprovalExpired,
    ArgumentsNotJson,
    DecisionInvalid,
    PayloadChanged,
    Refused,
)
from checkpointing.fitting import SchemaUnusable, fault_in
from checkpointing.questions import Approval

Decision = Mapping[str, Any]
"""`{"type": "approve" | "edit" | "reject" | "respond", ...}`."""

JSON_KINDS = {bool: "boolean", int: "whole number", float: "number", str: "text", dict: "mapping", type(None): "null"}
KINDS = ("approve", "edit", "reject", "respond")
AT_EXPIRY = ("reject", "approve", "hand_over")
"""What a question may come to when nobody has answered: `hand_over` leaves it to the graph to hand the matter to people."""


def check_decision(approval: Approval, decision: Decision) -> dict[str, Any]:
    """
    Return what is to be recorded of *decision*.

    Raises:
        DecisionInvalid: it is not a mapping, its kind is not taken, or it lacks what its kind needs.
        PayloadChanged: it says it is for another payload than the approval's.
    """
    if not isinstance(decision, Mapping):
        raise DecisionInvalid(
            f"a decision on approval {approval.id!r} is a mapping with a 'type', not {type(decision).__name__}"
        )
    kind = decision.get("type")
    if kind not in approval.allowed:
        raise DecisionInvalid(
            f"approval {approval.id!r} takes {', '.join(approval.allowed)}; this decision's type is {kind!r}"
        )
    shown = decision.get("payload_hash")
    if shown is not None and shown != approval.payload_hash:
        raise PayloadChanged(
            f"the decision is for a payload with hash {str(shown)[:16]}, and approval {approval.id!r} asks about "
            f"{approval.payload_hash[:16]}; look at it again"
        )
    kept = {"type": kind, **_of_kind(approval, str(kind), decision)}
    try:
        canonical(kept, what="decision")
    except ArgumentsNotJson as error:
        raise DecisionInvalid(f"the decision on approval {approval.id!r} is not JSON: {error}") from error
    return kept


def refusal(approval: Approval, *, newest: str | None) -> Refused:
    """Return what to tell somebody whose decision was not taken: *approval* as it is now, *newest* the id of its latest round."""
    if approval.state == "superseded":
        return PayloadChanged(
            f"approval {approval.id!r} was superseded: the payload changed. Decide approval {newest!r} instead"
        )
    if approval.state == "withdrawn":
        return AlreadyDecided(
            f"approval {approval.id!r} was withdrawn by {approval.withdrawn_by!r}: {approval.withdrawn_why or 'no reason given'}",
            decision=approval.decision,
            decided_by=approval.decided_by,
        )
    if approval.state == "decided":
        kind = approval.decision["type"] if approval.decision else "?"
        return AlreadyDecided(
            f"approval {approval.id!r} was decided already: {kind} by {approval.decided_by!r} at "
            f"{approval.decided_at.isoformat() if approval.decided_at else '?'}",
            decision=approval.decision,
            decided_by=approval.decided_by,
        )
    until = approval.expires_at.isoformat() if approval.expires_at else "?"
    return ApprovalExpired(f"approval {approval.id!r} expired at {until}; its outcome is {approval.on_expiry!r}")


def _of_kind(approval: Approval, kind: str, decision: Decision) -> dict[str, Any]:
    match kind:
        case "edit":
            return {
                "payload": _edited(approval, decision.get("payload")),
                **_reason(approval, decision),
            }
        case "respond":
            if "value" not in decision:
                raise DecisionInvalid(f"a respond to approval {approval.id!r} needs a 'value'")
            return {"value": decision["value"]}
        case _:
            return _reason(approval, decision)


def _reason(approval: Approval, decision: Decision) -> dict[str, Any]:
    reason = decision.get("reason")
    if reason is None:
        return {}
    if not isinstance(reason, str):
        raise DecisionInvalid(f"the reason given for approval {approval.id!r} must be text")
    return {"reason": reason}


def _edited(approval: Approval, payload: Any) -> Any:
    """Return the edited payload: an edit changes values, never which facts were asked about, nor what kind of value they are."""
    if not isinstance(payload, dict) or not isinstance(approval.payload, dict):
        raise DecisionInvalid(f"an edit of approval {approval.id!r} needs a 'payload' mapping like the one shown")
    if payload.keys() != approval.payload.keys():
        raise DecisionInvalid(
            f"an edit of approval {approval.id!r} must have the payload's own keys: {', '.join(sorted(approval.payload))}"
        )
    for name, shown in approval.payload.items():
        if not _is_of_kind(payload[name], shown):
            raise DecisionInvalid(
                f"an edit of approval {approval.id!r} must keep {name!r} a {_kind(shown)}, not a {_kind(payload[name])}"
            )
    if approval.edits is not None:
        _check_fits(approval.id, approval.edits, payload)
    return payload


def _check_fits(approval_id: str, schema: dict[str, Any], payload: Any) -> None:
    try:
        fault = fault_in(schema, payload)
    except SchemaUnusable as error:
        raise DecisionInvalid(f"the schema of approval {approval_id!r} cannot be applied: {error}") from error
    if fault is not None:
        raise DecisionInvalid(f"an edit of approval {approval_id!r} does not fit at {fault.json_path}: {fault.message}")


def _is_of_kind(value: Any, shown: Any) -> bool:
    """Tell whether *value* may stand where *shown* stood: a whole number is a number too, and null may become anything."""
    return (
        shown is None or _kind(value) == _kind(shown) or (_kind(shown) == "number" and _kind(value) == "whole number")
    )


def _kind(value: Any) -> str:
    """Return JSON's word for the kind of *value*."""
    return JSON_KINDS.get(type(value), "list")
