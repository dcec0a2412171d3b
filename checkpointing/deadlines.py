"""
Deadlines: what becomes of a question that nobody answers in time.

    pending ──its reminder is due──▶ pending, reminded once
            ──its time is over─────▶ pending with the next tier, its time anew      (where there is a next tier)
                                ───▶ expired, with the outcome at expiry            (on the last one)

Whoever advances a thread applies what is overdue on it, one transition a question; the sweep advances the threads that nobody touches. A decision is
conditional on the time left, so of a decision and an end that come at once one wins. A crash before the commit leaves what was overdue overdue.
"""

from __future__ import annotations

from checkpointing.approval_rows import audit
from checkpointing.asking import columns_of
from checkpointing.notices import note
from checkpointing.questions import Approval, approval_from
from checkpointing.store import Row, Store, Tx
from checkpointing.waking import wake

OVERDUE = """
select id from approvals where thread_id = :thread_id and state = 'pending' and coalesce(remind_ms, expires_ms) <= :now limit 1
"""
LOCK_THREAD = "select * from approvals where thread_id = :thread_id order by id for update"
REMIND = """
update approvals set remind_ms = null, reminded_ms = :now
where id = :id and state = 'pending' and remind_ms <= :now and expires_ms > :now
returning *
"""
ESCALATE = """
update approvals set tier = tier + 1, approvers = :approvers, quorum = :quorum, reminded_ms = null,
    expires_ms = case when :ttl_ms >= 0 then :now + :ttl_ms end, remind_ms = case when :remind_ms >= 0 then :now + :ttl_ms - :remind_ms end
where id = :id and state = 'pending' and tier = :tier and expires_ms <= :now
returning *
"""
EXPIRE = """
update approvals set state = 'expired', decision = '{"type": "' || on_expiry || '"}', decided_ms = :now, remind_ms = null
where id = :id and state = 'pending' and expires_ms <= :now
returning *
"""


def apply_due(store: Store, thread_id: str) -> list[Approval]:
    """Remind of, escalate or end every overdue question of the thread, wake the run where one has ended, and return those that have."""
    with store.reading() as tx:
        if tx.one(OVERDUE, thread_id=thread_id) is None:
            return []
    with store.transaction("approval.expire") as tx:
        changed = [_applied(tx, row) for row in tx.all(LOCK_THREAD, thread_id=thread_id)]
        told = [one for one in changed if one is not None]
        ended = [approval for approval, event in told if event == "approval.expire"]
        for approval, event in told:
            note(tx, approval, event, **({"type": approval.on_expiry} if event == "approval.expire" else {}))
        if ended:
            wake(tx, thread_id)
        for approval, event in told:
            audit(tx, approval, event, actor="", **_body(approval, event))
        return ended


def _applied(tx: Tx, row: Row) -> tuple[Approval, str] | None:
    """Take the one transition that is due, and return the approval after it with the transition's name; `None` if nothing is due."""
    approval = approval_from(row)
    if reminded := tx.one(REMIND, id=approval.id):
        return approval_from(reminded), "approval.remind"
    if (tier := approval.next_tier) and (
        climbed := tx.one(ESCALATE, id=approval.id, tier=approval.tier, **columns_of(tier))
    ):
        return approval_from(climbed), "approval.escalate"
    if not approval.next_tier and (expired := tx.one(EXPIRE, id=approval.id)):
        return approval_from(expired), "approval.expire"
    return None


def _body(approval: Approval, event: str) -> dict[str, str | None]:
    match event:
        case "approval.expire":
            return {"type": approval.on_expiry}
        case "approval.escalate":
            return {"tier": approval.at_tier.name if approval.at_tier else None, "terms": approval.terms()}
        case _:
            return {}
