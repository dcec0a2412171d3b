"""
Who may call what: one line for each operation of the API, and no operation without a line.

    submitter   hands claims in, and sees the runs they handed in and what these ask
    approver    sees approvals and the runs behind them, and decides
    operator    sees everything, and does everything but deciding and taking back what was decided
    auditor     sees everything, and changes nothing

Whom an approval takes is said by the approval; this table only opens the door to asking. An operation that is missing here is open to nobody.
"""

from __future__ import annotations

from collections.abc import Mapping

from service.who.visitor import ROLES, Role

ANYBODY: tuple[Role, ...] = ROLES
SEES_EVERYTHING: tuple[Role, ...] = ("operator", "auditor")
OPERATOR: tuple[Role, ...] = ("operator",)
APPROVER: tuple[Role, ...] = ("approver",)
SUBMITTER: tuple[Role, ...] = ("submitter",)
ASKERS: tuple[Role, ...] = ("submitter", "approver")

RIGHTS: Mapping[str, tuple[Role, ...]] = {
    "GET /me": ANYBODY,
    "POST /claims": SUBMITTER,
    "POST /threads/{thread_id}/runs": SUBMITTER,
    "GET /runs": ANYBODY,
    "GET /runs/{thread_id}": ANYBODY,
    "GET /runs/{thread_id}/timeline": ANYBODY,
    "GET /runs/{thread_id}/events": ANYBODY,
    "GET /runs/{thread_id}/audit": SEES_EVERYTHING,
    "POST /runs/{thread_id}/resume": OPERATOR,
    "GET /approvals": ANYBODY,
    "GET /approvals/{approval_id}": ANYBODY,
    "GET /approvals/{approval_id}/votes": ("approver", *SEES_EVERYTHING),
    "GET /approvals/{approval_id}/similar": ("approver", *SEES_EVERYTHING),
    "POST /approvals/{approval_id}/decision": APPROVER,
    "POST /approvals/{approval_id}/withdraw": ASKERS,
    "POST /approvals/{approval_id}/extend": ("approver", "operator"),
    "POST /approvals/{approval_id}/reassign": ("approver", "operator"),
    "GET /effects": SEES_EVERYTHING,
    "GET /effects/{key}": SEES_EVERYTHING,
    "POST /effects/{key}/resolve": OPERATOR,
    "GET /dead-letters": SEES_EVERYTHING,
    "GET /dead-letters/{thread_id}": SEES_EVERYTHING,
    "POST /dead-letters/{thread_id}/redrive": OPERATOR,
    "POST /dead-letters/{thread_id}/discard": OPERATOR,
    "GET /metrics": SEES_EVERYTHING,
}
"""Each operation below `/api/v1`, and `/metrics`, by its method and path."""
OPEN = frozenset({"GET /healthz", "GET /readyz", "GET /api/v1/openapi.json"})
"""What takes no authentication: it says nothing of any claim or person."""
