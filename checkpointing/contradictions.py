"""
What the rows of runs, effects, approvals and tokens say against the audit: somebody changed or removed one by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from checkpointing.approvals import Approvals, decided_body
from checkpointing.audit import ACCESS, Entry, Witness
from checkpointing.digest import sha256
from checkpointing.ledger import Ledger
from checkpointing.questions import Approval
from checkpointing.runs import Runs
from checkpointing.tokens import Tokens, terms_of
from checkpointing.voting import Vote

EVERY = 2**31 - 1


def runs_witness(runs: Runs) -> Witness:
    """Return what yields one line if a thread's run is not as its entries say."""

    def contradictions(thread_id: str, entries: Sequence[Entry]) -> Iterator[str]:
        admitted = [entry for entry in entries if entry.event == "run.admit"]
        if not admitted:
            return
        run = runs.find(thread_id)
        if run is None:
            yield "its run is in the audit and not among the runs"
        elif (run.submitted_by or "", run.turn, run.input_digest) != (
            admitted[-1].actor,
            admitted[-1].body["turn"],
            admitted[-1].body["input"],
        ):
            yield "its run has another submitter, turn or input than was recorded"

    return contradictions


def effects_witness(ledger: Ledger) -> Witness:
    """Return what yields one line for every effect of a thread that is not as its entries say."""

    def contradictions(thread_id: str, entries: Sequence[Entry]) -> Iterator[str]:
        rows = {record.key: record for record in ledger.list(thread_id=thread_id, limit=EVERY)}
        rows |= {record.key: record for record in ledger.past(thread_id)}
        for entry in entries:
            if entry.event == "effect.settle_late":
                yield f"effect {entry.subject!r} was executed although something else is on record of its slot: both may have happened"
        recorded = _recorded(entries)
        for key, (digest, approval_id, outcome) in recorded.items():
            row = rows.get(key)
            if row is None:
                yield f"effect {key!r} is in the audit and not in the ledger"
            elif outcome != (sha256(row.outcome) if row.state == "settled" else None):
                yield f"effect {key!r} is {row.state} with another outcome than was recorded"
            elif (row.digest, row.approval_id) != (digest, approval_id):
                yield f"effect {key!r} has other arguments, or another approval, than were recorded"
        for key in rows.keys() - recorded.keys():
            if rows[key].state != "released":
                yield f"effect {key!r} is {rows[key].state} and was never recorded as claimed, or was released"

    return contradictions


def approvals_witness(approvals: Approvals) -> Witness:
    """Return what yields one line for every approval of a thread that is not as its entries say."""

    def contradictions(thread_id: str, entries: Sequence[Entry]) -> Iterator[str]:
        rows = {row.id: row for row in approvals.of_thread(thread_id)}
        told: dict[str, dict[str, Entry]] = {}
        for entry in entries:
            if entry.event == "approval.decide" and entry.event in told.get(entry.subject, {}):
                yield f"approval {entry.subject!r} was decided twice"
            if entry.event.startswith("approval."):
                told.setdefault(entry.subject, {})[entry.event] = entry
        for approval_id in sorted(told.keys() - rows.keys()):
            yield f"approval {approval_id!r} is in the audit and not among the approvals"
        for row in rows.values():
            if fault := _against(row, told.get(row.id, {})) or _votes_against(row, approvals.votes(row.id), entries):
                yield f"approval {row.id!r} {fault}"

    return contradictions


def tokens_witness(tokens: Tokens) -> Witness:
    """Return what yields one line for every token that is not as the chain `ACCESS` says: added, widened or revived by hand."""

    def contradictions(thread_id: str, entries: Sequence[Entry]) -> Iterator[str]:
        if thread_id != ACCESS:
            return
        rows = {str(row["id"]): row for row in tokens.rows()}
        added = {entry.subject: str(entry.body["terms"]) for entry in entries if entry.event == "token.add"}
        revoked = {
            entry.subject: (entry.actor, entry.body["at_ms"]) for entry in entries if entry.event == "token.revoke"
        }
        for token_id, terms in added.items():
            row = rows.get(token_id)
            if row is None:
                yield f"token {token_id!r} is in the audit and not among the tokens"
            elif terms != terms_of(row):
                yield f"token {token_id!r} has another secret or other terms than were recorded: who may do what until when"
            elif (row["revoked_by"], row["revoked_ms"]) != revoked.get(token_id, (None, None)):
                yield f"token {token_id!r} was revoked, or is good again, otherwise than was recorded"
        for token_id in rows.keys() - added.keys():
            yield f"token {token_id!r} was never recorded as added"

    return contradictions


