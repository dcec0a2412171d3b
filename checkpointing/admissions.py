"""
A run as values: what a caller wants a thread to do, and what its row says.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from checkpointing.clock import from_ms
from checkpointing.errors import UnknownThread
from checkpointing.store import Row, Tx

RunState = Literal["admitted", "running", "parked", "done", "dead"]


@dataclass(frozen=True, slots=True)
class Run:
    """
    A run as its row has it.

    Attributes:
        reason: Why it is parked (`approval`, `in_doubt`) or dead.
        waits_for: The key of the effect in doubt it is parked for, else `None`.
        error: The last error of a node, one line; the run may have gone on since.
        input_digest: SHA-256 of the admitted input.
        submission: What the caller named this turn; empty if nothing.
        turn: Which input of the thread this is, from 1; 1 for ever unless the graph takes turns.
        attempts: Starts since the last new checkpoint.
        tries: As attempts, but those that were given back are counted too; the wait before the next grows with it.
        resumes: Starts that took over from a worker that died, over the run's whole life.
        steps: Supersteps of this turn.
        graph: The name of the graph it belongs to; empty for one without a name.
        head: The checkpoint it stood at when it was last started; `None` before the first start.
        admitted_at: When this turn was admitted; `created_at` is when the first one was.
        due_at: When a worker is to look at it; `None` while only an event can carry it on.
        dead_step: The step a dead letter stands in, as `timeline` numbers it; `None` before the first one, and where it could not be read.
        dead_nodes: The nodes that failed in that step, or had not ended, with commas between.
        discarded_by: Who gave the dead letter up, and why, and when; `None` if nobody did.
        schema_version: The version of the state that its input was written in, from 1.
        fingerprint: The shape of the graph that last carried it on; `None` before the first start.
        forked_from: The thread it was forked from, `forked_step` and `forked_at` the step and the checkpoint; `None` for a run that is no fork.
        live: Its effects may be executed; of a fork only if that was asked for by name.
    """

    thread_id: str
    state: RunState
    reason: str | None
    waits_for: str | None
    error: str | None
    input_digest: str
    submission: str
    turn: int
    attempts: int
    tries: int
    resumes: int
    steps: int
    head: str | None
    submitted_by: str | None
    graph: str
    created_at: datetime
    updated_at: datetime
    admitted_at: datetime
    due_at: datetime | None
    dead_step: int | None = None
    dead_nodes: str | None = None
    discarded_by: str | None = None
    discarded_why: str | None = None
    discarded_at: datetime | None = None
    schema_version: int = 1
    fingerprint: str | None = None
    forked_from: str | None = None
    forked_at: str | None = None
    forked_step: int | None = None
    live: bool = True


@dataclass(frozen=True, slots=True)
class Standpoint:
    """
    Where a run stands when it dies.

    Attributes:
        head: The newest checkpoint's id; empty if there is none.
        step: The number LangGraph gave that checkpoint; `None` before the first step.
        nodes: What failed there, or had not ended, with commas between.
    """

    head: str
    step: int | None
    nodes: str


@dataclass(frozen=True, slots=True)
class Admission:
    """
    What a caller wants a thread to do.

    Attributes:
        input_type: How `input` is serialised, as LangGraph's serialiser named it.
        digest: SHA-256 of the input, by which a second submission is recognised.
        submission: The caller's name for it; empty if none was given.
        graph: The name of the graph that asks; empty for one without a name.
        takes_turns: A thread that is done may take another submission.
    """

    thread_id: str
    input_type: str
    input: bytes
    digest: str
    submission: str
    submitted_by: str | None
    graph: str
    takes_turns: bool


def run_from(row: Row) -> Run:
    """Read a run from its row."""
    return Run(
        thread_id=row["thread_id"],
        state=row["state"],
        reason=row["reason"],
        waits_for=row["waits_for"],
        error=row["error"],
        input_digest=row["input_digest"],
        submission=row["submission"],
        turn=row["turn"],
        attempts=row["attempts"],
        tries=row["tries"],
        resumes=row["resumes"],
        steps=max(0, row["steps"]),  # below zero until LangGraph has taken the input
        head=row["head"],
        submitted_by=row["submitted_by"],
        graph=row["graph"],
        created_at=from_ms(row["created_ms"]),
        updated_at=from_ms(row["updated_ms"]),
        admitted_at=from_ms(row["admitted_ms"]),
        due_at=None if row["due_ms"] is None else from_ms(row["due_ms"]),
        dead_step=row["dead_step"],
        dead_nodes=row["dead_nodes"],
        discarded_by=row["discarded_by"],
        discarded_why=row["discarded_why"],
        discarded_at=None if row["discarded_ms"] is None else from_ms(row["discarded_ms"]),
        schema_version=row["schema_version"],
        fingerprint=row["fingerprint"],
        forked_from=row["forked_from"],
        forked_at=row["forked_at"],
        forked_step=row["forked_step"],
        live=bool(row["live"]),
    )


def existing(tx: Tx, sql: str, thread_id: str) -> Row:
    """
    Return the thread's row of `runs` as *sql* reads it.

    Raises:
        UnknownThread: no run was ever admitted for it.
    """
    row = tx.one(sql, thread_id=thread_id)
    if row is None:
        raise UnknownThread(f"there is no run for thread {thread_id!r}; see counterfoil list")
    return row
