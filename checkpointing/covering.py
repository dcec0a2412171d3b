"""
What ties an approval to its effect: whether it covers what is about to be done, and taking it back before anything was.

    claim      holds the approval's row shared, looks whether it covers the arguments, writes the effect, commits
    withdraw   changes the row, so it waits for such a claim, and then looks for an effect: of the two, whoever is second sees the first
"""

from __future__ import annotations

from checkpointing.approval_rows import GET_SHARED, audit, existing, locked
from checkpointing.deciders import check_may_decide
from checkpointing.errors import (
    AlreadyDecided,
    DecisionInvalid,
    EffectNotApproved,
)
from checkpointing.notices import note
from checkpointing.principals import Person, Principal, person
from checkpointing.questions import Approval, approval_from
from checkpointing.store import Store, Tx
from checkpointing.text import storable
from checkpointing.waking import submitters, wake

LATER = """
select id from approvals where thread_id = :thread_id and node = :node and name = :name and visit > :visit and state in ('decided', 'expired') limit 1
"""
WITHDRAW = """
update approvals set state = 'withdrawn', withdrawn_by = :principal, withdrawn_why = :why, withdrawn_ms = :now
where id = :id and state in ('pending', 'decided', 'expired')
returning *
"""
LOCK_PENDING = "select id from approvals where thread_id = :thread_id and state = 'pending' order by id for update"
WITHDRAW_PENDING = """
update approvals set state = 'withdrawn', withdrawn_by = :principal, withdrawn_why = :why, withdrawn_ms = :now
where thread_id = :thread_id and state = 'pending'
returning *
"""
USED_BY = "select key from effects where approval_id = :id and state <> 'released'"


def check_covers(tx: Tx, approval_id: str, *, thread_id: str, arguments_hash: str, again: bool) -> None:
    """
    Make sure that this approval allows an effect with these arguments; *again* says that the effect was claimed under it before.

    Raises:
        EffectNotApproved: it is another thread's or an earlier visit's, was not approved, was superseded or withdrawn, or was for
            something else.
    """
    row = tx.one(GET_SHARED, id=approval_id)
    found = approval_from(row) if row else None
    if found is None or found.thread_id != thread_id:
        raise EffectNotApproved(f"thread {thread_id!r} has no approval {approval_id!r}")
    kind = found.decision["type"] if found.decision else None
    if found.state not in ("decided", "expired") or kind not in ("approve", "edit"):
        raise EffectNotApproved(
            f"approval {approval_id!r} is {found.state}{_by_whom(found, kind)}; nothing may be done under it"
        )
    if not again and (later := tx.one(LATER, thread_id=thread_id, node=found.node, name=found.name, visit=found.visit)):
        raise EffectNotApproved(
            f"approval {approval_id!r} belongs to visit {found.visit} of node {found.node!r}, which was answered again since: "
            f"approval {later['id']!r}"
        )
    if found.approved()[1] != arguments_hash:
        raise EffectNotApproved(
            f"approval {approval_id!r} was given for a payload with hash {found.approved()[1][:16]}, "
            f"and the effect's arguments have {arguments_hash[:16]}; they must be the same JSON"
        )


def _by_whom(approval: Approval, kind: str | None) -> str:
    if approval.state == "withdrawn":
        return f" by {approval.withdrawn_by!r}"
    return f" ({kind})" if kind else ""


def withdraw(store: Store, approval_id: str, *, principal: Principal | None, reason: str) -> Approval:
    """
    Take a question back, or the decision on it, as long as no effect has used it; nothing may be done under it afterwards.

    A pending question counts as answered: its run is woken and the graph routes on the type `withdrawn`. A decision that the run has read
    already is refused where the effect claims, and the run is a dead letter.

    Raises:
        UnknownApproval: there is none with this id.
        NotAllowed: no principal was named, or it is not one of the approvers. Whoever submitted the run may take back its question, and
            no decision on it.
        DecisionInvalid: it is a graph's own `interrupt()`, which waits for an answer and for nothing else; or it was rejected.
        AlreadyDecided: an effect acted under it, or it was withdrawn or superseded before.
    """
    who = person(principal, f"withdrawing approval {approval_id!r} needs a principal: who takes it back?")
    with store.transaction("approval.withdraw") as tx:
        # Under the row's lock: a decision that commits meanwhile is another's to take back than the question was.
        _check_may_withdraw(tx, locked(tx, approval_id), who)
        row = tx.one(WITHDRAW, id=approval_id, principal=who.name, why=storable(reason))
        used = tx.one(USED_BY, id=approval_id)
        if row is None or used:
            raise _too_late(existing(tx, approval_id), str(used["key"]) if used else None)
        withdrawn = approval_from(row)
        note(tx, withdrawn, "approval.withdraw", by=who.name)
        wake(tx, withdrawn.thread_id)
        audit(tx, withdrawn, "approval.withdraw", actor=who.name, reason=storable(reason))
        return withdrawn


def withdraw_pending(tx: Tx, thread_id: str, *, principal: str, reason: str) -> list[Approval]:
    """Take back whatever the thread still asks, a graph's own `interrupt()` too, as part of *tx*; the caller writes the audit, after its own locks."""
    tx.all(LOCK_PENDING, thread_id=thread_id)
    return [
        approval_from(row) for row in tx.all(WITHDRAW_PENDING, thread_id=thread_id, principal=principal, why=reason)
    ]


def _check_may_withdraw(tx: Tx, found: Approval, who: Person) -> None:
    """Let whoever may decide take a decision back; a question also whoever put it. A reject allows nothing, so nothing of it is taken back."""
    if found.interrupt_id:
        raise DecisionInvalid(
            f"approval {found.id!r} is a graph's own interrupt(); it takes an answer and nothing else"
        )
    if found.decision and found.decision["type"] not in ("approve", "edit"):
        raise DecisionInvalid(f"approval {found.id!r} was rejected: nothing may be done under it anyway")
    if found.decision or who.name not in submitters(tx, found.thread_id):
        check_may_decide(tx, found, who)


def _too_late(found: Approval, used_by: str | None) -> AlreadyDecided:
    what = f"effect {used_by!r} acted under it" if used_by else f"it is {found.state}"
    return AlreadyDecided(
        f"approval {found.id!r} cannot be withdrawn: {what}", decision=found.decision, decided_by=found.decided_by
    )
