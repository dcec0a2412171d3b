"""
Reading a snapshot of LangGraph's: is the turn begun, is it finished, what does it wait for, can this code carry it on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Interrupt, Send, StateSnapshot

from checkpointing.errors import GraphChanged

SCHEDULED = "branch:to:"
"""LangGraph's channel that schedules a node is called this and the node's name."""
SENDS = "__pregel_tasks"


@dataclass(frozen=True, slots=True)
class Standing:
    """
    Where a run stands.

    Attributes:
        begun: The head carries the current turn, so its input has been taken.
        finished: The turn is begun and nothing is left to do.
        broken: Nothing is scheduled and yet something failed: a router raised after its node (langgraph issue 8834).
        interrupts: What it waits for.
        error: The failure of a broken one.
    """

    begun: bool
    finished: bool
    broken: bool
    interrupts: tuple[Interrupt, ...]
    error: str | None


def standing(snapshot: StateSnapshot, *, turn: int) -> Standing:
    """Read where the run of *turn* stands."""
    values = snapshot.values if isinstance(snapshot.values, Mapping) else {}
    begun = values.get("turn") == turn
    errors = [str(task.error) for task in snapshot.tasks if task.error]
    return Standing(
        begun=begun,
        # Not `next == ()`: between a node's writes and the next checkpoint nothing is next, and work is left.
        finished=begun and not snapshot.tasks,
        broken=begun and bool(errors) and not snapshot.next,
        interrupts=snapshot.interrupts,
        error=errors[0] if errors else None,
    )


def output(snapshot: StateSnapshot, keys: str | list[str] | tuple[str, ...]) -> Any:
    """Return what `invoke` returns at this snapshot: the output channels, and `__interrupt__` where it waits."""
    values = snapshot.values if isinstance(snapshot.values, Mapping) else {}
    if isinstance(keys, str):
        return values.get(keys)
    found: dict[str, Any] = {key: values[key] for key in keys if key in values}
    if snapshot.interrupts:
        found["__interrupt__"] = list(snapshot.interrupts)
    return found


def check_nodes_exist(
    compiled: CompiledStateGraph[Any, Any, Any, Any], config: RunnableConfig
) -> None:
    """
    Make sure that every node the head schedules is in this graph.

    LangGraph leaves out a scheduled node it does not know, so that the run looks finished and its decision is dropped.

    Raises:
        GraphChanged: a scheduled node is gone; the run is untouched.
    """
    assert not isinstance(compiled.checkpointer, bool)
    head = compiled.checkpointer.get_tuple(config) if compiled.checkpointer else None
    if head is None:
        return
    values = head.checkpoint["channel_values"]
    scheduled = {
        channel.removeprefix(SCHEDULED) for channel in values if channel.startswith(SCHEDULED)
    }
    scheduled |= {send.node for send in values.get(SENDS, ()) if isinstance(send, Send)}
    if gone := sorted(scheduled - compiled.nodes.keys()):
        raise GraphChanged(
            f"thread {config['configurable']['thread_id']!r} stands at {', '.join(gone)}, which this graph does not have; the run is untouched. "
            "Deploy code that has the node"
        )
