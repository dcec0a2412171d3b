"""
An approval's row, as every module that changes one reads it, and its place in the audit.
"""

from __future__ import annotations

from typing import Any

from checkpointing.audit import append
from checkpointing.errors import UnknownApproval
from checkpointing.questions import Approval, approval_from
from checkpointing.store import Tx

GET = "select * from approvals where id = :id"
GET_SHARED = GET + " for share"
GET_LOCKED = GET + " for update"


def existing(tx: Tx, approval_id: str, *, sql: str = GET) -> Approval:
    """
    Return the approval with this id.

    Raises:
        UnknownApproval: there is none.
    """
    row = tx.one(sql, id=approval_id)
    if row is None:
        raise UnknownApproval(f"there is no approval {approval_id!r}; see counterfoil approvals")
    return approval_from(row)


def locked(tx: Tx, approval_id: str) -> Approval:
    """Return the approval with this id, its row held until *tx* ends; errors as `existing`."""
    return existing(tx, approval_id, sql=GET_LOCKED)


def audit(tx: Tx, approval: Approval, event: str, *, actor: str, **body: Any) -> None:
    """Write what happened to the approval into its thread's audit, as part of *tx*."""
    append(tx, approval.thread_id, event, actor=actor, subject=approval.id, name=approval.name, **body)
