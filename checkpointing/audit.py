"""
The audit: what happened to a thread, in order, each entry bound to the one before it by its hash.

Every transition appends its entry in its own transaction. `hash = SHA-256(RFC 8785 JSON of the entry and the hash before it)`, one chain
a thread; `audit_heads` keeps the newest link, so that an entry cut off the end is missed too. Entries name keys, ids, digests and
principals, never payloads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from checkpointing.digest import sha256
from checkpointing.store import Row, Store, Tx

START = """
insert into audit_heads (thread_id, seq, hash) values (:thread_id, 0, '')
on conflict (thread_id) do nothing
"""
HEAD = "select seq, hash, :now as now from audit_heads where thread_id = :thread_id for update"
MOVE = "update audit_heads set seq = :seq, hash = :hash where thread_id = :thread_id"
APPEND = """
insert into audit (thread_id, seq, at_ms, event, actor, subject, body, hash)
values (:thread_id, :seq, :at_ms, :event, :actor, :subject, :body, :hash)
"""
ENTRIES = "select * from audit where thread_id = :thread_id order by seq"
HEADS = "select thread_id, seq, hash from audit_heads where thread_id > :after order by thread_id limit 500"
HEAD_OF = "select thread_id, seq, hash from audit_heads where thread_id = :thread_id"
ORPHANS = """
select thread_id, 'a run' as what from runs where not exists
    (select 1 from audit where audit.thread_id = runs.thread_id and audit.event = 'run.admit')
union all
select thread_id, 'effect ' || key from effects where not (state = 'released' and generation > 1) and not exists
    (select 1 from audit where audit.thread_id = effects.thread_id and audit.event in ('effect.claim', 'effect.resolve')
        and audit.subject = effects.key)
union all
select thread_id, 'approval ' || id from approvals where not exists
    (select 1 from audit where audit.thread_id = approvals.thread_id and audit.event = 'approval.open' and audit.subject = approvals.id)
union all
select cast(:access as text), 'token ' || id from tokens where not exists
    (select 1 from audit where audit.thread_id = :access and audit.event = 'token.add' and audit.subject = tokens.id)
union all
select distinct thread_id, 'its entries' from audit where not exists
    (select 1 from audit_heads where audit_heads.thread_id = audit.thread_id)
"""


ACCESS = "\taccess"
"""The chain of what belongs to no thread: who may come in. No run has this id, because a thread's id holds no control character."""

PATIENCE = 20
"""How often a thread that moves is verified anew."""


@dataclass(frozen=True, slots=True)
class Entry:
    """
    One link of a thread's chain.

    Attributes:
        seq: Its place, from 1.
        event: `run.admit`, `effect.claim`, `approval.decide`, …: the transition's name.
        actor: The principal, or the worker as its lease names it.
        subject: The effect's key, the approval's id, or the thread id.
        body: What else the transition decided; no payload.
    """

    thread_id: str
    seq: int
    at_ms: int
    event: str
    actor: str
    subject: str
    body: dict[str, Any]
    hash: str


def append(tx: Tx, thread_id: str, event: str, *, actor: str, subject: str, **body: Any) -> None:
    """
    Add the next link to the thread's chain, as the last statements of *tx*.

    The head's row is locked, so two transitions of one thread get two places. It is locked last: every transaction takes its locks
    in the order leases, effects or approvals, runs, audit.
    """
    tx.all(START, thread_id=thread_id)
    head = tx.one(HEAD, thread_id=thread_id)
    assert head is not None
    link = {
        "thread_id": thread_id,
        "seq": int(head["seq"]) + 1,
        "at_ms": int(head["now"]),
        "event": event,
        "actor": actor,
        "subject": subject,
        "body": json.dumps(body, sort_keys=True),
    }
    link["hash"] = sha256({**link, "before": head["hash"]})
    tx.all(APPEND, **link)
    tx.all(MOVE, thread_id=thread_id, seq=link["seq"], hash=link["hash"])


def entries_in(tx: Tx, thread_id: str) -> list[Entry]:
    """Return the thread's chain as *tx* sees it, oldest first; after `append` nobody else adds to it before *tx* ends."""
    return [entry_from(row) for row in tx.all(ENTRIES, thread_id=thread_id)]


Witness = Callable[[str, Sequence[Entry]], Iterator[str]]
"""Gets a thread and its entries; yields what the rows say otherwise."""


class Audit:
    """The `audit` tables, for reading."""

    def __init__(self, store: Store, witnesses: Sequence[Witness]) -> None:
        """Read from *store*; each of the *witnesses* compares the rows it owns with a thread's entries."""
        self.store = store
        self.witnesses = witnesses

    def entries(self, thread_id: str) -> list[Entry]:
        """Return the thread's chain, oldest first."""
        with self.store.reading() as tx:
            return entries_in(tx, thread_id)

    def verify(self) -> Iterator[str]:
        """
        Yield one line for everything that is wrong with the chains; nothing if the record is whole.

        Found are: an entry changed, removed, added or moved; one cut off the end; a run, effect or approval with no entry; an effect
        or approval whose row is gone or says something else than its entries.
        """
        after = ""
        while heads := self._heads(after):
            for head in heads:
                yield from self._faults(str(head["thread_id"]))
            after = str(heads[-1]["thread_id"])
        with self.store.reading() as tx:
            for row in tx.all(ORPHANS, access=ACCESS):
                yield f"thread {row['thread_id']!r}: {row['what']} is not in the audit"

    def _faults(self, thread_id: str) -> list[str]:
        """Verify one thread; again where it moved meanwhile, because its rows are read after its entries."""
        for _ in range(PATIENCE):
            head = self._head(thread_id)
            faults = list(self._verify_thread(thread_id))
            if not faults or self._head(thread_id) == head:
                return faults
        return [f"thread {thread_id!r}: it is too busy to be verified; try again"]

    def _head(self, thread_id: str) -> Row | None:
        with self.store.reading() as tx:
            return tx.one(HEAD_OF, thread_id=thread_id)

    def _heads(self, after: str) -> list[Row]:
        with self.store.reading() as tx:
            return tx.all(HEADS, after=after)

    def _verify_thread(self, thread_id: str) -> Iterator[str]:
        # The head first: entries that a running transition adds meanwhile are then simply not looked at.
        head = self._head(thread_id)
        if head is None:
            return
        entries = [entry for entry in self.entries(thread_id) if entry.seq <= int(head["seq"])]
        before = ""
        for place, entry in enumerate(entries, start=1):
            if entry.seq != place:
                yield f"thread {thread_id!r}: entry {place} is missing"
                return
            if entry.hash != _hash(entry, before):
                yield f"thread {thread_id!r}: entry {entry.seq} ({entry.event}) was changed"
                return
            before = entry.hash
        if len(entries) != int(head["seq"]) or before != head["hash"]:
            yield f"thread {thread_id!r}: the chain ends at entry {len(entries)} and its head is {head['seq']}"

        for witness in self.witnesses:
            for fault in witness(thread_id, entries):
                yield f"thread {thread_id!r}: {fault}"


def _hash(entry: Entry, before: str) -> str:
    return sha256(
        {
            "thread_id": entry.thread_id,
            "seq": entry.seq,
            "at_ms": entry.at_ms,
            "event": entry.event,
            "actor": entry.actor,
            "subject": entry.subject,
            "body": json.dumps(entry.body, sort_keys=True),
            "before": before,
        }
    )


def entry_from(row: Row) -> Entry:
    """Read an entry from its row."""
    return Entry(**{**row, "body": json.loads(row["body"])})
