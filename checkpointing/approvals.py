"""
Approvals: a question about an exact payload, and its one decision.

    open ──▶ pending ──decide──▶ decided ─┐
                │  └───expire──▶ expired ─┤── another payload ──▶ superseded (and the next round is open)
                └─────────────────────────┘

The row is the truth; a resume is only a bell. First writer wins: a decision is one write, conditional on `pending` and on the time
left, in the same transaction as its audit entry and the waking of the run. A crash before the commit leaves the question open; after
it, a decision that whoever advances the thread will read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from checkpointing.audit import Entry, append
from checkpointing.clock import duration_ms, from_ms
from checkpointing.decisions import Decision, check_decision, refusal
from checkpointing.digest import JSON, canonical, sha256
from checkpointing.errors import EffectNotApproved, NotAllowed, UnknownApproval
from checkpointing.leases import Lease, check_fence
from checkpointing.runs import submitter, wake
from checkpointing.store import Row, Store, Tx

ApprovalState = Literal["pending", "decided", "superseded", "expired"]

LATEST = """
select * from approvals where thread_id = :thread_id and node = :node and name = :name and visit = :visit
order by round desc limit 1
"""
OPEN = """
insert into approvals (id, thread_id, node, name, visit, round, interrupt_id, payload, payload_hash, allowed, approvers, on_expiry,
    state, opened_ms, expires_ms)
values (:id, :thread_id, :node, :name, :visit, :round, :interrupt_id, :payload, :payload_hash, :allowed, :approvers, :on_expiry,
    'pending', :now, case when :ttl_ms >= 0 then :now + :ttl_ms end)
