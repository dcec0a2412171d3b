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
from datetime import timedelta
from typing import Any

from checkpointing import amending, asking, deadlines, voting
from checkpointing.approval_rows import audit, existing, locked
from checkpointing.clock import to_ms
from checkpointing.covering import withdraw
from checkpointing.deciders import check_limit, check_may_decide
from checkpointing.decisions import Decision, check_decision, refusal
from checkpointing.digest import sha256
from checkpointing.errors import SlotAmbiguous
from checkpointing.notices import note
from checkpointing.principals import Person, Principal, person
from checkpointing.questions import Approval, Question, approval_from
from checkpointing.slots import Place
from checkpointing.store import Store, Tx
from checkpointing.voting import Vote
from checkpointing.waking import wake

PENDING = """
select * from approvals where state = 'pending' order by expires_ms nulls last, opened_ms, id limit :limit
"""
PENDING_OF_THREAD = PENDING.replace("where", "where thread_id = :thread_id and")
OF_THREAD = "select * from approvals where thread_id = :thread_id order by opened_ms, round, id"
LOCK_THREAD = "select id, state from approvals where thread_id = :thread_id order by id for update"
DECIDE = """
update approvals set state = 'decided', decision = :decision, decided_by = :decided_by, decided_ms = :now, remind_ms = null
where id = :id and state = 'pending' and (expires_ms is null or expires_ms > :now)
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
        return asking.ask(self.store, question, place=place)

    def decide(self, approval_id: str, decision: Decision, *, principal: Principal | None) -> Approval:
        """
        Record *decision* as the approval's only one, and wake its run; or as one vote of several, which leaves the approval `pending`.

        Args:
            approval_id: which question is answered.
            decision: `{"type": ...}` with `payload` for an edit, `reason` for a reject, `value` for a respond, and `payload_hash`,
                where given, the hash of what was shown.
            principal: who decides, as authentication says.

        Raises:
            UnknownApproval: there is none with this id.
            NotAllowed: no principal, not one of the approvers, the one who submitted the run, or an amount beyond what they may allow.
            DecisionInvalid: a kind that is not taken, or a malformed decision.
            AlreadyDecided: somebody was faster; it has their decision.
            ApprovalExpired: the time was over.
            PayloadChanged: another payload is shown by now; the message names its approval.
        """
        return self.decide_all([(approval_id, decision)], principal=principal)[0]

    def decide_all(self, decisions: Sequence[tuple[str, Decision]], *, principal: Principal | None) -> list[Approval]:
        """Record every one of *decisions*, or none if one of them is refused; errors as `decide`."""
        named = decisions[0][0] if decisions else ""
        who = person(
            principal, f"deciding approval {named!r} needs a principal: thread(id, principal=...) or --as NAME"
        )
        for approval_id, _ in decisions:
            self._climb(approval_id)
        with self.store.transaction("approval.decide") as tx:
            # All approvals, then all runs, then all audits: the order in which everybody locks.
            heard = [_decide(tx, *one, who) for one in sorted(decisions, key=lambda one: one[0])]
            decided = [approval for approval, _ in heard if approval.state == "decided"]
            for approval in decided:
                note(tx, approval, "approval.decide", by=who.name, type=(approval.decision or {})["type"])
            for thread_id in sorted({approval.thread_id for approval in decided}):
                wake(tx, thread_id)
            for approval, kept in heard:
                if approval.state == "decided":
                    audit(tx, approval, "approval.decide", actor=who.name, **decided_body(approval))
                else:
                    audit(tx, approval, "approval.vote", actor=who.name, **_voted_body(approval, kept))
            return [approval for approval, _ in heard]

    def _climb(self, approval_id: str) -> None:
        """Have the next tier asked before its people are told that they are not asked."""
        with self.store.reading() as tx:
            found = existing(tx, approval_id)
            overdue = found.next_tier and found.expires_at and to_ms(found.expires_at) <= tx.now_ms()
        if overdue:
            self.apply_due(found.thread_id)

    def withdraw(self, approval_id: str, *, principal: Principal | None, reason: str = "") -> Approval:
        """Take a question, or the decision on it, back while no effect has used it; see `covering.withdraw`."""
        return withdraw(self.store, approval_id, principal=principal, reason=reason)

    def extend(
        self, approval_id: str, by: timedelta, *, principal: Principal | None, reason: str = "", operator: bool = False
    ) -> Approval:
        """
        Give a question that still waits more time; its reminder moves with its end.

        Args:
            approval_id: which question.
            by: how much more.
            principal: who does it: somebody who may decide it, unless they are an *operator*.
            reason: why, for the audit.
            operator: whoever authenticated the principal says that they may change any question.

        Raises:
            UnknownApproval, NotAllowed: as `decide`.
            AlreadyDecided, ApprovalExpired, PayloadChanged: it does not wait any more.
            DecisionInvalid: it waits for ever, or *by* is no time.
        """
        return amending.extend(self.store, approval_id, by, principal=principal, reason=reason, operator=operator)

    def reassign(
        self,
        approval_id: str,
        to: Collection[str],
        *,
        principal: Principal | None,
        reason: str = "",
        operator: bool = False,
    ) -> Approval:
        """Have other people asked, names or `group:NAME`, in the time that is left, and what was voted forgotten; arguments and errors as `extend`."""
        return amending.reassign(self.store, approval_id, to, principal=principal, reason=reason, operator=operator)

    def apply_due(self, thread_id: str) -> list[Approval]:
        """Apply what is overdue on the thread's questions, and return those that have ended; see `deadlines`."""
        return deadlines.apply_due(self.store, thread_id)

    def votes(self, approval_id: str) -> list[Vote]:
        """Return what each of several has said of a question that takes more than one person."""
        with self.store.reading() as tx:
            return voting.votes_on(tx, approval_id)

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


def _decide(tx: Tx, approval_id: str, decision: Decision, who: Person) -> tuple[Approval, dict[str, Any]]:
    """Take one decision, or one vote; return the approval after it and what is kept of it."""
    # Its row is held: of two last votes one sees the other, and nobody decides who has just been taken off.
    found = locked(tx, approval_id)
    check_may_decide(tx, found, who)
    kept = check_decision(found, decision)
    check_limit(found, kept, who)
    if voting.needed(found, kept) > 1:
        alike = voting.voted(tx, found, kept, who.name) if _waits(tx, found) else []
        if 0 < len(alike) < voting.needed(found, kept):
            return found, kept
        kept = {**kept, "with": [name for name in alike if name != who.name]}
    row = tx.one(DECIDE, id=approval_id, decision=json.dumps(kept), decided_by=who.name)
    if row is None:
        current = existing(tx, approval_id)
        raise refusal(current, newest=asking.newest_round(tx, current))
    return approval_from(row), kept


def _waits(tx: Tx, approval: Approval) -> bool:
    return approval.state == "pending" and (approval.expires_at is None or to_ms(approval.expires_at) > tx.now_ms())


def _voted_body(approval: Approval, kept: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": kept["type"],
        "payload": approval.payload_hash,
        "decision": sha256(kept),
        "reason": kept.get("reason"),
    }
