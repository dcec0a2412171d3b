"""
An agent's model is asked once a step: its answer is recorded in the ledger like a model node's, and a re-run reads it there.

The record is made after the answer, not before the question, because asking twice does no harm: a crash before the record asks again, one after it
does not. The slot is LangGraph's task and what was asked, so that a middleware which asks again in other words gets another answer, and a fork, which
has another task, is a new question. The recorded message keeps its id, and with it the slots of the calls it makes.

What comes from the model is made fit first: a message whose id is missing or used already, in the conversation or in the ledger, gets a new one,
and of two calls under one id the second gets another and, where it is an effect's, its refusal.
"""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    ToolCall,
    ToolMessage,
    messages_from_dict,
    messages_to_dict,
)
from langchain_core.runnables import RunnableConfig

from checkpointing import Journal
from checkpointing.digest import JSON, canonical
from checkpointing.errors import ArgumentsNotJson
from checkpointing.recorded import recorded
from checkpointing.slots import Slot
from nodes.model import MODEL
from nodes.orphans import Look
from nodes.request import request as ask_ledger
from nodes.tool_calls import refused, step_of
from nodes.visit import place, visit
from tools.effect import Effect
from tools.perform import drive, perform

Response = ModelResponse[Any]


class Question:
    """One question to the model, at its place."""

    def __init__(self, journal: Journal, config: RunnableConfig, asked: ModelRequest[Any]) -> None:
        """Find out where it is asked; nothing is read or written."""
        self._journal = journal
        self._here = visit(config)
        step = f"ask:{quote(self._here.task, safe='')}:{_digest(asked)}"
        self._slot = Slot(self._here.thread_id, step, "model")

    def recall(self) -> Response | None:
        """Return the recorded answer, or `None`."""
        found = recorded(self._journal.store, self._slot)
        if found is None or found.state != "settled":
            return None
        return _unpacked(self._record(found.outcome), self._journal)

    def keep(self, response: Response) -> Response:
        """
        Record *response* and return the answer that counts: this one, unless another process was faster.

        It is not read back: a class that the checkpoint cannot import again, made in a function say, would come as a plain mapping.
        """
        packed = _packed(response, self._journal)
        counts = self._record(packed)
        return response if counts == packed else _unpacked(counts, self._journal)

    def _record(self, answer: JSON) -> JSON:
        effect = Effect(name="model", receiver=MODEL, function=lambda **_: answer)
        with place(self._journal, self._here, self._slot.id) as at:
            asked = ask_ledger(effect, self._slot, at, {})
            outcome: JSON = drive(perform(self._journal.effects, effect, asked)).outcome
            return outcome


def fit(response: Response, before: Sequence[AnyMessage], effects: frozenset[str], look: Look) -> Response:
    """
    Return the model's answer with ids that name one message and one call each.

    A conversation that was trimmed does not show every id that was used; the ledger, asked by *look*, has those that claimed an effect.
    """
    result: list[BaseMessage] = []
    used = {message.id for message in before}
    for message in response.result:
        if not isinstance(message, AIMessage):
            result.append(message)
            continue
        calls: list[ToolCall] = []
        refusals: list[ToolMessage] = []
        claimed = any(call["name"] in effects and look(message, call) for call in message.tool_calls if message.id)
        message_id = message.id if message.id and message.id not in used and not claimed else f"cf_{uuid.uuid4().hex}"
        for call in message.tool_calls:
            second = any(other["id"] == call["id"] for other in calls)
            named = call if call["id"] and not second else ToolCall({**call, "id": f"call_{uuid.uuid4().hex}"})
            calls.append(named)
            if second and call["name"] in effects:
                new_id = str(named["id"])
                why = f"the message has two calls with the id {call['id']!r}; call it again under an id of its own"
                refusals.append(refused(call["name"], new_id, step_of(message_id, new_id), why))
        result += [message.model_copy(update={"id": message_id, "tool_calls": calls}), *refusals]
    return ModelResponse(result=result, structured_response=response.structured_response)


def _digest(asked: ModelRequest[Any]) -> str:
    """Return the digest of who is asked what: a re-run reads the same messages from the checkpoint. Ids and artifacts are not sent."""
    shown = [asked.system_message, *asked.messages] if asked.system_message else asked.messages
    model = getattr(asked.model, "model_name", None) or getattr(asked.model, "model", None)
    hashed = hashlib.sha256(f"{type(asked.model).__name__} {model}".encode())
    for message in shown:
        text = message.model_dump_json(exclude={"id", "artifact"}, fallback=str)
        hashed.update(text.encode("utf-8", "surrogatepass"))
    return hashed.hexdigest()[:16]


def _packed(response: Response, journal: Journal) -> JSON:
    """Return the answer as JSON: messages as LangChain writes them, or where that loses something, as the checkpoint would hold them."""
    messages = messages_to_dict(response.result)
    try:
        canonical(messages)
        if response.structured_response is None and messages_from_dict(messages) == response.result:
            return {"messages": messages}  # type: ignore[dict-item]  # `canonical` has just seen that it is JSON
    except ArgumentsNotJson:
        pass
    kind, content = journal.saver.serde.dumps_typed([response.result, response.structured_response])
    return {"kind": kind, "content": base64.b64encode(content).decode()}


def _unpacked(answer: Any, journal: Journal) -> Response:
    assert isinstance(answer, Mapping)
    if "messages" in answer:
        return ModelResponse(result=messages_from_dict(answer["messages"]))
    loaded = journal.saver.serde.loads_typed((answer["kind"], base64.b64decode(answer["content"])))
    return ModelResponse(result=loaded[0], structured_response=loaded[1])
