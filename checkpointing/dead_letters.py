"""
Dead letters: runs that cannot go on by themselves, and what people do with them.

    running ──die──▶ dead ──redrive──▶ admitted, at the checkpoint it stands at, with all its attempts
                       └───discard───▶ dead and given up: not listed, not redriven, and nobody is asked any more

A redrive and a discard are one conditional write each, so of two at once one is first and the other is told so. A crash before the commit leaves the
dead letter as it was. What is in doubt of a discarded run stays in the ledger, for `resolve` and for a reconciliation: giving a run up says nothing of
what its receivers did.
"""

from __future__ import annotations

from checkpointing.admissions import Run, existing, run_from
from checkpointing.approval_rows import audit
from checkpointing.audit import append
from checkpointing.clock import to_ms
from checkpointing.covering import withdraw_pending
from checkpointing.dispatch import WOKEN, enqueue
from checkpointing.errors import InputRefused, Refused, RunDiscarded
from checkpointing.notices import note
from checkpointing.principals import named
from checkpointing.store import Store
from checkpointing.text import storable

GET = "select * from runs where thread_id = :thread_id"
REDRIVE = """
update runs set state = 'admitted', reason = null, error = null, attempts = 0, tries = 0, dead_step = null, dead_nodes = null,
    updated_ms = :now, due_ms = :now
where thread_id = :thread_id and state = 'dead' and discarded_ms is null returning *
"""
DISCARD = """
update runs set discarded_by = :principal, discarded_why = :why, discarded_ms = :now, updated_ms = :now
where thread_id = :thread_id and state = 'dead' and discarded_ms is null and updated_ms = :seen_ms and turn = :turn returning *
"""
LISTED = """
select * from runs where state = 'dead' and discarded_ms is null and thread_id > :after order by thread_id limit :limit
"""
LISTED_OF_REASON = LISTED.replace("and thread_id", "and reason = :reason and thread_id")


def redrive(store: Store, thread_id: str, *, principal: str, reason: str) -> Run:
    """
    Take a dead letter up again from its last checkpoint, with all its attempts; no effect is repeated.

    Raises:
        UnknownThread: no such run.
        InputRefused: the run is not a dead letter.
        RunDiscarded: somebody gave it up.
        NotAllowed: no principal was named.
    """
    principal = named(principal, f"redriving thread {thread_id!r} needs a principal: who asks for it?")
    with store.transaction("run.redrive") as tx:
        row = tx.one(REDRIVE, thread_id=thread_id)
        if row is None:
            raise _refused(run_from(existing(tx, GET, thread_id)), "redriven")
        run = run_from(row)
        enqueue(tx, thread_id, graph=run.graph, priority=WOKEN)
        append(tx, thread_id, "run.redrive", actor=principal, subject=thread_id, reason=storable(reason))
        return run


def discard(store: Store, thread_id: str, *, principal: str, reason: str) -> Run:
    """
    Give a dead letter up for good, and take back what it still asks; one that was given up before is returned as it is.

    Raises:
        UnknownThread: no such run.
        InputRefused: the run is not a dead letter, or was redriven meanwhile.
        NotAllowed: no principal was named.
    """
    principal = named(principal, f"discarding thread {thread_id!r} needs a principal: who gives it up?")
    why = storable(reason)
    with store.transaction("run.discard") as tx:
        seen = run_from(existing(tx, GET, thread_id))
        # Before the run: approvals are locked before runs, by everybody. So what is asked is looked for first, and a run that has moved since
        # it was seen, and may have asked something new, is not discarded.
        withdrawn = withdraw_pending(tx, thread_id, principal=principal, reason=why)
        values = {"principal": principal, "why": why, "seen_ms": to_ms(seen.updated_at), "turn": seen.turn}
        row = tx.one(DISCARD, thread_id=thread_id, **values)
        run = run_from(row) if row else run_from(existing(tx, GET, thread_id))
        if run.discarded_at is None:
            raise _refused(run, "discarded")
        for one in withdrawn:
            note(tx, one, "approval.withdraw", by=principal)
            audit(tx, one, "approval.withdraw", actor=principal, reason=why)
        if row:
            append(tx, thread_id, "run.discard", actor=principal, subject=thread_id, reason=why)
        return run


def listed(store: Store, *, reason: str | None, after: str, limit: int) -> tuple[Run, ...]:
    """Return up to *limit* dead letters that nobody gave up, of this *reason* or of any, in order of their thread ids, from the one after *after*."""
    with store.reading() as tx:
        rows = tx.all(LISTED_OF_REASON if reason else LISTED, reason=reason, after=after, limit=limit)
        return tuple(run_from(row) for row in rows)


def _refused(run: Run, done: str) -> Refused:
    if run.discarded_at:
        return RunDiscarded(
            f"thread {run.thread_id!r} was discarded by {run.discarded_by!r} at {run.discarded_at.isoformat()}: "
            f"{run.discarded_why or 'no reason given'}. It is given up for good; the job takes a thread of its own"
        )
    if run.state == "dead":
        return InputRefused(f"thread {run.thread_id!r} was redriven meanwhile, and died again; look at it anew")
    return InputRefused(f"thread {run.thread_id!r} is {run.state}; only a dead letter is {done}")
