"""
What makes a graph unfit to be durable, found before its first run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph

from checkpointing.errors import GraphRefused
from nodes.effect import effect_of
from nodes.state import CHANNELS


def check_builder(builder: StateGraph[Any, Any, Any, Any]) -> None:
    """
    Refuse a graph whose run could not be kept.

    Raises:
        GraphRefused: the message names the node or channel and what to change.
    """
    if missing := sorted(CHANNELS - builder.channels.keys()):
        raise GraphRefused(f"the state has no channel {', '.join(missing)}: derive it from DurableState")
    if "turn" not in builder.schemas[builder.input_schema]:
        raise GraphRefused("the input schema has no channel turn: derive it from DurableState too")
    _check_nodes(builder, path="", receipts=True)


def _check_nodes(builder: StateGraph[Any, Any, Any, Any], *, path: str, receipts: bool) -> None:
    for name, spec in builder.nodes.items():
        where = f"{path}{name}"
        effect = effect_of(spec.runnable)
        if effect is not None:
            if spec.retry_policy or spec.cache_policy:
                raise GraphRefused(
                    f"node {where!r}: an effect has no retry or cache policy; its receiver's profile says how it is retried"
                )
            if not receipts and effect.once is None:
                raise GraphRefused(
                    f"node {where!r}: the effect {effect.name!r} stands in a subgraph whose state has no `effects`: derive that state from "
                    "DurableState, or give the effect a business identity with once="
                )
        for inner in _subgraphs(spec.runnable):
            _check_nodes(inner.builder, path=f"{where}/", receipts="effects" in inner.builder.channels)


def _subgraphs(runnable: object) -> Iterator[CompiledStateGraph[Any, Any, Any, Any]]:
    if isinstance(runnable, CompiledStateGraph):
        yield runnable
