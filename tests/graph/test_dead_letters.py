"""What a run that cannot go on leaves for people: why it ended, where it stands, and what it takes to go on from there."""

from __future__ import annotations

import operator
from typing import Annotated, Any

import pytest
from langgraph.graph import START, StateGraph

from checkpointing import Journal
from checkpointing.errors import RunDead
from graph import DurableGraph, DurableState, durable, thread

THREAD = thread("claim-0042")
ID = "claim-0042"


class State(DurableState):
    claim_id: str
    amount: int
    total: Annotated[int, operator.add]


def chain(journal: Journal, *, attempts: int = 2, **nodes: Any) -> DurableGraph:
    """A graph of these nodes, one after the other."""
    return durable(built(**nodes), journal, attempts=attempts)


def built(**nodes: Any) -> StateGraph[Any, Any, Any, Any]:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for name, node in nodes.items():
        builder.add_node(name, node)
    for one, other in zip((START, *nodes), nodes, strict=False):
        builder.add_edge(one, other)
    return builder


def until_dead(graph: DurableGraph, *, calls: int = 9, error: type[Exception] = Exception) -> int:
    """Call until the run is a dead letter, and return how many calls that took."""
    for call in range(1, calls + 1):
        with pytest.raises(error):
            graph.invoke({"claim_id": "1", "amount": 5}, THREAD)
        if graph.journal.runs.get(ID).state == "dead":
            return call
    raise AssertionError(f"not dead after {calls} calls")


@pytest.mark.parametrize("inside", [False, True], ids=["in the graph", "in a subgraph"])
def test_what_no_reducer_takes_ends_as_a_dead_letter(journal: Journal, inside: bool) -> None:
    """The node's writes are kept, so every look at the thread's newest state meets the reducer again."""
    nodes: dict[str, Any] = {"first": lambda state: {"amount": 6}, "bad": lambda state: {"total": "much"}}
    graph = chain(journal, sub=built(**nodes).compile()) if inside else chain(journal, **nodes)

    assert until_dead(graph, error=TypeError) == 3
    run = journal.runs.get(ID)
    assert (run.reason, run.attempts) == ("attempts", 2)
    journal.runs.redrive(ID, principal="operator-3")
    assert until_dead(graph, error=TypeError) == 2
    with pytest.raises(RunDead, match="unsupported operand"):
        graph.invoke(None, THREAD)