on conflict do nothing
returning *
"""
SUPERSEDE = "update approvals set state = 'superseded' where id = :id and state <> 'superseded' returning id"
GET = "select * from approvals where id = :id"
PENDING = """
select * from approvals where state = 'pending' and (:thread_id = '' or thread_id = :thread_id)
order by coalesce(expires_ms, 9007199254740991), opened_ms, id limit :limit
"""
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
NOW = "select :now as now"


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
    on_expiry: str
    state: ApprovalState
    decision: dict[str, Any] | None
    decided_by: str | None
    decided_at: datetime | None
    opened_at: datetime
    expires_at: datetime | None
    interrupt_id: str | None

    def request(self) -> dict[str, Any]:
        """Return what the interrupt shows: the question, in JSON."""
        return {
            "id": self.id,
            "thread_id": self.thread_id,
            "name": self.name,
            "payload": self.payload,
            "payload_hash": self.payload_hash,
            "allowed": list(self.allowed),
            "expires_at": self.expires_at.isoformat() if self.expires_at else None,
        }

    def record(self) -> dict[str, Any]:
        """
        Return the decided approval as the state holds it, in JSON.

        Keys: `id`, `name`, `visit`, `type`, `payload` and `payload_hash` (as approved, or as the approver made them), `by`, `at`,
        `reason`, `expired`.
        """
        decision = self.decision or {}
        payload, payload_hash = self.approved()
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

    def approved(self) -> tuple[Any, str]:
        """Return the payload an effect may act on, and its hash: the one shown, or what an edit made of it."""
        if self.decision and self.decision["type"] == "edit":
            edited = self.decision["payload"]
            return edited, sha256(edited)
        return self.payload, self.payload_hash


class Approvals:
    """The `approvals` table and all its transitions."""

    def __init__(self, store: Store) -> None:
        """Use *store*."""
        self.store = store

    def open(self, question: Question, *, lease: Lease | None) -> Approval:
        """
        Make sure the question is asked, and return its latest round, decided or not.

        Asking the same again changes nothing. Another payload supersedes the latest round, a decided one too, and opens the next.

        Raises:
            LeaseLost: stop.
            ArgumentsNotJson: the payload is not JSON.
        """
        payload_hash = sha256(question.payload, what=f"payload of approval {question.name!r}")
        with self.store.transaction("approval.open") as tx:
            if lease:
                check_fence(tx, lease)
            latest = self._latest(tx, question)
            if latest and latest.payload_hash == payload_hash:
                return latest
            if latest and tx.one(SUPERSEDE, id=latest.id):
                _audit(tx, latest, "approval.supersede", actor=lease.owner if lease else "")
            row = tx.one(OPEN, **_values(question, payload_hash, latest.round + 1 if latest else 0))
            if row is None:  # a raw graph has no lease, and another run of this node was faster
                faster = self._latest(tx, question)
                assert faster is not None
                return faster
            opened = _approval(row)
            _audit(
                tx,
                opened,
                "approval.open",
                actor=lease.owner if lease else "",
                payload=payload_hash,
            )
            return opened

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
        with self.store.transaction("approval.decide") as tx:
            found = _existing(tx, approval_id)
            _check_principal(tx, found, principal)
            kept = check_decision(found, decision)
            row = tx.one(DECIDE, id=approval_id, decision=json.dumps(kept), decided_by=principal)
            if row is None:
                current = _existing(tx, approval_id)
                raise refusal(current, newest=self._newest(tx, current))
            decided = _approval(row)
            wake(tx, decided.thread_id)
            _audit(tx, decided, "approval.decide", actor=str(principal), **_decided_body(decided))
            return decided

    def expire_due(self, thread_id: str) -> list[Approval]:
        """Give every overdue question of the thread its outcome at expiry, wake the run, and return them."""
        with self.store.reading() as tx:
            waiting = tx.all(PENDING, thread_id=thread_id, limit=1)
            now = tx.now_ms() if waiting else 0
        if not waiting or waiting[0]["expires_ms"] is None or int(waiting[0]["expires_ms"]) > now:
            return []
        with self.store.transaction("approval.expire") as tx:
            expired = [_approval(row) for row in tx.all(EXPIRE, thread_id=thread_id)]
            if expired:
                wake(tx, thread_id)
            for one in expired:
                _audit(tx, one, "approval.expire", actor="", type=one.on_expiry)
            return expired

    def get(self, approval_id: str) -> Approval:
        """
        Return one approval.

        Raises:
            UnknownApproval: there is none with this id.
        """
        with self.store.reading() as tx:
            return _existing(tx, approval_id)

    def pending(self, *, thread_id: str | None = None, limit: int = 1000) -> list[Approval]:
        """Return what waits for a decision, what expires first in front."""
        with self.store.reading() as tx:
            return [_approval(row) for row in tx.all(PENDING, thread_id=thread_id or "", limit=limit)]

    def of_thread(self, thread_id: str) -> list[Approval]:
        """Return every question the thread ever asked, oldest first."""
        with self.store.reading() as tx:
            return [_approval(row) for row in tx.all(OF_THREAD, thread_id=thread_id)]

    def contradictions(self, thread_id: str, entries: Sequence[Entry]) -> Iterator[str]:
        """Yield one line for every approval of the thread whose row says something else than the thread's audit."""
        rows = {row.id: row for row in self.of_thread(thread_id)}
        for entry in entries:
            row = rows.get(entry.subject)
            if not entry.event.startswith("approval."):
                continue
            if row is None:
                yield f"approval {entry.subject!r} is in the audit and not among the approvals"
            elif entry.event == "approval.open" and entry.body["payload"] != sha256(row.payload):
                yield f"approval {row.id!r} asks about another payload than was recorded"
            elif entry.event == "approval.decide" and _as_recorded(row) != (
                entry.actor,
                entry.body,
            ):
                yield f"approval {row.id!r} has another decision than was recorded"

    @staticmethod
    def _latest(tx: Tx, question: Question) -> Approval | None:
        row = tx.one(
            LATEST,
            thread_id=question.thread_id,
            node=question.node,
            name=question.name,
            visit=question.visit,
        )
        return _approval(row) if row else None

    @staticmethod
    def _newest(tx: Tx, one: Approval) -> str | None:
        row = tx.one(LATEST, thread_id=one.thread_id, node=one.node, name=one.name, visit=one.visit)
        return str(row["id"]) if row else None


