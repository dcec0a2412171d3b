"""
Approvals: a question about an exact payload, and its one decision.

    open ──▶ pending ──decide──▶ decided ─┐
                │  └───expire──▶ expired ─┤── another payload ──▶ superseded (and the next round is open)
                ├─────────────────────────┘
                └── withdraw, from any of the three while no effect has used it ──▶ withdrawn

The row is the truth; a resume is only a bell. First writer wins: a decision is one write, conditional on `pending` and on the time
left, in the same transaction as its audit entry and the waking of the run. A crash before the commit leaves the question open; after
it, a decision that whoever advances the thread will read.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from checkpointing.clock import duration_ms
from checkpointing.covering import audit, check_principal, existing, withdraw
from checkpointing.decisions import Decision, check_decision, refusal
from checkpointing.digest import sha256
from checkpointing.errors import SlotAmbiguous
from checkpointing.leases import check_fence
from checkpointing.questions import Approval, Question, approval_from, approval_id
from checkpointing.slots import Place
from checkpointing.store import Store, Tx
from checkpointing.waking import wake

LATEST = """
select * from approvals where thread_id = :thread_id and node = :node and name = :name and visit = :visit
order by round desc limit 1
"""
OPEN = """
insert into approvals (id, thread_id, node, name, visit, round, interrupt_id, lease, fence, root, task, checkpoint, payload, payload_hash,
    allowed, approvers, edits, on_expiry, state, opened_ms, expires_ms)
values (:id, :thread_id, :node, :name, :visit, :round, :interrupt_id, :lease, :fence, :root, :task, :checkpoint, :payload, :payload_hash,
    :allowed, :approvers, :edits, :on_expiry, 'pending', :now, case when :ttl_ms >= 0 then :now + :ttl_ms end)
