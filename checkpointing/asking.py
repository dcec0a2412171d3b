"""
Asking: a question gets its row, once, with the terms it is asked under.

    same payload as the latest round    that round, whatever became of it
    another payload                     the latest round is superseded, and the next one is open
    asked for the first time            the row is new; where a visit before it asked under the same name, it says which approval it replaces

A crash before the commit leaves nothing asked, and after it the row that the next run of the node finds.
"""

from __future__ import annotations

import json
from typing import Any

from checkpointing.approval_rows import audit
from checkpointing.clock import duration_ms
from checkpointing.digest import sha256
from checkpointing.errors import SlotAmbiguous
from checkpointing.leases import check_fence
from checkpointing.notices import note
from checkpointing.questions import Approval, Question, amount_of, approval_from, approval_id
from checkpointing.slots import Place
from checkpointing.store import Store, Tx
from checkpointing.tiers import Tier, first_tier

LATEST = """
select * from approvals where thread_id = :thread_id and node = :node and name = :name and visit = :visit
order by round desc limit 1
"""
BEFORE = """
select id from approvals where thread_id = :thread_id and node = :node and name = :name and visit < :visit
order by visit desc, round desc limit 1
"""
OPEN = """
insert into approvals (id, thread_id, node, name, visit, round, interrupt_id, lease, fence, root, task, checkpoint, payload, payload_hash,
    allowed, approvers, edits, on_expiry, state, opened_ms, expires_ms, amount, amount_in, about, replaces, tiers, tier, quorum, four_eyes,
    remind_ms)
values (:id, :thread_id, :node, :name, :visit, :round, :interrupt_id, :lease, :fence, :root, :task, :checkpoint, :payload, :payload_hash,
    :allowed, :approvers, :edits, :on_expiry, 'pending', :now, case when :ttl_ms >= 0 then :now + :ttl_ms end, :amount, :amount_in, :about,
    :replaces, :tiers, :tier, :quorum, :four_eyes, case when :remind_ms >= 0 then :now + :ttl_ms - :remind_ms end)
on conflict do nothing
returning *
"""
SUPERSEDE = "update approvals set state = 'superseded' where id = :id and state <> 'superseded' returning id"


def ask(store: Store, question: Question, *, place: Place) -> Approval:
    """Make sure the question is asked, and return its latest round; errors as `Approvals.open`."""
    payload_hash = sha256(question.payload, what=f"payload of approval {question.name!r}")
    about_hash = sha256(question.about, what=f"about= of approval {question.name!r}")
    with store.transaction("approval.open") as tx:
        if place.lease:
            check_fence(tx, place.lease)
        actor = place.lease.owner if place.lease else ""
        latest = _latest(tx, question, place)
        if latest and latest.payload_hash == payload_hash:
            return latest
        if latest and tx.one(SUPERSEDE, id=latest.id):
            audit(tx, latest, "approval.supersede", actor=actor)
        row = tx.one(
            OPEN,
            **_values(
                question, place, payload_hash, latest.round + 1 if latest else 0, _replaced(tx, question, latest)
            ),
        )
        if row is None:
            # Somebody opened this round between our two statements: a sibling, which is ambiguous, or on a raw graph another run.
            faster = _latest(tx, question, place)
            assert faster is not None
            return faster
        approval = approval_from(row)
        note(tx, approval, "approval.open", replaces=approval.replaces)
        shown = {"about": about_hash} if question.about is not None else {}
        audit(tx, approval, "approval.open", actor=actor, payload=payload_hash, terms=approval.terms(), **shown)
        return approval


def newest_round(tx: Tx, approval: Approval) -> str | None:
    """Return the id of the latest round of the approval's question."""
    row = tx.one(LATEST, thread_id=approval.thread_id, node=approval.node, name=approval.name, visit=approval.visit)
    return str(row["id"]) if row else None


def _latest(tx: Tx, question: Question, place: Place) -> Approval | None:
    """Return the question's latest round, if it is this very question's."""
    row = tx.one(LATEST, thread_id=question.thread_id, node=question.node, name=question.name, visit=question.visit)
    if row and not place.answers(tx, row):
        raise SlotAmbiguous(
            f"two visits of node {question.node!r} of thread {question.thread_id!r} count as visit {question.visit}, and approval "
            f"{row['id']!r} was asked by the first. Add the graph as a node whose state has `approvals`"
        )
    return approval_from(row) if row else None


def _replaced(tx: Tx, question: Question, latest: Approval | None) -> str | None:
    """Return which approval the new one takes the place of."""
    if latest or not question.visit:
        return latest.id if latest else None
    row = tx.one(BEFORE, thread_id=question.thread_id, node=question.node, name=question.name, visit=question.visit)
    return str(row["id"]) if row else None


def _values(question: Question, place: Place, payload_hash: str, round_: int, replaces: str | None) -> dict[str, Any]:
    amount = amount_of(question.payload, question.amount_in)
    tier = first_tier(question.tiers, amount) if question.tiers else 0
    asked = (
        question.tiers[tier]
        if question.tiers
        else Tier("", question.approvers, question.ttl, remind=question.remind, quorum=question.quorum)
    )
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
        "edits": None if question.edits is None else json.dumps(question.edits),
        "on_expiry": question.on_expiry,
        "amount": amount,
        "amount_in": question.amount_in,
        "about": None if question.about is None else json.dumps(question.about),
        "replaces": replaces,
        "tiers": json.dumps([one.as_json() for one in question.tiers]) if question.tiers else None,
        "tier": tier,
        "four_eyes": int(question.four_eyes),
        **columns_of(asked),
        **place.columns(),
    }


def columns_of(tier: Tier) -> dict[str, Any]:
    """Return what a question that stands with *tier* has in its row; times in milliseconds, -1 for none."""
    return {
        "approvers": None if tier.approvers is None else json.dumps(tier.approvers),
        "ttl_ms": -1 if tier.ttl is None else duration_ms(tier.ttl),
        "remind_ms": -1 if tier.remind is None else duration_ms(tier.remind),
        "quorum": tier.quorum,
    }
