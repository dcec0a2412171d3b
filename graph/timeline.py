"""
A run's timeline: its steps with what each changed, did and waited for, read from the checkpoints and the journal; nothing is run.

A step's number is the number LangGraph gave the checkpoint the step started from, so a run whose head is checkpoint 6 stands in step 6, and
`langgraph_step` of the node that runs in it is one more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Any

from langgraph.types import StateSnapshot

from checkpointing import Approval, EffectRecord, Entry, Journal, Run
from graph.asks import thread
from graph.durable import DurableGraph
from nodes.state import union

EVERY = 2**31 - 1
RECORDS = ("effects", "approvals")
"""The channels to which siblings of one step add side by side."""


@dataclass(frozen=True, slots=True)
class StepView:
    """
    One step of a run.

    Attributes:
        number: The checkpoint it started from.
        nodes: What ran in it, or is to run.
        before: The state it started from.
        update: What its nodes wrote, by state key; empty for a step that is not finished.
        began: When its checkpoint was written.
        ended: When the next one was; `None` for the step the run stands in.
        attempts: How often a worker started at its checkpoint; 0 for a step that was reached and left within one start.
        waited: How long the run was parked in it.
        effects: The effects its nodes asked for, claimed here or answered from the ledger.
        approvals: The questions its nodes asked.
        checkpoint_id: The checkpoint it started from.
    """

    number: int
    nodes: tuple[str, ...]
    before: Mapping[str, Any]
    update: Mapping[str, Any]
    began: datetime
    ended: datetime | None
    attempts: int
    waited: timedelta
    effects: tuple[EffectRecord, ...]
    approvals: tuple[Approval, ...]
    checkpoint_id: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """A run, its steps in order, and its audit."""

    run: Run
    steps: tuple[StepView, ...]
    entries: tuple[Entry, ...]

    @property
    def standing(self) -> StepView | None:
        """The step the run stands in, or `None` before its first and after its last."""
        return self.steps[-1] if self.steps and self.steps[-1].ended is None and self.steps[-1].nodes else None


def timeline(graph: DurableGraph, thread_id: str) -> Timeline:
    """
    Read the timeline of a thread.

    Raises:
        UnknownThread: it has no run.
    """
    journal = graph.journal
    run = journal.runs.get(thread_id)
    entries = tuple(journal.audit.entries(thread_id))
    effects = _Effects(journal, thread_id)
    approvals = journal.approvals.of_thread(thread_id)
    snapshots = [s for s in reversed(list(graph.get_state_history(thread(thread_id)))) if _number(s) >= 0]
    at = _by_checkpoint(entries)
    steps = tuple(
        _step(snapshot, after, at, effects, approvals)
        for snapshot, after in zip_longest(snapshots, snapshots[1:])
        if snapshot.tasks
    )
    return Timeline(run, steps, entries)


def _step(
    snapshot: StateSnapshot,
    after: StateSnapshot | None,
    at: Mapping[str, _Stay],
    effects: _Effects,
    approvals: list[Approval],
) -> StepView:
    checkpoint_id = str(snapshot.config["configurable"]["checkpoint_id"])
    nodes = tuple(task.name for task in snapshot.tasks)
    began = datetime.fromisoformat(str(snapshot.created_at))
    ended = datetime.fromisoformat(str(after.created_at)) if after else None
    update = _update(snapshot) if after else {}
    return StepView(
        number=_number(snapshot),
        nodes=nodes,
        before=snapshot.values,
        update=update,
        began=began,
        ended=ended,
        attempts=at[checkpoint_id].starts if checkpoint_id in at else 0,
        waited=at[checkpoint_id].waited if checkpoint_id in at else timedelta(0),
        effects=effects.of(nodes, update, began, finished=ended is not None),
        approvals=_approvals_of(nodes, update, approvals, finished=ended is not None),
        checkpoint_id=checkpoint_id,
    )


def _update(snapshot: StateSnapshot) -> dict[str, Any]:
    update: dict[str, Any] = {}
    for task in snapshot.tasks:
        if isinstance(task.result, Mapping):
            update |= {
                key: union(update.get(key), value) if key in RECORDS else value for key, value in task.result.items()
            }
    return update


class _Effects:
    """The thread's effects, and those of other threads it was answered from."""

    def __init__(self, journal: Journal, thread_id: str) -> None:
        self.journal = journal
        self.own = {effect.key: effect for effect in journal.effects.list(thread_id=thread_id, limit=EVERY)}

    def of(
        self, nodes: tuple[str, ...], update: Mapping[str, Any], began: datetime, *, finished: bool
    ) -> tuple[EffectRecord, ...]:
        """The receipts say which effects a finished step asked for; in the step a run stands in, the ledger's times do."""
        if finished:
            keys = [receipt["key"] for receipt in update.get("effects", {}).values() if receipt["key"]]
            return tuple(self.own[key] if key in self.own else self.journal.effects.get(key) for key in keys)
        standing = [e for e in self.own.values() if e.step.rpartition(".")[0].split("/")[0] in nodes]
        # Two clocks may be at work, the store's and the host's, hence the second.
        return tuple(e for e in standing if e.claimed_at >= began - timedelta(seconds=1))


def _approvals_of(
    nodes: tuple[str, ...], update: Mapping[str, Any], approvals: list[Approval], *, finished: bool
) -> tuple[Approval, ...]:
    """Every round of the questions a step asked: of a finished step by the records it wrote, else those still open."""
    of_nodes = [a for a in approvals if a.node.split("/")[0] in nodes]
    if not finished:
        return tuple(a for a in of_nodes if a.state == "pending")
    visits = {(record["name"], record["visit"]) for record in update.get("approvals", {}).values()}
    return tuple(a for a in of_nodes if (a.name, a.visit) in visits)


@dataclass(slots=True)
class _Stay:
    """What the audit says of one checkpoint: how many workers started there, and how long the run was parked there."""

    starts: int = 0
    waited: timedelta = timedelta(0)


def _by_checkpoint(entries: tuple[Entry, ...]) -> dict[str, _Stay]:
    """Read the audit once; a wait belongs to the checkpoint of the start that ended it."""
    stays: dict[str, _Stay] = {}
    parked = None
    for entry in entries:
        if entry.event == "run.park":
            parked = entry.at_ms
        elif entry.event == "run.start":
            stay = stays.setdefault(entry.body["head"], _Stay())
            stay.starts += int(entry.body["first"])
            if parked is not None:
                stay.waited += timedelta(milliseconds=entry.at_ms - parked)
            parked = None
    return stays


def _number(snapshot: StateSnapshot) -> int:
    return int((snapshot.metadata or {}).get("step", -1))
