"""
What an answer to a graph's own `interrupt()` must look like, checked before it is recorded: a recorded answer is sent again on every advance, so a
bad one would fail the run for ever, or run what nobody meant.

Three formats are known: a JSON Schema that the interrupt publishes, and the two of LangChain's `HumanInTheLoopMiddleware`.

    batched     one decision a call, by position, of a kind its review allows; an edit names the tool that was asked about; a decision that says
                which call it is for (`name`, `args`) stands where that call was shown
    per call    one decision, by the schema that the interrupt publishes; without one, by the same rules
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match
from langgraph.types import Interrupt
from referencing import Registry
from referencing.exceptions import Unresolvable

from checkpointing.errors import DecisionInvalid

KINDS = ("approve", "edit", "reject", "respond")


def check_answer(interrupt: Interrupt, value: Any) -> None:
    """
    Refuse an answer that the asking node could not take.

    Raises:
        DecisionInvalid: the message says which part of it is wrong.
    """
    asked = interrupt.value
    if isinstance(interrupt.response_schema, dict):
        _check_schema(interrupt.response_schema, value, f"the answer to interrupt {interrupt.id!r}")
    if not isinstance(asked, Mapping):
        return
    if asked.get("type") == "tool_approval" and "tool_call_id" in asked:
        _check_decision(asked, value, allowed=KINDS, what=f"the answer to interrupt {interrupt.id!r}")
    elif isinstance(asked.get("action_requests"), list) and isinstance(asked.get("review_configs"), list):
        _check_batch(asked["action_requests"], asked["review_configs"], value, interrupt.id)


def _check_batch(requests: list[Any], reviews: list[Any], value: Any, interrupt_id: str) -> None:
    decisions = value.get("decisions") if isinstance(value, Mapping) else None
    if not isinstance(decisions, list) or len(decisions) != len(requests):
        raise DecisionInvalid(
            f"the answer to interrupt {interrupt_id!r} is {{'decisions': [...]}} with {len(requests)} decisions, in the order of the calls "
            f"shown: {', '.join(str(request['name']) for request in requests)}"
        )
    for number, (request, review, decision) in enumerate(zip(requests, reviews, decisions, strict=True)):
        what = f"decision {number} of the answer to interrupt {interrupt_id!r}"
        _check_decision(request, decision, allowed=tuple(review["allowed_decisions"]), what=what)


def _check_decision(request: Mapping[str, Any], decision: Any, *, allowed: tuple[str, ...], what: str) -> None:
    kind = decision.get("type") if isinstance(decision, Mapping) else None
    if kind not in allowed:
        raise DecisionInvalid(f"{what}: {request['name']!r} takes {', '.join(allowed)}, not {kind!r}")
    for part in ("name", "args"):
        if part in decision and decision[part] != request[part]:
            raise DecisionInvalid(
                f"{what} is for {decision[part]!r}, and {request[part]!r} was asked about there: the order is that of the calls shown"
            )
    if kind == "edit":
        _check_edit(request, decision.get("edited_action"), what)
    message = decision.get("message")
    if kind == "respond" and not isinstance(message, str):
        raise DecisionInvalid(f"{what}: a respond has the text 'message'")
    if kind == "reject" and not isinstance(message, str | None):
        raise DecisionInvalid(f"{what}: the 'message' of a reject is text")


def _check_edit(request: Mapping[str, Any], edited: Any, what: str) -> None:
    if not isinstance(edited, Mapping) or not isinstance(edited.get("args"), Mapping):
        raise DecisionInvalid(f"{what}: an edit has an 'edited_action' with 'name' and 'args'")
    if edited.get("name") != request["name"]:
        raise DecisionInvalid(
            f"{what}: an edit changes the arguments of {request['name']!r}, it does not make a {edited.get('name')!r} of it"
        )


def _check_schema(schema: dict[str, Any], value: Any, what: str) -> None:
    try:
        # An empty registry: a reference to elsewhere must not be fetched.
        fault = best_match(Draft202012Validator(schema, registry=Registry()).iter_errors(value))
    except (SchemaError, Unresolvable) as error:
        raise DecisionInvalid(f"{what} cannot be checked: {error}") from error
    if fault is not None:
        raise DecisionInvalid(f"{what} does not fit at {fault.json_path}: {fault.message}")