def all_pending(tx: Tx, thread_id: str, ids: Collection[str]) -> bool:
    """Tell, holding their rows locked until *tx* ends, whether none of these approvals of the thread has an outcome."""
    rows = tx.all(LOCK_THREAD, thread_id=thread_id)
    return all(row["state"] == "pending" for row in rows if row["id"] in ids)


def check_covers(tx: Tx, approval_id: str, *, thread_id: str, arguments_hash: str) -> None:
    """
    Make sure that this approval allows an effect with these arguments.

    Raises:
        EffectNotApproved: it is another thread's, was not approved, was superseded, or was for something else.
    """
    row = tx.one(GET, id=approval_id)
    found = _approval(row) if row else None
    if found is None or found.thread_id != thread_id:
        raise EffectNotApproved(f"thread {thread_id!r} has no approval {approval_id!r}")
    kind = found.decision["type"] if found.decision else None
    if found.state not in ("decided", "expired") or kind not in ("approve", "edit"):
        raise EffectNotApproved(
            f"approval {approval_id!r} is {found.state}{f' ({kind})' if kind else ''}; nothing may be done under it"
        )
    if found.approved()[1] != arguments_hash:
        raise EffectNotApproved(
            f"approval {approval_id!r} was given for a payload with hash {found.approved()[1][:16]}, "
            f"and the effect's arguments have {arguments_hash[:16]}; they must be the same JSON"
        )


def approval_id(thread_id: str, node: str, name: str, visit: int, round_: int) -> str:
    """Return the id of a question: derived from its identity, so asking again after a crash gives the same one."""
    identity: Sequence[JSON] = [thread_id, node, name, visit, round_]
    return "apr_" + hashlib.sha256(canonical(list(identity))).hexdigest()[:20]


def _values(question: Question, payload_hash: str, round_: int) -> dict[str, Any]:
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
        "on_expiry": question.on_expiry,
        "ttl_ms": -1 if question.ttl is None else duration_ms(question.ttl),
    }


def _check_principal(tx: Tx, approval: Approval, principal: str | None) -> None:
    if not principal:
        raise NotAllowed(f"deciding approval {approval.id!r} needs a principal: thread(id, principal=...) or --as NAME")
    if approval.approvers is not None and principal not in approval.approvers:
        raise NotAllowed(
            f"{principal!r} may not decide approval {approval.id!r}; its approvers are {', '.join(approval.approvers)}"
        )
    if principal == submitter(tx, approval.thread_id):
        raise NotAllowed(f"{principal!r} submitted thread {approval.thread_id!r} and may not decide its approvals")


def _existing(tx: Tx, approval_id: str) -> Approval:
    row = tx.one(GET, id=approval_id)
    if row is None:
        raise UnknownApproval(f"there is no approval {approval_id!r}; see counterfoil approvals")
    return _approval(row)


def _decided_body(approval: Approval) -> dict[str, Any]:
    """Return what the audit keeps of a decision: its kind, and the hashes of what was shown and of what it made of it."""
    assert approval.decision is not None
    return {
        "type": approval.decision["type"],
        "payload": approval.payload_hash,
        "approved": approval.approved()[1],
        "decision": sha256(approval.decision),
        "reason": approval.decision.get("reason"),
    }


def _as_recorded(approval: Approval) -> tuple[str | None, dict[str, Any]] | None:
    """Return the actor and body that the audit has of the approval's decision if its row is true."""
    if approval.decision is None:
        return None
    return approval.decided_by, {"name": approval.name, **_decided_body(approval)}


def _audit(tx: Tx, approval: Approval, event: str, *, actor: str, **body: Any) -> None:
    append(tx, approval.thread_id, event, actor=actor, subject=approval.id, name=approval.name, **body)


def _approval(row: Row) -> Approval:
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
        on_expiry=row["on_expiry"],
        state=row["state"],
        decision=None if row["decision"] is None else json.loads(row["decision"]),
        decided_by=row["decided_by"],
        decided_at=None if row["decided_ms"] is None else from_ms(row["decided_ms"]),
        opened_at=from_ms(row["opened_ms"]),
        expires_at=None if row["expires_ms"] is None else from_ms(row["expires_ms"]),
        interrupt_id=row["interrupt_id"],
    )
