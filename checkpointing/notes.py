"""
What is only noted, in the audit of a thread: that it was refused what is recorded otherwise, and who submitted it where it has no run.

A crash before the commit leaves nothing of a note; whoever makes it makes it again.
"""

from __future__ import annotations

from checkpointing.audit import append, entries_in
from checkpointing.effects import EffectRecord, Request
from checkpointing.errors import InputChanged
from checkpointing.leases import check_fence
from checkpointing.store import Store

SUBMIT = "server.submit"


def note_conflict(store: Store, asked: Request, found: EffectRecord) -> None:
    """
    Write into the asking thread's audit that it was refused what *found* is recorded for with other arguments.

    Raises:
        LeaseLost: stop.
    """
    with store.transaction("effect.conflict") as tx:
        check_fence(tx, asked.place.held)
        append(
            tx,
            asked.slot.thread_id,
            "effect.conflict",
            actor=asked.place.held.owner,
            subject=found.key,
            effect=asked.effect,
            recorded=found.digest,
            asked=asked.digest,
        )


def note_submission(store: Store, thread_id: str, *, principal: str, digest: str) -> None:
    """
    Keep who submitted which input: a thread of a server has no run whose row could tell.

    A thread has one input, as elsewhere. The same again is let through until the thread has got anywhere: the server may have died before it
    made the run.

    Raises:
        InputChanged: the thread has other input, or has got somewhere with this one.
    """
    with store.transaction("server.submit") as tx:
        append(tx, thread_id, SUBMIT, actor=principal, subject=thread_id, input=digest)
        chain = entries_in(tx, thread_id)
        if any(entry.event == SUBMIT and entry.body["input"] != digest for entry in chain):
            raise InputChanged(
                f"thread {thread_id!r} was submitted with other input; use another thread for another claim"
            )
        if any(entry.event != SUBMIT for entry in chain):
            raise InputChanged(
                f"thread {thread_id!r} has this input and got somewhere with it; input=None carries it on"
            )
