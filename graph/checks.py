"""
What makes a graph unfit to be durable, found before its first run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_core.runnables import RunnableSequence, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.retry import RunnableRetry
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode

from checkpointing.errors import GraphRefused
from graph.policies import check_policies
from nodes.approval import NO_CHANNEL, ApprovalNode
from nodes.effect import EffectNode
from nodes.effect_tools import EffectTool
from nodes.state import CHANNELS

Builder = StateGraph[Any, Any, Any, Any]

POLICIES = ("retry_policy", "cache_policy", "error_handler", "error_handler_node")
"""What LangGraph may put around a node: each would run an effect again, or go on as if it had not been in doubt."""


def check_builder(builder: Builder) -> None:
    """
    Refuse a graph whose run could not be kept.

    Raises:
        GraphRefused: the message names the node or channel and what to change.
    """
    if missing := sorted(CHANNELS - builder.channels.keys()):
        raise GraphRefused(
            f"the state has no channel {', '.join(missing)}: derive it from DurableState; an agent gets it with EffectTools()"
        )
    if "turn" not in builder.schemas[builder.input_schema]:
        raise GraphRefused("the input schema has no channel turn: derive it from DurableState too")
    _check_nodes(builder, path="", policed=False)


def _check_nodes(builder: Builder, *, path: str, policed: bool) -> None:
    """Check every node, *policed* telling whether a graph around this one stands under a policy."""
    check_policies(builder, _tools_of(builder), f"graph {path.rstrip('/')!r}" if path else "the agent")
    asking: dict[str, str] = {}
    defaults = builder._node_defaults  # noqa: SLF001  # there is no public way to read them
    for name, spec in builder.nodes.items():
        where = f"{path}{name}"
        under_policy = policed or any(getattr(held, policy, None) for held in (spec, defaults) for policy in POLICIES)
        for inside, wrapped in _inside(spec.runnable, wrapped=False):
            if isinstance(inside, EffectNode):
                _check_policy(where, under_policy=under_policy or wrapped)
                _check_receipts(builder, inside, where)
            elif isinstance(inside, ToolNode) and _effects_of(inside):
                _check_policy(where, under_policy=under_policy or wrapped)
            elif isinstance(inside, ApprovalNode) and "approvals" not in builder.channels:
                raise GraphRefused(f"node {where!r}: an approval {NO_CHANNEL}")
            elif isinstance(inside, ApprovalNode) and (other := asking.setdefault(str(inside.name), where)) != where:
                raise GraphRefused(
                    f"nodes {other!r} and {where!r} ask under one name, {inside.name!r}: an effect could not tell whose answer it acts under"
                )
            elif isinstance(inside, CompiledStateGraph):
                _check_saver(inside, where)
                _check_nodes(inside.builder, path=f"{where}/", policed=under_policy or wrapped)


def _check_policy(where: str, *, under_policy: bool) -> None:
    if under_policy:
        raise GraphRefused(
            f"node {where!r}: an effect takes no retry or cache policy, error handler, retry or fallback, nor does a graph around it: "
            "its receiver's profile says how it is retried"
        )


def _check_saver(inside: CompiledStateGraph[Any, Any, Any, Any], where: str) -> None:
    """Refuse a subgraph whose effects would be lost sight of: without its own checkpoints an agent asks its model again, and pays again."""
    if inside.checkpointer is not None and inside.checkpointer is not True and _has_effect_tools(inside.builder):
        raise GraphRefused(
            f"node {where!r}: an agent with effects keeps its checkpoints where the graph around it does; make it without a checkpointer"
        )


def _has_effect_tools(builder: Builder) -> bool:
    found = (inside for spec in builder.nodes.values() for inside, _ in _inside(spec.runnable, wrapped=False))
    return any(
        _has_effect_tools(one.builder) if isinstance(one, CompiledStateGraph) else _effects_of(one)
        for one in found
        if isinstance(one, CompiledStateGraph | ToolNode)
    )


def _tools_of(builder: Builder) -> set[str]:
    """Name the tools that the nodes of this graph run, not those of graphs in it."""
    found = (inside for spec in builder.nodes.values() for inside, _ in _inside(spec.runnable, wrapped=False))
    return {name for one in found if isinstance(one, ToolNode) for name in one.tools_by_name}


def _effects_of(node: ToolNode) -> list[EffectTool]:
    return [tool for tool in node.tools_by_name.values() if isinstance(tool, EffectTool)]


def _check_receipts(builder: Builder, node: EffectNode, where: str) -> None:
    if "effects" not in builder.channels and node.effect.once is None:
        raise GraphRefused(
            f"node {where!r}: the effect {node.effect.name!r} stands in a graph whose state has no `effects`: derive that state from "
            "DurableState, or give the effect a business identity with once="
        )


def _inside(runnable: object, *, wrapped: bool) -> Iterator[tuple[object, bool]]:
    """Yield what stands inside LangChain's sequences and bindings, and whether a retry or a fallback stands around it."""
    if isinstance(runnable, EffectNode | ApprovalNode | ToolNode | CompiledStateGraph):
        yield runnable, wrapped
    elif isinstance(runnable, RunnableSequence):
        for step in runnable.steps:
            yield from _inside(step, wrapped=wrapped)
    elif isinstance(runnable, RunnableWithFallbacks):
        for choice in runnable.runnables:
            yield from _inside(choice, wrapped=True)
    elif isinstance(runnable, RunnableBindingBase):
        yield from _inside(runnable.bound, wrapped=wrapped or isinstance(runnable, RunnableRetry))
