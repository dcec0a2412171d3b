"""
What people have decided about a tool call, by the rows that a durable graph opened for `HumanInTheLoopMiddleware`.

The middleware asks in another node, or in the middle of the tool's own task, and goes by what its `when` says on the day; nothing binds the tool to
the answer. So the effect reads the rows itself before it claims anything:

    its own task asked about the call (per call)      that row decides
    the call was shown in a batch, once or more       the latest row that shows exactly this call decides
    nobody asked                                      nothing stands against it

A call that was rejected is thus not executed unless a later answer to the very same call lets it, whatever became of `when` or of the order of the
middlewares, and one that was approved or edited is executed with those arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, ToolCall
from langgraph.types import Interrupt

from checkpointing import Approval, Journal
from nodes.visit import Visit

LET = ("approve", "edit")


def decided(journal: Journal, here: Visit, message: AIMessage, call: ToolCall) -> tuple[str | None, Any]:
    """
    Return what stands against executing *call*, or `None`, and the arguments it may be executed with.

    The arguments are `None` where nobody was asked, so that nothing binds them.
    """
    rows = [row for row in journal.approvals.of_thread(here.thread_id) if row.interrupt_id and _is_review(row.payload)]
    own = Interrupt.from_ns(None, here.task).id
    for row in rows:
        if row.interrupt_id == own and row.payload.get("tool_call_id") == call["id"]:
            return _verdict(row, [_answer(row)], call)
    batches = [row for row in rows if _shown(row.payload, call)]
    if not batches:
        return None, None
    last = _latest(journal, batches)
    return _verdict(last, _of_call(last, _shown(last.payload, call), _twins(message, call), call["id"]), call)


def _is_review(payload: Any) -> bool:
    return isinstance(payload, Mapping) and (
        payload.get("type") == "tool_approval" or isinstance(payload.get("action_requests"), list)
    )


def _latest(journal: Journal, rows: Sequence[Approval]) -> Approval:
    """Return what was asked last; where two were asked within a millisecond the audit has the order."""
    newest = max(row.opened_at for row in rows)
    tied = [row for row in rows if row.opened_at == newest]
    if len(tied) == 1:
        return tied[0]
    order = [entry.subject for entry in journal.audit.entries(tied[0].thread_id) if entry.event == "approval.open"]
    return max(tied, key=lambda row: order.index(row.id))


def _shown(payload: Mapping[str, Any], call: ToolCall) -> list[int]:
    """Return at which positions of a batch exactly this call is shown."""
    return [
        number
        for number, request in enumerate(payload.get("action_requests", ()))
        if (request["name"], request["args"]) == (call["name"], call["args"])
    ]


def _twins(message: AIMessage, call: ToolCall) -> list[str | None]:
    return [one["id"] for one in message.tool_calls if (one["name"], one["args"]) == (call["name"], call["args"])]


def _of_call(row: Approval, shown: list[int], twins: Sequence[str | None], call_id: str | None) -> list[Any]:
    """Return the decision about the call: its own among equal ones where every one of them was shown, else all of theirs."""
    answer = _answer(row)
    decisions = answer.get("decisions", []) if isinstance(answer, Mapping) else []
    if len(shown) == len(twins):
        shown = [shown[twins.index(call_id)]]
    return [decisions[number] if number < len(decisions) else None for number in shown]


def _answer(row: Approval) -> Any:
    return row.decision.get("value") if row.decision else None


def _verdict(row: Approval, decisions: list[Any], call: ToolCall) -> tuple[str | None, Any]:
    for decision in decisions:
        kind = decision.get("type") if isinstance(decision, Mapping) else None
        if kind is None:
            return f"a person was asked about it ({row.id}) and has not decided", None
        if kind not in LET:
            return f"{row.decided_by or 'somebody'} decided {kind!r} about exactly this call ({row.id})", None
    last = decisions[-1]
    return None, last["edited_action"]["args"] if last["type"] == "edit" else call["args"]
