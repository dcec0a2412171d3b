"""
Amending a question that still waits: more time, or other people. Its payload is not touched: another payload is another question.

Who may: whoever may decide it, and an operator, whom the service lets in as one; who chooses as an operator who decides is none of them. A crash before the commit leaves the question as it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Any

from checkpointing.approval_rows import audit, existing, locked
from checkpointing.asking import newest_round
from checkpointing.clock import duration_ms, from_ms, to_ms
from checkpointing.deciders import check_may_decide
from checkpointing.decisions import refusal
from checkpointing.errors import DecisionInvalid, NotAllowed
from checkpointing.notices import note
from checkpointing.principals import GROUP, Person, Principal, person
from checkpointing.questions import Approval, approval_from
from checkpointing.store import Row, Store, Tx
from checkpointing.text import storable
from checkpointing.voting import forget_votes

LONGEST = timedelta(days=3660)
"""How long a question waits at most, however often it is given more time."""

EXTEND = """
update approvals set expires_ms = expires_ms + :by_ms, remind_ms = case when remind_ms is not null then remind_ms + :by_ms end
where id = :id and state = 'pending' and expires_ms > :now and expires_ms + :by_ms <= opened_ms + :longest_ms
returning *
"""
REASSIGN = """
update approvals set approvers = :approvers where id = :id and state = 'pending' and (expires_ms is null or expires_ms > :now)
returning *
"""


Change = Callable[[Tx, Approval], tuple[Row | None, dict[str, Any]]]
"""Makes the change as part of a transaction that holds the approval's row; returns the row after it, `None` if it was not made, and what the audit says."""


def extend(
    store: Store, approval_id: str, by: timedelta, *, principal: Principal | None, reason: str, operator: bool
) -> Approval:
    """Give a question that still waits more time; errors as `Approvals.extend`."""
    if by <= timedelta():
        raise DecisionInvalid(f"approval {approval_id!r} is extended by a time longer than nothing, not by {by}")

    def put_off(tx: Tx, found: Approval) -> tuple[Row | None, dict[str, Any]]:
        row = tx.one(EXTEND, id=found.id, by_ms=duration_ms(by), longest_ms=duration_ms(LONGEST))
        return row, {"until": from_ms(row["expires_ms"]).isoformat()} if row else {}

    return _amend(store, approval_id, "approval.extend", put_off, principal=principal, reason=reason, operator=operator)


def reassign(
    store: Store, approval_id: str, to: Collection[str], *, principal: Principal | None, reason: str, operator: bool
) -> Approval:
    """Have other people asked; errors as `Approvals.reassign`."""
    if not to or not all(one.strip() and storable(one) == one for one in to):
        raise DecisionInvalid(f"approval {approval_id!r} is reassigned to somebody: names, or group:NAME")
    asked = list(dict.fromkeys(to))

    def hand_on(tx: Tx, found: Approval) -> tuple[Row | None, dict[str, Any]]:
        if len(asked) < found.quorum and not any(one.startswith(GROUP) for one in asked):
            raise DecisionInvalid(
                f"approval {found.id!r} takes {found.quorum} people who say the same, so it is not reassigned to {len(asked)}"
            )
        row = tx.one(REASSIGN, id=found.id, approvers=json.dumps(asked))
        forget_votes(tx, found.id)
        return row, {"to": asked}

    return _amend(
        store, approval_id, "approval.reassign", hand_on, principal=principal, reason=reason, operator=operator
    )


def _amend(
    store: Store,
    approval_id: str,
    event: str,
    change: Change,
    *,
    principal: Principal | None,
    reason: str,
    operator: bool,
) -> Approval:
    who = person(principal, f"changing approval {approval_id!r} needs a principal: who does it?")
    with store.transaction("approval.amend") as tx:
        found = locked(tx, approval_id)
        as_operator = _is_as_operator(tx, found, who, operator=operator)
        row, said = change(tx, found)
        if row is None:
            raise _not_amended(tx, approval_id)
        amended = approval_from(row)
        note(tx, amended, event, by=who.name)
        body = {"terms": amended.terms(), "reason": storable(reason), **said}
        audit(tx, amended, event, actor=who.name, **body, **({"operator": True} if as_operator else {}))
        return amended


def _is_as_operator(tx: Tx, found: Approval, who: Person, *, operator: bool) -> bool:
    """Tell whether they may only because they are an operator; errors as `check_may_decide` for whoever is none."""
    try:
        check_may_decide(tx, found, who)
    except NotAllowed:
        if not operator:
            raise
        return True
    return False


def _not_amended(tx: Tx, approval_id: str) -> Exception:
    found = existing(tx, approval_id)
    if found.state == "pending" and found.expires_at is None:
        return DecisionInvalid(f"approval {approval_id!r} waits for ever, so there is nothing to extend")
    if found.state == "pending" and found.expires_at and to_ms(found.expires_at) > tx.now_ms():
        return DecisionInvalid(
            f"approval {approval_id!r} would wait for more than {LONGEST.days} days after it was asked; every wait ends"
        )
    return refusal(found, newest=newest_round(tx, found))
