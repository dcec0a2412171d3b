"""
An agent's model is asked once a step: its answer is recorded in the ledger like a model node's, and a re-run reads it there.

The claim is made before the question, so that what it may use of the run's tokens is reserved, and settled with what it did use; a model that
fails gives the reservation back. Asking twice does no harm, so a crash between the two asks again. The slot is LangGraph's task and what was asked,
so that a middleware which asks again in other words gets another answer, and a fork, which has another task, is a new question. The recorded message keeps its id, and with it the slots of the calls it makes.

What comes from the model is made fit first: a message whose id is missing or used already, in the conversation or in the ledger, gets a new one,
and of two calls under one id the second gets another and, where it is an effect's, its refusal.
"""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.runnables import RunnableConfig

from checkpointing import Journal
from checkpointing.budget import Spend
from checkpointing.digest import JSON, canonical
from checkpointing.errors import ArgumentsNotJson
from checkpointing.recorded import recorded
from checkpointing.slots import Slot
from nodes.model import MODEL
from nodes.orphans import Look
from nodes.request import request as ask_ledger
from nodes.tool_calls import refused, step_of
from nodes.unswallowed import unswallowed
from nodes.visit import place, visit
from tools.effect import Effect
from tools.perform import Steps, adrive, drive, perform

Response = ModelResponse[Any]
Estimate = Callable[[ModelRequest[Any]], int]
"""What one question may use of a model's tokens, question and answer."""


ANSWER_TOKENS = 1000
"""What an answer is taken to use where the model has no `max_tokens`."""


class ModelFailed(Exception):
    """The model's own error, on its way out through the ledger's steps."""

    def __init__(self, raised: Exception) -> None:
        """Carry what was *raised*."""
        super().__init__(raised)
        self.raised = raised


class Question:
    """One question to the model, at its place."""

    def __init__(
        self, journal: Journal, config: RunnableConfig, asked: ModelRequest[Any], tokens: Estimate | None = None
    ) -> None:
        """Find out where it is asked; nothing is read or written. *tokens* says what it may use, where a cap asks."""
        self._journal = journal
        self._here = visit(config)
        self._asked = asked
        self._tokens = tokens or estimated_tokens
        step = f"ask:{quote(self._here.task, safe='')}:{_digest(asked)}"
        self._slot = Slot(self._here.thread_id, step, "model")

    def recall(self) -> Response | None:
        """Return the recorded answer, or `None`."""
        found = recorded(self._journal.store, self._slot)
        if found is None or found.state != "settled":
            return None
        return _unpacked(drive(self._steps(lambda **_: found.outcome, [])), self._journal)

    def ask(self, put: Callable[[], Response]) -> Response:
        """
        Have *put* ask the model, and return the answer that counts: this one, unless another process was faster.

        What the model raises comes out as it is. An answer is not read back: a class that the checkpoint cannot import again, made in a function say,
        would come as a plain mapping.
        """
        made: list[tuple[Response, JSON]] = []

        def function(**_: Any) -> JSON:
            with _failing():
                made.append(self._packed(put()))
            return made[0][1]

        with _as_raised(), unswallowed():
            outcome = drive(self._steps(function, made))
        return self._that_counts(outcome, made)

    async def aask(self, put: Callable[[], Awaitable[Response]]) -> Response:
        """As `ask`."""
        made: list[tuple[Response, JSON]] = []

        async def function(**_: Any) -> JSON:
            with _failing():
                made.append(self._packed(await put()))
            return made[0][1]

        with _as_raised(), unswallowed():
            outcome = await adrive(self._steps(function, made), self._journal.bridge)
        return self._that_counts(outcome, made)

    def _steps(self, function: Callable[..., Any], made: list[tuple[Response, JSON]]) -> Steps[JSON]:
        caps = self._here.caps
        effect = Effect(
            name="model",
            receiver=MODEL,
            function=function,
            tokens=(lambda _: self._tokens(self._asked)) if caps and caps.tokens is not None else None,
            spent=lambda _arguments, _outcome: Spend(tokens=_used(made[0][0]) if made else None),
        )
        with place(self._journal, self._here, self._slot.id) as at:
            asked = ask_ledger(effect, self._slot, at, {})
            record = yield from perform(self._journal.effects, effect, asked)
        outcome: JSON = record.outcome
        return outcome

    def _packed(self, response: Response) -> tuple[Response, JSON]:
        return response, _packed(response, self._journal)

    def _that_counts(self, outcome: JSON, made: list[tuple[Response, JSON]]) -> Response:
        return made[0][0] if made and made[0][1] == outcome else _unpacked(outcome, self._journal)


def estimated_tokens(asked: ModelRequest[Any]) -> int:
    """Return what a question may use: its words, about four characters a token, and the longest answer the model gives, or `ANSWER_TOKENS`."""
    shown = [asked.system_message, *asked.messages] if asked.system_message else asked.messages
    longest = getattr(asked.model, "max_tokens", None)
    return count_tokens_approximately(shown) + (longest if isinstance(longest, int) else ANSWER_TOKENS)


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


@contextmanager
def _failing() -> Iterator[None]:
    """Mark what the block raises as the model's own: none of it is a word about an effect."""
    try:
        yield
    except Exception as raised:
        raise ModelFailed(raised) from raised


@contextmanager
def _as_raised() -> Iterator[None]:
    """Raise the model's own errors as they came, for the middlewares that are there for them."""
    try:
        yield
    except ModelFailed as failed:
        raise failed.raised from failed.raised.__cause__


def _used(response: Response) -> int | None:
    """Return the tokens that the answer's messages say they used, or `None` if none of them says."""
    told = [one.usage_metadata for one in response.result if isinstance(one, AIMessage) and one.usage_metadata]
    return sum(usage["total_tokens"] for usage in told) if told else None


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
