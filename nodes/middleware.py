"""
Effects in LangChain's agents: the middleware for `create_agent`, and a tool node for a graph of one's own.

    agent = create_agent(model, middleware=[EffectTools(journal, [pay, remind])])
    graph = durable(agent, journal)

The effects are tools of the middleware and not of the agent: nothing else may run them. The state gains the channels that a durable graph has.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Annotated, Any, NotRequired

from langchain.agents import AgentState
from langchain.agents.middleware import AgentMiddleware, ModelRequest
from langchain.agents.middleware.types import OmitFromOutput, ToolCallRequest
from langchain_core.messages import AIMessage, RemoveMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.config import get_config
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.prebuilt import ToolNode
from langgraph.runtime import Runtime
from langgraph.types import Command

from checkpointing import EffectRecord, Journal
from checkpointing.errors import UnknownEffect
from nodes.effect_tools import EffectTool, effect_tools, is_kept
from nodes.orphans import Look, answered, truthful
from nodes.recorded_model import Estimate, Question, Response, fit
from nodes.state import union
from nodes.tool_calls import messages_in, refused, second_in, step_of
from nodes.unswallowed import unswallowed
from nodes.visit import is_executed_apart
from tools.effect import Effect

Answer = ToolMessage | Command[Any]


class EffectAgentState(AgentState[Any]):
    """An agent's state with the channels of `DurableState`; none of them goes out, where a graph around it has its own."""

    effects: NotRequired[Annotated[dict[str, Any], OmitFromOutput, union]]
    approvals: NotRequired[Annotated[dict[str, Any], OmitFromOutput, union]]
    turn: NotRequired[Annotated[int, OmitFromOutput]]


class EffectTools(AgentMiddleware[EffectAgentState, Any, Any]):
    """
    Gives an agent effects as tools, each executed once a call.

    Attributes:
        tools: The effects, as tools.
    """

    state_schema = EffectAgentState

    def __init__(
        self,
        journal: Journal,
        effects: Iterable[Effect],
        *,
        record_model: bool = True,
        tokens: Estimate | None = None,
    ) -> None:
        """
        Make tools of *effects*, recorded in *journal*.

        Args:
            journal: where effects, and the model's answers, are recorded.
            effects: what `@effect` made.
            record_model: record what the model answers, so that a re-run does not ask it again. Middlewares listed after this one are then
                a part of the question and are not run again either.
            tokens: what one question may use, question and answer, as it is reserved under a cap on tokens; by default its length and the longest
                answer the model gives, or 1,000 tokens. What a recorded question did use is what its answer says.

        Raises:
            TypeError: one of them is a plain function, or takes an argument that a tool cannot have.
        """
        super().__init__()
        self.journal = journal
        self.record_model = record_model
        self._tokens = tokens
        self.tools = effect_tools(journal, effects)
        self._tools = {tool.name: tool for tool in self.tools}
        self._names = frozenset(self._tools)

    def before_agent(self, state: EffectAgentState, runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ARG002  # LangChain's own
        """Answer the calls that an earlier turn left without one."""
        return self._repaired(state, get_config())

    async def abefore_agent(self, state: EffectAgentState, runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ARG002
        """As `before_agent`."""
        return await self.journal.bridge.run(self._repaired, state, get_config())

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Response]) -> Response:
        """Ask the model once, about a conversation in which every effect's answer is what the ledger has."""
        config = get_config()
        mended, question, found = self._before(request, config)
        if found is not None:
            return found

        def ask() -> Response:
            return self._fitted(request, config, handler(mended))

        return question.ask(ask) if question else ask()

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[Response]]
    ) -> Response:
        """As `wrap_model_call`."""
        run = self.journal.bridge.run
        config = get_config()
        mended, question, found = await run(self._before, request, config)
        if found is not None:
            return found

        async def ask() -> Response:
            return await run(self._fitted, request, config, await handler(mended))

        return await (question.aask(ask) if question else ask())

    def _before(
        self, request: ModelRequest[Any], config: RunnableConfig
    ) -> tuple[ModelRequest[Any], Question | None, Response | None]:
        """Return the question as it is to be put, what records it, and the recorded answer if there is one."""
        if not is_kept(config):
            return request, None, None
        with unswallowed():
            look = self._look(config, EffectTool.claimed_by)
            told = truthful(request.messages, self._names, look, self._now, partial(is_executed_apart, self.journal))
            told = answered(told, self._names, self._look(config, EffectTool.known))
            request = request.override(messages=told)
            question = Question(self.journal, config, request, self._tokens) if self.record_model else None
            return request, question, question.recall() if question else None

    def _fitted(self, request: ModelRequest[Any], config: RunnableConfig, response: Response) -> Response:
        look: Look = self._look(config, EffectTool.claimed_by) if is_kept(config) else lambda _message, _call: None
        with unswallowed():
            return fit(response, messages_in(request.state, "messages"), self._names, look)

    def _repaired(self, state: EffectAgentState, config: RunnableConfig) -> dict[str, Any] | None:
        messages = messages_in(state, "messages")
        if not is_kept(config):
            return None
        found = answered(messages, self._names, self._look(config, EffectTool.known))
        return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *found]} if len(found) > len(messages) else None

    def _look(
        self, config: RunnableConfig, read: Callable[[EffectTool, str, AIMessage, ToolCall], EffectRecord | None]
    ) -> Look:
        thread_id = str(config["configurable"]["thread_id"])
        return lambda message, call: read(self._tools[call["name"]], thread_id, message, call)

    def _now(self, key: str) -> EffectRecord | None:
        """Return the effect that had *key* as it is now, under whatever key it was reissued."""
        try:
            record = self.journal.effects.get(key)
            while record.reissued_as is not None:
                record = self.journal.effects.get(record.reissued_as)
        except UnknownEffect:  # another journal's, or its slot was freed and claimed with another request
            return None
        return record

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Answer]) -> Answer:
        """Run the call, unless its message made another under the same id before it."""
        return second_refused(request) or handler(request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answer]]
    ) -> Answer:
        """As `wrap_tool_call`."""
        return second_refused(request) or await handler(request)


def effect_tool_node(
    journal: Journal,
    effects: Iterable[Effect],
    *,
    tools: Iterable[BaseTool | Callable[..., Any]] = (),
    messages_key: str = "messages",
    **options: Any,
) -> ToolNode:
    """
    Return LangGraph's tool node with *effects* among its *tools*; *options* are those of `ToolNode`.

    No setting of `handle_tool_errors` gets an effect's doubt: only what is the model's to hear becomes a message.
    """
    made = effect_tools(journal, effects, messages_key=messages_key)

    def wrap(request: ToolCallRequest, handler: Callable[[ToolCallRequest], Answer]) -> Answer:
        return second_refused(request) or handler(request)

    async def awrap(request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answer]]) -> Answer:
        return second_refused(request) or await handler(request)

    return ToolNode([*made, *tools], messages_key=messages_key, wrap_tool_call=wrap, awrap_tool_call=awrap, **options)


def second_refused(request: ToolCallRequest) -> ToolMessage | None:
    """Return the answer to a call of an effect whose id is another's in the same message, or `None`."""
    if not isinstance(request.tool, EffectTool):
        return None
    call = request.tool_call
    message = second_in(messages_in(request.state, request.tool.messages_key), call)
    if message is None:
        return None
    call_id = str(call["id"])
    # An id of its own for the answer: the first call's answer is told under the call's.
    step = step_of(f"{message.id}", f"{call_id}#2")
    return refused(call["name"], call_id, step, f"the message has two calls with the id {call_id!r}")
