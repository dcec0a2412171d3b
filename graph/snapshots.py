"""
Reading a snapshot of LangGraph's: is the turn begun, is it finished, what does it wait for, can this code carry it on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.graph import START
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Interrupt, Send, StateSnapshot

from checkpointing.admissions import Standpoint
from checkpointing.errors import GraphChanged, StoreUnreachable

EDGE = "branch:to:"
"""LangGraph's channel that schedules a node is called this and the node's name; pinned by a test."""
JOIN = "join:"
"""A channel that waits for several nodes is called this, their names, a colon and the node's name."""
SENDS = "__pregel_tasks"

Compiled = CompiledStateGraph[Any, Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Standing:
    """
    Where a run stands.

    Attributes:
        begun: The head carries the current turn, so its input has been taken.
        finished: The turn is begun and nothing is left to do.
        broken: Nothing is scheduled and yet something failed: a router raised after its node.
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


def standpoint(compiled: Compiled, config: RunnableConfig) -> Standpoint:
    """
    Return where the run stands: its head, the step's number as LangGraph gave it, and the nodes that failed in it.

    Where none failed, those are named that had not ended (their worker died), and where all had ended, or nothing can be told, all of them.
    """
    head = _saver(compiled).get_tuple(config)
    if head is None:
        return Standpoint("", None, "")
    number = int(head.metadata.get("step", -1))
    nodes = ", ".join(dict.fromkeys(_unfinished(compiled, head)))
    return Standpoint(str(head.config["configurable"]["checkpoint_id"]), number if number >= 0 else None, nodes)


def _unfinished(compiled: Compiled, head: CheckpointTuple) -> list[str]:
    try:
        tasks = compiled.get_state(head.config).tasks
    except StoreUnreachable:
        raise
    except Exception:  # noqa: BLE001  # a node's input, say, that its schema refuses: what is scheduled can be told all the same
        return sorted(_scheduled(head.checkpoint["channel_values"]))
    left = [task for task in tasks if task.result is None]
    return [task.name for task in [task for task in left if task.error] or left or tasks]


def check_turn(head: CheckpointTuple | None, thread_id: str, *, turn: int, started: bool) -> None:
    """
    Make sure that the head's turn is this one, an earlier one, or none yet.

    Once the run was *started*, a head without a turn is the input's own checkpoint, or one before it. The checkpoint is read, and no snapshot:
    that is made with the graph's reducers and schemas, and where one of them raises, the run could neither be started nor end.

    Raises:
        GraphChanged: somebody wrote into the thread by hand; taken for a new turn it would run again what ran.
    """
    values = head.checkpoint["channel_values"] if head else {}
    found = values.get("turn")
    if found is None:
        source = head.metadata.get("source", "input") if head else "input"
        forged = started and source != "input" and START not in values
    else:
        forged = type(found) is not int or not 0 < found <= turn
    if forged:
        raise GraphChanged(
            f"the head of thread {thread_id!r} carries turn {found!r} and the run is at turn {turn}: somebody wrote into the "
            "thread; the run is untouched"
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


def check_nodes_exist(compiled: Compiled, config: RunnableConfig) -> None:
    """
    Make sure that every node the thread's head schedules is in this graph, and in its subgraphs.

    LangGraph leaves out a scheduled node it does not know, so that the run looks finished and its decision is dropped.

    Raises:
        GraphChanged: a scheduled node is gone; the run is untouched.
    """
    if gone := sorted(_gone(compiled, config)):
        raise GraphChanged(
            f"thread {config['configurable']['thread_id']!r} stands at {', '.join(gone)}, which this graph does not have; "
            "the run is untouched. Deploy code that has the node"
        )


def _gone(compiled: Compiled, config: RunnableConfig) -> Iterator[str]:
    head = _saver(compiled).get_tuple(config)
    if head is None:
        return
    yield from _scheduled(head.checkpoint["channel_values"]) - compiled.nodes.keys()
    if any(True for _ in compiled.get_subgraphs()):
        yield from _gone_inside(compiled, compiled, head.config)


def _gone_inside(root: Compiled, compiled: Compiled, head: RunnableConfig) -> Iterator[str]:
    """
    Look at the head of every subgraph that is at work, however deep it stands; *head* is that of *compiled*, by its checkpoint's id.

    Only so does LangGraph leave out what ended nodes have written since, which may be what no reducer takes.
    """
    inner, saver = dict(compiled.get_subgraphs()), _saver(root)
    try:
        tasks = root.get_state(head).tasks
    except StoreUnreachable:
        raise
    except Exception:  # noqa: BLE001  # whatever makes it unreadable is met again in the attempt, which counts it
        return
    for task in tasks:
        graph = inner.get(task.name)
        below = saver.get_tuple(task.state) if isinstance(task.state, dict) else None
        if not isinstance(graph, CompiledStateGraph) or below is None:
            continue
        gone = _scheduled(below.checkpoint["channel_values"]) - graph.nodes.keys()
        yield from (f"{task.name}/{node}" for node in gone)
        yield from (f"{task.name}/{node}" for node in _gone_inside(root, graph, below.config))


def _saver(compiled: Compiled) -> BaseCheckpointSaver[Any]:
    saver = compiled.checkpointer
    assert saver is not None
    assert not isinstance(saver, bool)
    return saver


def _scheduled(values: Mapping[str, Any]) -> set[str]:
    """Name the nodes that these channels schedule: by an edge, by a join that has begun to fill, by a `Send`."""
    by_edge = {channel.removeprefix(EDGE) for channel in values if channel.startswith(EDGE)}
    by_join = {channel.rpartition(":")[2] for channel in values if channel.startswith(JOIN)}
    by_send = {send.node for send in values.get(SENDS, ()) if isinstance(send, Send)}
    return by_edge | by_join | by_send
