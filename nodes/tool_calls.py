"""
Which effect a tool call is: the AI message's id and the call's id, and what the model is told of it.

    step = call:{message id}:{call id}

Call ids alone repeat from one message to the next, message ids do not: LangChain makes one where the provider gives none, the model's node has
completed and its message is in the checkpoint before a tool runs, so a re-run of the tools finds the same message. The graph around the agent is
no part of the step: a message handed to another agent is the same decision of the model, and is executed once.

What a recorded call may answer is decided by its place, as for any effect (`checkpointing/slots.py`), and this was chosen, not inherited. A
re-run, a fork that runs the tools again, and an edited past are answered from the record. The same two ids met *later* in the history are no
re-run but a second message under a used id (a scripted model, a server that counts from one at every start); answering it would swallow an
effect, so it is `SlotAmbiguous`. `EffectTools` gives a message whose id is used a new one as it comes from the model.

A fork that runs the *model* again gets another message, hence another slot: only `once=` stops that one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage

from checkpointing import EffectRecord
from checkpointing.digest import JSON

MARK = "counterfoil"
"""The key in a tool message's artifact under which stands what it was made of: `{"key", "state"}`."""


def step_of(message_id: str, call_id: str) -> str:
    """Return the step of a tool call's slot; no node's step looks like it, because a node's name has no colon."""
    return f"call:{quote(message_id, safe='')}:{quote(call_id, safe='')}"


def messages_in(state: object, key: str) -> list[AnyMessage]:
    """Return the messages of a state as a tool node may get it: a list, a mapping or an object."""
    if isinstance(state, list):
        return state
    found = state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)
    return list(found or [])


def find_call(messages: Sequence[AnyMessage], call_id: str) -> tuple[AIMessage, ToolCall] | None:
    """Return the latest message that makes the call, and the call."""
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            for call in message.tool_calls:
                if call["id"] == call_id:
                    return message, call
    return None


def second_in(messages: Sequence[AnyMessage], asked: ToolCall) -> AIMessage | None:
    """Return the message that makes the call, if another of its calls has the same id and stands before this one."""
    found = find_call(messages, asked["id"] or "")
    if found is None:
        return None
    twins = [call for call in found[0].tool_calls if call["id"] == asked["id"]]
    if len(twins) == 1:
        return None
    alike = [number for number, call in enumerate(twins) if call is asked] or [
        number for number, call in enumerate(twins) if (call["name"], call["args"]) == (asked["name"], asked["args"])
    ]
    return found[0] if alike and alike[0] > 0 else None


def answer(name: str, call_id: str, step: str, text: str, *, error: bool, mark: dict[str, JSON] | None) -> ToolMessage:
    """Return what the model is told of a call; its id is the call's own, so that a second answer replaces the first."""
    return ToolMessage(
        content=text,
        id="cf_" + hashlib.sha256(step.encode()).hexdigest()[:32],
        name=name,
        tool_call_id=call_id,
        status="error" if error else "success",
        artifact={MARK: mark} if mark else None,
    )


def outcome(record: EffectRecord, name: str, call_id: str, step: str) -> ToolMessage:
    """Return a settled effect's outcome as the model is told it."""
    declined = record.declined
    text = f"Declined: {declined}" if declined is not None else as_text(record.outcome)
    mark: dict[str, JSON] = {"key": record.key, "state": record.state}
    return answer(name, call_id, step, text, error=declined is not None, mark=mark)


def refused(name: str, call_id: str, step: str, why: str) -> ToolMessage:
    """Return the answer to a call of which nothing happened and nothing is recorded."""
    return answer(name, call_id, step, f"Not executed: {why}", error=True, mark=None)


def as_text(value: Any) -> str:
    """Return an outcome as a message's content: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def mark_of(message: ToolMessage) -> dict[str, Any]:
    """Return what an answer of ours was made of; empty for one that is not ours, or of which nothing is recorded."""
    artifact = message.artifact
    return artifact.get(MARK) or {} if isinstance(artifact, dict) else {}
