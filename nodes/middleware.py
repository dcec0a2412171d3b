"""
Effects in LangChain's agents: the middleware for `create_agent`, and a tool node for a graph of one's own.

    agent = create_agent(model, middleware=[EffectTools(journal, [pay, remind])])
    graph = durable(agent, journal)

The effects are tools of the middleware and not of the agent: nothing else may run them. The state gains the channels that a durable graph has.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Annotated, Any, NotRequired

from langchain.agents import AgentState
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import OmitFromOutput, ToolCallRequest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

from checkpointing import Journal
from nodes.effect_tools import EffectTool, effect_tools
from nodes.state import union
from nodes.tool_calls import is_second, messages_in, refused, step_of
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

    def __init__(self, journal: Journal, effects: Iterable[Effect]) -> None:
        """
        Make tools of *effects*, recorded in *journal*.

        Raises:
            TypeError: one of them is a plain function, or takes an argument that a tool cannot have.
        """
        super().__init__()
        self.journal = journal
        self.tools = effect_tools(journal, effects)

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
    if not is_second(messages_in(request.state, request.tool.messages_key), call):
        return None
    call_id = str(call["id"])
    return refused(
        call["name"], call_id, step_of("second", call_id), f"the message has two calls with the id {call_id!r}"
    )