def _recorded(entries: Sequence[Entry]) -> dict[str, tuple[str, str | None, str | None]]:
    """Return the digest, approval and hash of the outcome of every effect as recorded; released ones are left out."""
    recorded: dict[str, tuple[str, str | None, str | None]] = {}
    for entry in entries:
        key, body = entry.subject, entry.body
        match entry.event:
            case "effect.claim":
                recorded[key] = (body["digest"], body["approval"], None)
            case "effect.settle" | "effect.resolve" | "effect.adopt" if "outcome" in body:
                # After a person said that nothing happened, the worker that had called may still say what did.
                known = recorded.get(key) or next(_asked_under(key, entries), ("", None))
                recorded[key] = (known[0], known[1], body["outcome"])
            case "effect.release" | "effect.resolve":
                recorded.pop(key, None)
    return recorded


def _asked_under(key: str, entries: Sequence[Entry]) -> Iterator[tuple[str, str | None]]:
    """Yield the digest and approval that were recorded of *key*, the last first: where it was claimed, or where a reissue made it."""
    for entry in reversed(entries):
        claimed = (entry.event, entry.subject) == ("effect.claim", key)
        if claimed or (entry.event, entry.body.get("reissued_as")) == ("effect.reissue", key):
            yield entry.body["digest"], entry.body["approval"]


def _against(row: Approval, told: dict[str, Entry]) -> str | None:
    opened = told.get("approval.open")
    if opened is None:
        return None  # a missing entry is the chain's to find
    if not opened.body["payload"] == sha256(row.payload) == row.payload_hash:
        return "asks about another payload than was recorded"
    if opened.body.get("about") != (None if row.about is None else sha256(row.about)):
        return "shows something else beside its payload than was recorded"
    if _terms_told(told) != row.terms():
        return "has other terms than were recorded: who may decide what until when"
    return _withdrawn_against(row, told.get("approval.withdraw")) or _decided_against(row, told)


def _votes_against(row: Approval, votes: Sequence[Vote], entries: Sequence[Entry]) -> str | None:
    """Compare what several have said: since other people were asked, if they were; whose vote decided has it in the decision."""
    said: dict[str, str] = {}
    for entry in entries:
        if entry.subject == row.id and entry.event == "approval.reassign":
            said.clear()
        if entry.subject == row.id and entry.event == "approval.vote":
            said[entry.actor] = entry.body["decision"]
    decision = {key: value for key, value in (row.decision or {}).items() if key != "with"}
    found = {vote.principal: sha256(vote.decision) for vote in votes}
    if row.decided_by in found and found[row.decided_by] == sha256(decision):
        said[row.decided_by] = found[row.decided_by]
    return None if found == said else "has other votes than were recorded"


def _terms_told(told: dict[str, Entry]) -> str:
    """Return the hash of the terms as they were last recorded: they change where the question climbs, is extended or reassigned."""
    return str(max((one for one in told.values() if "terms" in one.body), key=lambda one: one.seq).body["terms"])


def _withdrawn_against(row: Approval, withdrawn: Entry | None) -> str | None:
    if row.withdrawn_by != (withdrawn.actor if withdrawn else None):
        return "was withdrawn by somebody else than was recorded"
    if withdrawn and row.state not in ("withdrawn", "superseded"):
        return f"was withdrawn, and is {row.state}"
    return None


def _decided_against(row: Approval, told: dict[str, Entry]) -> str | None:
    decided, expired = told.get("approval.decide"), told.get("approval.expire")
    if decided:
        as_recorded = row.decision and (row.decided_by, {"name": row.name, **decided_body(row)})
        return None if as_recorded == (decided.actor, decided.body) else "has another decision than was recorded"
    if expired:
        return None if row.decision == {"type": expired.body["type"]} else "has another outcome than was recorded"
    return (
        None
        if row.decision is None and row.state in ("pending", "superseded", "withdrawn")
        else "was decided, and by nobody on record"
    )
