"""
After an older copy of the journal was restored: what receivers executed since the copy was made, and the ledger lost.

    lost ── record ──▶ awaited: its run is there and unfinished, and is answered with it when it asks
                 └───▶ unknown: no run of this journal will ask for it, so a person must look: submit the claim again, or take it back

Recorded is only what a comparison with `restored` found, and in the window that it was given: what nobody here knows is somebody else's otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from checkpointing import Journal, restored
from checkpointing.clock import from_ms, to_ms
from checkpointing.restored import Execution
from service.findings import Finding
from tools.executed import Executed

UNFINISHED = ("admitted", "running", "parked")


def begin_of(journal: Journal, made_at: datetime, margin: timedelta) -> datetime:
    """
    Return from when on executions may be lost, given when the copy is said to have been made.

    The journal's last transition is as good a witness as the person: whatever it does not have was called after that, unless somebody has
    already worked on the restored journal. So the earlier of the two counts, and a *margin* before it for clocks that differ: a minute
    too much costs a few looks into the ledger, a second too little a payment.
    """
    newest = restored.newest_ms(journal.store)
    last = made_at if newest is None else min(made_at, from_ms(newest))
    return last - margin


def recorded(journal: Journal, finding: dict[str, Any], *, principal: str) -> dict[str, Any]:
    """Record a lost execution, and return the finding as it stands then."""
    executed = finding["executed"]
    lost = Execution(
        effect=finding["effect"],
        id=executed["id"],
        key=executed["key"],
        identity=executed["identity"],
        outcome=executed["outcome"],
        at_ms=to_ms(datetime.fromisoformat(executed["at"])),
        taken_back=executed["taken_back"],
        recorded_by=principal,
    )
    if not restored.record(journal.store, lost):
        return {**finding, "kind": "in_progress", "why": "a worker asked for it meanwhile, with the same key"}
    if lost.taken_back:
        return {**finding, "adopted": True, "why": "taken back: it answers for nothing any more"}
    why = _nobody_asks(journal, lost)
    if why:
        return {**finding, "kind": "unknown", "why": why}
    return {**finding, "adopted": True, "why": f"its run is thread {restored.thread_of(lost)}"}


def still_there(journal: Journal, kept: Execution, one: Executed) -> Iterator[Finding]:
    """Judge an execution that was recorded and that no effect has taken yet."""
    if kept.taken_back:
        return
    why = _nobody_asks(journal, kept)
    if why:
        yield Finding("unknown", kept.effect, why, executed=one)
    else:
        said = f"recorded by {kept.recorded_by}; thread {restored.thread_of(kept)} is answered with it when it asks"
        yield Finding("awaited", kept.effect, said, executed=one)


def _nobody_asks(journal: Journal, lost: Execution) -> str | None:
    """Say why no run of this journal will ask for it; `None` if one may."""
    thread_id = restored.thread_of(lost)
    if thread_id is None:
        return (
            "recorded, and its key does not say which run asked for it: whoever asks for the same is answered with it"
        )
    state = restored.state_of(journal.store, thread_id)
    if state in UNFINISHED:
        return None
    if state is None:
        return (
            f"recorded, and there is no run {thread_id!r} here: it was submitted after the copy was made. Submit it again, and it is answered "
            "with this"
        )
    return f"recorded, and run {thread_id!r} is {state} without having asked for it: take it back at the receiver, or find out why"
