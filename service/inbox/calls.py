"""
Questions of graphs that are not ours: an agent's tool calls, each with its own decision, and whatever else an `interrupt()` asks.

    tool calls       LangChain's `HumanInTheLoopMiddleware`, batched or one by one: a decision a call, of the kinds that it takes
    anything else    one answer, as text or as JSON

What comes of the form is the answer in the form that its node takes; it says of every call which one it is for. It is checked before it is recorded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from checkpointing import Approval
from graph.answers import is_batch, is_call, kinds_in
from graph.batches import KINDS
from service.inbox import words

LABELS = {
    "approve": "Let it do this",
    "edit": "Let it do this, with other arguments",
    "reject": "Do not let it",
    "respond": "Do not let it, and answer instead",
}


@dataclass(frozen=True, slots=True)
class Call:
    """
    A tool call that somebody is asked about, and what was typed about it.

    Attributes:
        field: How its inputs' names begin.
        args: As the tool would get them.
        facts: The same as labels and texts.
        allowed: The kinds of decision it takes, with what each is called.
        kind: The one that was chosen; empty before.
        changed: Other arguments, as JSON.
        error: What is wrong with what was typed.
    """

    field: str
    name: str
    args: Any
    facts: Sequence[tuple[str, str]]
    about: str
    allowed: Sequence[tuple[str, str]]
    kind: str = ""
    message: str = ""
    changed: str = ""
    error: str = ""


def calls_of(approval: Approval) -> list[Call]:
    """Return the tool calls that the approval asks about; none where it asks something else."""
    payload = approval.payload
    if approval.interrupt_id is None:
        return []
    if is_call(payload):
        return [_call(0, payload, kinds_in(approval.edits))]
    if not is_batch(payload):
        return []
    reviews = {one.get("action_name"): one for one in payload["review_configs"] if isinstance(one, Mapping)}
    return [
        _call(number, one, reviews.get(one.get("name"), {}).get("allowed_decisions", KINDS))
        for number, one in enumerate(payload["action_requests"])
        if isinstance(one, Mapping)
    ]


def answer_to(approval: Approval, given: Mapping[str, str]) -> tuple[Any, list[Call], str]:
    """Return the answer that was typed, the calls with what was typed about them, and what is wrong; empty if nothing is."""
    calls = [_typed(one, given) for one in calls_of(approval)]
    if not calls:
        return _free(given)
    if any(one.error for one in calls):
        return None, calls, "Say for every call what is to become of it."
    decisions = [_decision(one) for one in calls]
    if is_call(approval.payload):
        return decisions[0], calls, ""
    echoed = [{"name": one.name, "args": one.args, **decision} for one, decision in zip(calls, decisions, strict=True)]
    return {"decisions": echoed}, calls, ""


def _call(number: int, shown: Mapping[str, Any], allowed: Sequence[str]) -> Call:
    args = shown.get("args")
    kinds = [(kind, LABELS[kind]) for kind in KINDS if kind in allowed]
    changed = json.dumps(args, ensure_ascii=False, indent=1)
    about = words.value(shown.get("description") or "")
    return Call(f"call.{number}", str(shown.get("name")), args, words.facts(args), about, kinds, changed=changed)


def _typed(call: Call, given: Mapping[str, str]) -> Call:
    kind, message = given.get(call.field, ""), given.get(f"{call.field}.message", "").replace("\r\n", "\n").strip()
    changed, error = given.get(f"{call.field}.args", call.changed), ""
    if kind not in dict(call.allowed):
        error = "Choose what is to become of it."
    elif kind == "edit" and _mapping(changed) is None:
        error = "The arguments are a JSON object, as they stood there before."
    elif kind == "respond" and not message:
        error = "Write what it is to be told."
    return replace(call, kind=kind, message=message, changed=changed, error=error)


def _decision(call: Call) -> dict[str, Any]:
    match call.kind:
        case "edit":
            return {"type": "edit", "edited_action": {"name": call.name, "args": _mapping(call.changed)}}
        case "reject" | "respond" if call.message:
            return {"type": call.kind, "message": call.message}
        case _:
            return {"type": call.kind}


def _mapping(typed: str) -> dict[str, Any] | None:
    try:
        found = json.loads(typed)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _free(given: Mapping[str, str]) -> tuple[Any, list[Call], str]:
    typed = given.get("answer", "").replace("\r\n", "\n")
    if given.get("answer_as") != "json":
        return typed, [], "" if typed.strip() else "Write an answer."
    try:
        return json.loads(typed), [], ""
    except (ValueError, RecursionError):
        return None, [], "This is no JSON. Send it as text, or write it as JSON."
