"""
What an answer to a graph's own `interrupt()` must look like, checked before it is recorded: a recorded answer is sent again on every advance, so a
bad one would fail the run for ever, or run what nobody meant.

Four formats are known: a JSON Schema that the interrupt publishes, the two of LangChain's `HumanInTheLoopMiddleware`, and Agent Inbox's.

    batched      one decision a call, keyed by the call's id or saying which call it is for; recorded by position (`graph/batches.py`)
    per call     one decision, by the same rules for each kind
    Agent Inbox  a list with one response, of a type its config allows; values that come as text are read as the kinds shown (`graph/inbox_format.py`)
    schema       whatever is to be recorded fits it
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.messages import ToolCall
from langgraph.types import Interrupt

from checkpointing import Approval
from graph.batches import KINDS, by_position, check_decision
from graph.inbox_format import inbox_request, response_to
from graph.schemas import check_fits


def nothing_known() -> Sequence[ToolCall]:
    """Return no calls: where only the question is at hand, keyed answers cannot be placed."""
    return ()


def accepted(interrupt: Interrupt, value: Any, calls: Callable[[], Sequence[ToolCall]] = nothing_known) -> Any:
    """
    Return what is to be recorded of an answer: what the asking node takes, on every advance.

    *calls* says which calls the message that is under review makes, in order; it is called only where that decides something.

    Raises:
        DecisionInvalid: the message says which part of it is wrong.
    """
    asked, what = interrupt.value, f"the answer to interrupt {interrupt.id!r}"
    if is_call(asked):
        check_decision(asked, value, allowed=KINDS, what=what)
    elif is_batch(asked):
        value = by_position(asked, value, calls, what)
    elif (request := inbox_request(asked)) is not None:
        value = response_to(request, value, what).as_sent()
    if isinstance(interrupt.response_schema, dict):
        check_fits(interrupt.response_schema, value, what)
    return value


def accepted_by(row: Approval, value: Any) -> Any:
    """As `accepted`, by the row alone of a graph's own interrupt: for those who decide where the graph is not at hand."""
    return accepted(Interrupt(value=row.payload, id=row.interrupt_id or "", response_schema=row.edits), value)


def checked(row: Approval, decision: Any) -> Any:
    """
    Return a decision as `journal.approvals.decide` is to record it: what answers a graph's own interrupt in the form its node takes.

    What is wrong with any other decision is for `decide` to say. Without the graph, decisions about several calls echo them: nothing here knows ids.

    Raises:
        DecisionInvalid: the node could not take the answer.
    """
    answers = isinstance(decision, Mapping) and decision.get("type") == "respond" and "value" in decision
    if row.interrupt_id is None or row.state != "pending" or not answers:
        return decision
    return {**decision, "value": accepted_by(row, decision["value"])}


def is_call(asked: Any) -> bool:
    """Tell whether LangChain's middleware asks about one call."""
    return isinstance(asked, Mapping) and asked.get("type") == "tool_approval" and "tool_call_id" in asked


def is_batch(asked: Any) -> bool:
    """Tell whether LangChain's middleware asks about all calls of a message at once."""
    return (
        isinstance(asked, Mapping)
        and isinstance(asked.get("action_requests"), list)
        and isinstance(asked.get("review_configs"), list)
    )


def kinds_in(schema: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the kinds of decision that a call's published schema takes; all of them where it publishes none."""
    if schema is None:
        return KINDS
    taken = []
    for branch in schema.get("oneOf") or schema.get("anyOf") or [schema]:
        named = str(branch.get("$ref", "")).removeprefix("#/$defs/")
        found = schema.get("$defs", {}).get(named, branch)
        taken.append(found.get("properties", {}).get("type", {}).get("const"))
    return tuple(kind for kind in KINDS if kind in taken)
