"""
Who may decide an approval, and how much they may allow.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from checkpointing.errors import NotAllowed
from checkpointing.principals import Person
from checkpointing.questions import Approval, amount_of
from checkpointing.store import Tx
from checkpointing.waking import submitters

REASSIGNED = """
select body from audit where thread_id = :thread_id and event = 'approval.reassign' and subject = :id and actor = :principal
"""


def check_may_decide(tx: Tx, approval: Approval, who: Person) -> None:
    """
    Make sure that this person may decide the approval, whatever they decide.

    Raises:
        NotAllowed: they are not one of the approvers, they submitted the run, or as an operator they chose who decides.
    """
    if approval.approvers is not None and not who.is_among(approval.approvers):
        raise NotAllowed(
            f"{who.name!r} may not decide approval {approval.id!r}; its approvers are {', '.join(approval.approvers)}"
        )
    if who.name in submitters(tx, approval.thread_id):
        raise NotAllowed(f"{who.name!r} submitted thread {approval.thread_id!r} and may not decide its approvals")
    chose = tx.all(REASSIGNED, thread_id=approval.thread_id, id=approval.id, principal=who.name)
    if any(json.loads(row["body"]).get("operator") for row in chose):
        raise NotAllowed(
            f"{who.name!r} chose who decides approval {approval.id!r}, as an operator, and is none of them"
        )


def check_limit(approval: Approval, decision: Mapping[str, Any], who: Person) -> None:
    """
    Make sure that *decision* allows no more than this person, and the tier that is asked, may allow.

    Raises:
        NotAllowed: the amount is above the limit, or there is none to hold it against.
    """
    if decision["type"] == "reject":
        return
    payload = decision["payload"] if decision["type"] == "edit" else approval.payload
    amount = amount_of(payload, approval.amount_in)
    tier = approval.at_tier
    if tier and tier.up_to is not None and (amount is None or not 0 <= amount <= tier.up_to):
        raise NotAllowed(
            f"tier {tier.name!r} may approve up to {tier.up_to}, and this is {amount}; approval {approval.id!r}"
        )
    if who.limit is not None and amount is None:
        raise NotAllowed(
            f"{who.name!r} may approve up to {who.limit}, and approval {approval.id!r} has no amount to hold that against"
        )
    if who.limit is not None and amount is not None and not 0 <= amount <= who.limit:
        raise NotAllowed(
            f"{who.name!r} may approve up to {who.limit}, and approval {approval.id!r} would allow {amount}"
        )