on conflict do nothing
returning *
"""
SUPERSEDE = "update approvals set state = 'superseded' where id = :id and state <> 'superseded' returning id"
PENDING = """
select * from approvals where state = 'pending' order by expires_ms nulls last, opened_ms, id limit :limit
"""
PENDING_OF_THREAD = PENDING.replace("where", "where thread_id = :thread_id and")
OF_THREAD = "select * from approvals where thread_id = :thread_id order by opened_ms, round, id"
LOCK_THREAD = "select id, state from approvals where thread_id = :thread_id order by id for update"
DECIDE = """
update approvals set state = 'decided', decision = :decision, decided_by = :decided_by, decided_ms = :now
where id = :id and state = 'pending' and (expires_ms is null or expires_ms > :now)
returning *
"""
EXPIRE = """
update approvals set state = 'expired', decision = '{"type": "' || on_expiry || '"}', decided_ms = :now
where thread_id = :thread_id and state = 'pending' and expires_ms <= :now
returning *
"""


class Approvals:
    """The `approvals` table and all its transitions."""

    def __init__(self, store: Store) -> None:
        """Use *store*."""
        self.store = store

    def open(self, question: Question, *, place: Place) -> Approval:
        """
        Make sure the question is asked, and return its latest round, decided or not.

        Asking the same again changes nothing. Another payload supersedes the latest round, a decided one too, and opens the next.

        Raises:
            LeaseLost: stop.
            SlotAmbiguous: another visit of the node asked what counts as this very question; its answer is not this one's.
            ArgumentsNotJson: the payload is not JSON.
        """
        payload_hash = sha256(question.payload, what=f"payload of approval {question.name!r}")
        with self.store.transaction("approval.open") as tx:
            if place.lease:
                check_fence(tx, place.lease)
            actor = place.lease.owner if place.lease else ""
            latest = _latest(tx, question, place)
            if latest and latest.payload_hash == payload_hash:
                return latest
            if latest and tx.one(SUPERSEDE, id=latest.id):
                audit(tx, latest, "approval.supersede", actor=actor)
            row = tx.one(OPEN, **_values(question, place, payload_hash, latest.round + 1 if latest else 0))
            if row is None:
                # Somebody opened this round between our two statements: a sibling, which is ambiguous, or on a raw graph another run.
                faster = _latest(tx, question, place)
                assert faster is not None
                return faster
            approval = approval_from(row)
            audit(tx, approval, "approval.open", actor=actor, payload=payload_hash, terms=approval.terms())
            return approval

    def decide(self, approval_id: str, decision: Decision, *, principal: str | None) -> Approval:
        """
        Record *decision* as the approval's only one, and wake its run.

        Args:
            approval_id: which question is answered.
            decision: `{"type": ...}` with `payload` for an edit, `reason` for a reject, `value` for a respond, and `payload_hash`,
                where given, the hash of what was shown.
            principal: who decides, as authentication says.

        Raises:
            UnknownApproval: there is none with this id.
            NotAllowed: no principal, not one of the approvers, or the one who submitted the run.
            DecisionInvalid: a kind that is not taken, or a malformed decision.
            AlreadyDecided: somebody was faster; it has their decision.
            ApprovalExpired: the time was over.
            PayloadChanged: another payload is shown by now; the message names its approval.
        """
        return self.decide_all([(approval_id, decision)], principal=principal)[0]

    def decide_all(self, decisions: Sequence[tuple[str, Decision]], *, principal: str | None) -> list[Approval]:
        """Record every one of *decisions*, or none if one of them is refused; errors as `decide`."""
        with self.store.transaction("approval.decide") as tx:
            # All approvals, then all runs, then all audits: the order in which everybody locks.
            decided = [self._decide(tx, *one, principal) for one in sorted(decisions, key=lambda one: one[0])]
            for thread_id in sorted({approval.thread_id for approval in decided}):
                wake(tx, thread_id)
            for approval in decided:
                audit(tx, approval, "approval.decide", actor=str(principal), **decided_body(approval))
            return decided

    @staticmethod
    def _decide(tx: Tx, approval_id: str, decision: Decision, principal: str | None) -> Approval:
        found = existing(tx, approval_id)
        check_principal(tx, found, principal)
        kept = check_decision(found, decision)
        row = tx.one(DECIDE, id=approval_id, decision=json.dumps(kept), decided_by=principal)
        if row is None:
            current = existing(tx, approval_id)
            newest = tx.one(
                LATEST, thread_id=current.thread_id, node=current.node, name=current.name, visit=current.visit
            )
            raise refusal(current, newest=str(newest["id"]) if newest else None)
        return approval_from(row)

    def withdraw(self, approval_id: str, *, principal: str | None, reason: str = "") -> Approval:
        """Take a question, or the decision on it, back while no effect has used it; see `covering.withdraw`."""
        return withdraw(self.store, approval_id, principal=principal, reason=reason)

    def expire_due(self, thread_id: str) -> list[Approval]:
        """Give every overdue question of the thread its outcome at expiry, wake the run, and return them."""
        with self.store.reading() as tx:
            waiting = tx.all(PENDING_OF_THREAD, thread_id=thread_id, limit=1)
            now = tx.now_ms() if waiting else 0
        if not waiting or waiting[0]["expires_ms"] is None or int(waiting[0]["expires_ms"]) > now:
            return []
        with self.store.transaction("approval.expire") as tx:
            tx.all(LOCK_THREAD, thread_id=thread_id)
            expired = [approval_from(row) for row in tx.all(EXPIRE, thread_id=thread_id)]
            if expired:
                wake(tx, thread_id)
            for one in expired:
                audit(tx, one, "approval.expire", actor="", type=one.on_expiry)
            return expired

    def get(self, approval_id: str) -> Approval:
        """
        Return one approval.

        Raises:
            UnknownApproval: there is none with this id.
        """
        with self.store.reading() as tx:
            return existing(tx, approval_id)

    def pending(self, *, thread_id: str | None = None, limit: int = 1000) -> list[Approval]:
        """Return what waits for a decision, what expires first in front."""
        with self.store.reading() as tx:
            return [
                approval_from(row)
                for row in tx.all(PENDING_OF_THREAD if thread_id else PENDING, thread_id=thread_id, limit=limit)
            ]

    def of_thread(self, thread_id: str) -> list[Approval]:
        """Return every question the thread ever asked, oldest first."""
        with self.store.reading() as tx:
            return [approval_from(row) for row in tx.all(OF_THREAD, thread_id=thread_id)]


def all_pending(tx: Tx, thread_id: str, ids: Collection[str]) -> bool:
    """
    Tell, holding their rows locked until *tx* ends, whether none of these approvals of the thread has an outcome.

    Raises:
        SlotAmbiguous: one was superseded although the run has just asked it: two tasks of the same superstep ask under one name.
    """
    found = {row["id"]: row["state"] for row in tx.all(LOCK_THREAD, thread_id=thread_id)}
    if twice := [one for one in ids if found[one] == "superseded"]:
        raise SlotAmbiguous(
            f"two tasks of thread {thread_id!r} ask under one name, and each supersedes the other's question {twice[0]!r}; "
            "ask in a node that is not sent to"
        )
    return all(found[one] == "pending" for one in ids)


def decided_body(approval: Approval) -> dict[str, Any]:
    """Return what the audit keeps of a decision: its kind, and the hashes of what was shown and of what it made of it."""
    assert approval.decision is not None
    return {
        "type": approval.decision["type"],
        "payload": approval.payload_hash,
        "approved": approval.approved()[1],
        "decision": sha256(approval.decision),
        "reason": approval.decision.get("reason"),
    }


def _latest(tx: Tx, question: Question, place: Place) -> Approval | None:
    """Return the question's latest round, if it is this very question's."""
    row = tx.one(LATEST, thread_id=question.thread_id, node=question.node, name=question.name, visit=question.visit)
    if row and not place.answers(tx, row):
        raise SlotAmbiguous(
            f"two visits of node {question.node!r} of thread {question.thread_id!r} count as visit {question.visit}, and approval "
            f"{row['id']!r} was asked by the first. Add the graph as a node whose state has `approvals`"
        )
    return approval_from(row) if row else None


def _values(question: Question, place: Place, payload_hash: str, round_: int) -> dict[str, Any]:
    return {
        "id": approval_id(question.thread_id, question.node, question.name, question.visit, round_),
        "thread_id": question.thread_id,
        "node": question.node,
        "name": question.name,
        "visit": question.visit,
        "round": round_,
        "interrupt_id": question.interrupt_id,
        "payload": json.dumps(question.payload),
        "payload_hash": payload_hash,
        "allowed": json.dumps(question.allowed),
        "approvers": None if question.approvers is None else json.dumps(question.approvers),
        "edits": None if question.edits is None else json.dumps(question.edits),
        "on_expiry": question.on_expiry,
        "ttl_ms": -1 if question.ttl is None else duration_ms(question.ttl),
        **place.columns(),
    }
