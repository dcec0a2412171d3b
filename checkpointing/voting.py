"""
Voting: where a question takes several people, each says what they would have done, and the decision is what enough of them say alike.

    one person is enough          their word is the decision, and nothing is kept here
    a reject                      one is enough, whatever the quorum: who pays when one of them says no?
    an approve                    as many as the tier's quorum, all of the payload as shown
    an edit, under four eyes      two at least, of exactly the same payload: nobody alone makes up what is paid

A vote may be changed until the question is decided; the last word counts. Votes for a tier that was escalated from do not count on the next one,
and where other people are asked, those of the ones before are no votes any more; the audit has them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from checkpointing.clock import from_ms
from checkpointing.digest import sha256
from checkpointing.questions import Approval
from checkpointing.store import Row, Tx

VOTE = """
insert into approval_votes (approval_id, principal, tier, decision, approved, voted_ms)
values (:approval_id, :principal, :tier, :decision, :approved, :now)
on conflict (approval_id, principal) do update set
    tier = excluded.tier, decision = excluded.decision, approved = excluded.approved, voted_ms = excluded.voted_ms
"""
ALIKE = """
select principal from approval_votes where approval_id = :approval_id and tier = :tier and approved = :approved order by voted_ms, principal
"""
FORGET = "delete from approval_votes where approval_id = :approval_id"
VOTES = "select * from approval_votes where approval_id = :approval_id order by voted_ms, principal"


@dataclass(frozen=True, slots=True)
class Vote:
    """
    What one of several has said.

    Attributes:
        tier: The tier they were asked with.
        decision: As it would be recorded.
    """

    principal: str
    tier: int
    decision: dict[str, Any]
    at: datetime


def needed(approval: Approval, decision: dict[str, Any]) -> int:
    """Return how many people have to say *decision* before it is one."""
    match decision["type"]:
        case "approve":
            return approval.quorum
        case "edit":
            return max(approval.quorum, 2 if approval.four_eyes else 1)
        case _:
            return 1


def voted(tx: Tx, approval: Approval, decision: dict[str, Any], principal: str) -> list[str]:
    """Record the vote as part of *tx*, which holds the approval's row, and return who says the same, first to last."""
    alike = _wanted(approval, decision)
    values = {"approval_id": approval.id, "tier": approval.tier, "approved": alike}
    tx.all(VOTE, principal=principal, decision=json.dumps(decision), **values)
    return [str(row["principal"]) for row in tx.all(ALIKE, **values)]


def forget_votes(tx: Tx, approval_id: str) -> None:
    """Begin the vote anew as part of *tx*: whoever is asked now has not said anything."""
    tx.all(FORGET, approval_id=approval_id)


def votes_on(tx: Tx, approval_id: str) -> list[Vote]:
    """Return what was said, first to last."""
    return [_vote(row) for row in tx.all(VOTES, approval_id=approval_id)]


def _wanted(approval: Approval, decision: dict[str, Any]) -> str:
    """Return the hash of what would be done: an edit to what was shown anyway counts as an approve."""
    return sha256(decision["payload"]) if decision["type"] == "edit" else approval.payload_hash


def _vote(row: Row) -> Vote:
    return Vote(row["principal"], row["tier"], json.loads(row["decision"]), from_ms(row["voted_ms"]))
