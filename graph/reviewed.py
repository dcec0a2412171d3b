"""
Which tool calls an interrupt of LangChain's `HumanInTheLoopMiddleware` is about, by the state of the graph that asks.
"""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AIMessage, ToolCall
from langgraph.types import StateSnapshot

from nodes.tool_calls import messages_in


def calls_under_review(snapshot: StateSnapshot, interrupt_id: str) -> Sequence[ToolCall]:
    """
    Return the calls of the message that waits for the answer to an interrupt, in order; none where no message is found.

    It is the last one the model wrote in the state of the graph that asks, which may stand in another: *snapshot* has its subgraphs' too.
    """
    for task in snapshot.tasks:
        if interrupt_id not in {interrupt.id for interrupt in task.interrupts}:
            continue
        if isinstance(task.state, StateSnapshot):
            return calls_under_review(task.state, interrupt_id)
        if task.state is not None:  # a subgraph that cannot be looked into
            return ()
        said = (one for one in reversed(messages_in(snapshot.values, "messages")) if isinstance(one, AIMessage))
        last = next(said, None)
        return last.tool_calls if last else ()
    return ()
