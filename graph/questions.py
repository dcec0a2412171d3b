"""
What a parked run waits for, and recording the answers a call brings.

Our own approval nodes open their rows themselves. For a graph's own `interrupt()` a row is opened when the run parks, so that its answer too is
one conditional write, made before the run moves, and is sent again on every advance until the node has taken it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.messages import ToolCall
from langchain_core.runnables import RunnableConfig
from langgraph.types import Interrupt, StateSnapshot

from checkpointing import Approval, Journal, Lease
from checkpointing.ancestry import own_ancestry
from checkpointing.digest import canonical
from checkpointing.errors import ArgumentsNotJson, DecisionInvalid, UnknownApproval
from checkpointing.principals import Person
from checkpointing.questions import Question
from checkpointing.slots import Place
from graph.answers import accepted, accepted_by
from graph.asks import Answer, Decide
from graph.reviewed import calls_under_review
from graph.snapshots import Compiled


def open_foreign(journal: Journal, snapshot: StateSnapshot, *, thread_id: str, lease: Lease) -> list[str]:
    """Make sure that everything the run waits for has its row, and return the ids of the rows."""
    own = {approval.id for approval in journal.approvals.of_thread(thread_id)}
    root = str(snapshot.config["configurable"]["checkpoint_id"])
    found = []
    for task in snapshot.tasks:
        for interrupt in task.interrupts:
            if (asked := _own_id(interrupt)) in own:
                found.append(str(asked))
                continue
            question = Question(
                thread_id=thread_id,
                node=task.name,
                name=f"interrupt:{interrupt.id}",
                visit=0,
                payload=_payload(interrupt.value),
                allowed=("respond",),
                edits=interrupt.response_schema if isinstance(interrupt.response_schema, dict) else None,
                interrupt_id=interrupt.id,
            )
            place = Place(lease, root, f"{task.name}:{task.id}", f"@{root}", own_ancestry(thread_id))
            found.append(journal.approvals.open(question, place=place).id)
    return found


def decide(
    journal: Journal,
    ask: Decide,
    compiled: Compiled,
    config: RunnableConfig,
    *,
    thread_id: str,
    principal: Person | None,
) -> None:
    """
    Record the decisions a call brings, each by the approval or interrupt it names; all of them, or none if one is refused.

    Raises:
        UnknownApproval: the thread has none of this id.
        DecisionInvalid: it answers an approval without naming it, or a graph's own interrupt in a format that is not the interrupt's.
        AlreadyDecided, ApprovalExpired, PayloadChanged, NotAllowed: as `Approvals.decide`.
    """
    snapshot = compiled.get_state(config)
    rows = journal.approvals.of_thread(thread_id)

    def calls(interrupt_id: str) -> Sequence[ToolCall]:
        return calls_under_review(compiled.get_state(config, subgraphs=True), interrupt_id)

    # Every answer is looked at before the first is recorded.
    chosen = [(_row(answer, rows, snapshot, thread_id), answer) for answer in ask.answers]
    decisions = [(row.id, _decision(row, answer, snapshot, calls)) for row, answer in chosen]
    journal.approvals.decide_all(decisions, principal=principal)


def _decision(
    row: Approval, answer: Answer, snapshot: StateSnapshot, calls: Callable[[str], Sequence[ToolCall]]
) -> Any:
    """Return what is to be recorded of an answer: a decision as it came, or the answer to a graph's own interrupt as its node takes it."""
    if row.interrupt_id is None:
        return answer.value
    decision = {"type": "respond", "value": answer.value} if answer.interrupt_id else _respond(row, answer.value)
    if row.state != "pending":  # it takes no answer any more, and says so itself
        return decision
    asked = next((one for one in snapshot.interrupts if one.id == row.interrupt_id), None)
    if asked is None:
        return {**decision, "value": accepted_by(row, decision["value"])}
    return {**decision, "value": accepted(asked, decision["value"], lambda: calls(asked.id))}


def _respond(row: Approval, decision: Any) -> dict[str, Any]:
    """Return a decision that names the row of a graph's own interrupt, without the name."""
    if decision.get("type") != "respond" or "value" not in decision:
        raise DecisionInvalid(
            f"approval {row.id!r} is a graph's own interrupt(): it takes {{'type': 'respond', 'value': ...}}, not a {decision.get('type')!r}"
        )
    return {key: value for key, value in decision.items() if key != "approval"}


def _row(answer: Answer, rows: list[Approval], snapshot: StateSnapshot, thread_id: str) -> Approval:
    for row in reversed(rows):
        # A graph's own interrupt may be answered with a mapping that has a key called `approval`.
        if row.id == answer.approval_id or (row.interrupt_id and row.interrupt_id == answer.interrupt_id):
            return row
    waiting = ", ".join(f"{row.id} ({row.name})" for row in rows if row.state == "pending") or "nothing"
    for interrupt in snapshot.interrupts:
        if interrupt.id == answer.interrupt_id and _own_id(interrupt) is not None and answer.approval_id is None:
            raise DecisionInvalid(f"the answer to interrupt {interrupt.id!r} must name approval {_own_id(interrupt)!r}")
    named = answer.approval_id or answer.interrupt_id
    raise UnknownApproval(f"thread {thread_id!r} has no approval {named!r}; what waits there: {waiting}")


def _own_id(interrupt: Interrupt) -> str | None:
    value = interrupt.value
    return str(value["id"]) if isinstance(value, Mapping) and "id" in value and "payload_hash" in value else None


def _payload(value: Any) -> Any:
    """Return an interrupt's value as JSON; what is not JSON is shown as Python writes it."""
    try:
        canonical(value, what="interrupt")
    except ArgumentsNotJson:
        return {"shown": repr(value)}
    return value
