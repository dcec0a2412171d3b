"""
What the rows of effects and approvals say against the audit: somebody changed or removed one by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from checkpointing.approvals import Approvals, decided_body
from checkpointing.audit import Entry, Witness
from checkpointing.digest import sha256
from checkpointing.ledger import Ledger
from checkpointing.questions import Approval

EVERY = 2**31 - 1


def effects_witness(ledger: Ledger) -> Witness:
    """Return what yields one line for every effect of a thread that is not as its entries say."""

    def contradictions(thread_id: str, entries: Sequence[Entry]) -> Iterator[str]:
        rows = {record.key: record for record in ledger.list(thread_id=thread_id, limit=EVERY)}
        for key, outcome in _outcomes(entries).items():
            if key not in rows:
                yield f"effect {key!r} is in the audit and not in the ledger"
            elif outcome != (sha256(rows[key].outcome) if rows[key].state == "settled" else None):
                yield f"effect {key!r} is {rows[key].state} with another outcome than was recorded"

    return contradictions


def approvals_witness(approvals: Approvals) -> Witness:
    """Return what yields one line for every approval of a thread that is not as its entries say."""

    def contradictions(thread_id: str, entries: Sequence[Entry]) -> Iterator[str]:
        rows = {row.id: row for row in approvals.of_thread(thread_id)}
        for entry in entries:
            if entry.event.startswith("approval.") and (fault := _against(rows.get(entry.subject), entry)):
                yield f"approval {entry.subject!r} {fault}"

    return contradictions


def _outcomes(entries: Sequence[Entry]) -> dict[str, str | None]:
    """Return the hash of every effect's outcome as recorded, `None` for one not settled; released ones are left out."""
    recorded: dict[str, str | None] = {}
    for entry in entries:
        if entry.event in ("effect.claim", "effect.take_over"):
            recorded[entry.subject] = None
        elif "outcome" in entry.body:
            recorded[entry.subject] = entry.body["outcome"]
        elif entry.event in ("effect.release", "effect.resolve"):
            recorded.pop(entry.subject, None)
    return recorded


def _against(row: Approval | None, entry: Entry) -> str | None:
    if row is None:
        return "is in the audit and not among the approvals"
    if entry.event == "approval.open" and entry.body["payload"] != sha256(row.payload):
        return "asks about another payload than was recorded"
    if entry.event == "approval.decide":
        as_recorded = row.decision and (row.decided_by, {"name": row.name, **decided_body(row)})
        return None if as_recorded == (entry.actor, entry.body) else "has another decision than was recorded"
    return None
