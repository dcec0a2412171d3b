"""
Notices: what people are to be told of, written in the transaction of what happened.

    what happened ──▶ noted ──▶ told: a run of the notices graph is admitted, and the note goes
                        └─────▶ forgotten, after a while without anybody who tells

A note has an id that follows from what it tells of, and the run that tells it has the note's id in its thread's: a crash between the two admits the
same run again. So what happened is told of once, and never without having happened. A note says who and what, and nothing of the payload.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from checkpointing.clock import duration_ms, from_ms
from checkpointing.digest import sha256
from checkpointing.questions import Approval
from checkpointing.store import Store, Tx

NOTE = """
insert into notices (id, thread_id, event, subject, body, at_ms) values (:id, :thread_id, :event, :subject, :body, :now) on conflict do nothing
"""
NOTED = "select * from notices order by at_ms, id limit :limit"
TOLD = "delete from notices where id = :id"
OLD = "select 1 as found from notices where at_ms <= :until limit 1"
FORGET = "delete from notices where at_ms <= :until returning id"


@dataclass(frozen=True, slots=True)
class Notice:
    """
    Something people are to be told of.

    Attributes:
        id: The same however often it is noted.
        event: The transition, as the audit names it: `approval.open`, `approval.remind`, …
        subject: The approval's id.
        body: What the message needs, in JSON: `name`, `approvers`, `tier`, `expires_at`, and for a decision `type` and `by`.
    """

    id: str
    thread_id: str
    event: str
    subject: str
    body: dict[str, Any]
    at: datetime


def note(tx: Tx, approval: Approval, event: str, **more: Any) -> None:
    """Note as part of *tx* that *event* happened to the approval."""
    until = approval.expires_at.isoformat() if approval.expires_at else None
    tier = approval.at_tier.name if approval.at_tier else None
    who = None if approval.approvers is None else list(approval.approvers)
    # The same people can be asked twice, with others between, until the same moment.
    once = [tx.now_ms(), who] if event == "approval.reassign" else []
    body = {"name": approval.name, "approvers": who, "tier": tier, "expires_at": until, **more}
    tx.all(
        NOTE,
        id="ntc_" + sha256([approval.id, event, approval.tier, until, *once])[:20],
        thread_id=approval.thread_id,
        event=event,
        subject=approval.id,
        body=json.dumps(body, sort_keys=True),
    )


class Notices:
    """The `notices` table, for whoever tells people."""

    def __init__(self, store: Store) -> None:
        """Use *store*."""
        self.store = store

    def noted(self, *, limit: int = 100) -> list[Notice]:
        """Return what is to be told, the oldest first."""
        with self.store.reading() as tx:
            return [_notice(row) for row in tx.all(NOTED, limit=limit)]

    def told(self, notice_id: str) -> None:
        """Forget a note: a run that tells of it is admitted, or there is nobody to tell."""
        with self.store.transaction("notice.told") as tx:
            tx.all(TOLD, id=notice_id)

    def forget(self, *, older: timedelta) -> int:
        """Forget the notes that are *older* and still there, because nobody is there to tell; return how many went."""
        with self.store.reading() as tx:
            until = tx.now_ms() - duration_ms(older)
            if tx.one(OLD, until=until) is None:
                return 0
        with self.store.transaction("notice.forget") as tx:
            return len(tx.all(FORGET, until=until))


def _notice(row: dict[str, Any]) -> Notice:
    return Notice(
        id=row["id"],
        thread_id=row["thread_id"],
        event=row["event"],
        subject=row["subject"],
        body=json.loads(row["body"]),
        at=from_ms(row["at_ms"]),
    )
