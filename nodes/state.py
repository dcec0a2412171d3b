"""
The state's three channels that make a run durable, and how a node reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from langchain_core.runnables import RunnableConfig
from typing_extensions import TypedDict

READ = "__pregel_read"
"""Where LangGraph 1.2 keeps the function that reads a channel as the superstep found it; pinned by a test."""


def union(recorded: dict[str, Any] | None, added: dict[str, Any] | None) -> dict[str, Any]:
    """Return both mappings as one; the added entries win, so that adding the same again changes nothing."""
    return {**(recorded or {}), **(added or {})}


class DurableState(TypedDict, total=False):
    """
    Derive a durable graph's state from this.

    Channels:
        effects: a receipt for every effect, by its slot's step: `{"key", "effect", "node", "state"}` with the state `succeeded`, `declined`
            or `skipped`. The number of a node's receipts is the number of its visits, so only effect nodes write here.
        approvals: the latest decided record of every approval, by its name; see `Approval.record`.
        turn: which input of the thread this is; written with the input.
    """

    effects: Annotated[dict[str, Any], union]
    approvals: Annotated[dict[str, Any], union]
    turn: int


CHANNELS = frozenset(DurableState.__annotations__)


def read_channel(config: RunnableConfig, channel: str) -> Mapping[str, Any] | None:
    """
    Return a mapping channel's value at the start of this superstep, or `None` if the graph has no such channel.

    From the channel and not from the node's input, because a `Send` and an inner `invoke` hand the node something else than the state.
    """
    read = config["configurable"][READ]
    try:
        return dict(read(channel, False) or {})
    except KeyError:
        return None
