"""What a run that cannot go on leaves for people: why it ended, where it stands, and what it takes to go on from there."""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
from langgraph.errors import InvalidUpdateError
from langgraph.graph import END, START, StateGraph
from langgraph.types import RetryPolicy
from pydantic import BaseModel

from checkpointing import Journal
from checkpointing.errors import EffectConflict, NotRetryable, RunDead
from checkpointing.leases import thread_lease
from graph import DurableGraph, DurableState, durable, thread
from graph.timeline import timeline
from nodes import effect_node
from tests.support.bank import Bank
from tools import Rejected

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


def until_dead(
    graph: DurableGraph, *, calls: int = 9, error: type[Exception] | tuple[type[Exception], ...] = Exception
) -> int:
    """Call until the run is a dead letter, and return how many calls that took."""
    for call in range(1, calls + 1):
        with pytest.raises(error):
            graph.invoke({"claim_id": "1", "amount": 5}, THREAD)
        if graph.journal.runs.get(ID).state == "dead":
            return call
    raise AssertionError(f"not dead after {calls} calls")


class Strict(BaseModel):
    amount: int


@pytest.mark.parametrize("inside", [False, True], ids=["in the graph", "in a subgraph"])
def test_what_the_next_node_does_not_take_ends_as_a_dead_letter(journal: Journal, inside: bool) -> None:
    """A schema refuses the node's input wherever LangGraph looks at the thread."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("first", lambda state: {"amount": "five"})
    builder.add_node("strict", lambda state: {}, input_schema=Strict)
    builder.add_edge(START, "first")
    builder.add_edge("first", "strict")
    graph = chain(journal, sub=builder.compile()) if inside else durable(builder, journal, attempts=2)

    assert until_dead(graph, error=ValueError) == 2
    run = journal.runs.get(ID)
    assert (run.reason, run.attempts, run.dead_nodes) == ("attempts", 2, "sub" if inside else "strict")


@pytest.mark.parametrize("inside", [False, True], ids=["in the graph", "in a subgraph"])
def test_what_no_reducer_takes_ends_as_a_dead_letter(journal: Journal, inside: bool) -> None:
    """The node's writes are kept, so every look at the thread's newest state meets the reducer again."""
    nodes: dict[str, Any] = {"first": lambda state: {"amount": 6}, "bad": lambda state: {"total": "much"}}
    graph = chain(journal, sub=built(**nodes).compile()) if inside else chain(journal, **nodes)

    assert until_dead(graph, error=TypeError) == 2
    run = journal.runs.get(ID)
    assert (run.reason, run.attempts) == ("attempts", 2)
    journal.runs.redrive(ID, principal="operator-3")
    assert until_dead(graph, error=TypeError) == 2
    with pytest.raises(RunDead, match="unsupported operand"):
        graph.invoke(None, THREAD)


# --- where it stands -------------------------------------------------------------------------------------------------


class Doomed(NotRetryable):
    pass


def raises(error: Exception) -> Callable[[Any], dict[str, Any]]:
    def node(state: State) -> dict[str, Any]:
        raise error

    return node


def step(state: State) -> dict[str, Any]:
    return {"amount": state["amount"] + 1}


def standing_at(graph: DurableGraph) -> tuple[int, str, str]:
    """The step, nodes and checkpoint of the timeline's last step: what the dead letter is to say."""
    at = timeline(graph, ID).standing
    assert at is not None
    return at.number, ", ".join(at.nodes), at.checkpoint_id


def test_attempts_that_are_used_up_leave_where_and_how_often(journal: Journal) -> None:
    graph = chain(journal, attempts=3, one=step, two=step, poison=raises(ValueError("poison\nwith details")))

    assert until_dead(graph, error=ValueError) == 3
    run = journal.runs.get(ID)
    assert (run.reason, run.error, run.attempts, run.due_at) == ("attempts", "ValueError: poison", 3, None)
    assert (run.dead_step, run.dead_nodes, run.head) == standing_at(graph) == (2, "poison", run.head)
    body = journal.audit.entries(ID)[-1].body
    assert body == {
        "reason": "attempts",
        "error": "ValueError: poison",
        "head": run.head,
        "step": 2,
        "nodes": "poison",
        "refund": 0,
    }


def test_an_attempt_that_got_further_is_not_the_last(journal: Journal) -> None:
    """With two attempts a checkpoint, a run that fails at each of its nodes once goes on to its end."""
    failed: set[str] = set()

    def fails_once(name: str) -> Callable[[Any], dict[str, Any]]:
        def node(state: State) -> dict[str, Any]:
            if name not in failed:
                failed.add(name)
                raise ValueError(name)
            return step(state)

        return node

    graph = chain(journal, attempts=2, one=fails_once("one"), two=fails_once("two"), three=fails_once("three"))
    for _ in range(3):
        with pytest.raises(ValueError, match=r"one|two|three"):
            graph.invoke({"claim_id": "1", "amount": 5}, THREAD)

    assert graph.invoke(None, THREAD)["amount"] == 8


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (NotRetryable("no such policy"), "not_retryable"),
        (Doomed("no such policy"), "doomed"),
        (Rejected("no such payee"), "rejected"),
        (InvalidUpdateError("not a dict"), "invalid_update_error"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value,
)
def test_what_would_only_fail_again_is_dead_at_once(journal: Journal, error: Exception, reason: str) -> None:
    graph = chain(journal, attempts=5, one=step, two=raises(error))

    assert until_dead(graph, error=type(error)) == 1
    run = journal.runs.get(ID)
    assert (run.reason, run.error, run.attempts) == (reason, f"{type(error).__name__}: {error}", 1)
    assert (run.dead_step, run.dead_nodes, run.head) == standing_at(graph)


def test_a_nodes_retry_policy_does_not_try_again_what_is_not_retryable(journal: Journal) -> None:
    calls = []

    def node(state: State) -> dict[str, Any]:
        calls.append(1)
        raise Doomed

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("node", node, retry_policy=RetryPolicy(initial_interval=0.01, max_attempts=3))
    builder.add_edge(START, "node")

    assert until_dead(durable(builder, journal), error=Doomed) == 1
    assert calls == [1]


def test_a_router_that_raises_is_a_dead_letter_at_its_node(journal: Journal) -> None:
    def router(state: State) -> str:
        raise LookupError("no such branch")

    builder = built(one=step, two=step)
    builder.add_conditional_edges("two", router, ["one", END])
    graph = durable(builder, journal, attempts=2)

    until_dead(graph, error=(LookupError, RunDead))
    run = journal.runs.get(ID)
    assert (run.reason, run.dead_step, run.dead_nodes) == ("router", 1, "two")
    assert "no such branch" in str(run.error)


def test_only_the_siblings_that_failed_are_named(journal: Journal) -> None:
    builder = built(one=step)
    sides: list[Any] = [lambda state: {}, raises(ValueError("x")), lambda state: {"total": 1}]
    for number, node in enumerate(sides):
        builder.add_node(f"side-{number}", node)
        builder.add_edge("one", f"side-{number}")
    graph = durable(builder, journal, attempts=1)

    until_dead(graph, error=ValueError)
    run = journal.runs.get(ID)
    assert (run.dead_step, run.dead_nodes) == (1, "side-1")


def test_a_run_that_dies_before_its_first_step_stands_in_none(journal: Journal) -> None:
    graph = chain(journal, one=step)
    graph.submit({"claim_id": "1", "amount": 5}, THREAD)
    for _ in range(2):
        died_under(journal, head="")

    with pytest.raises(RunDead, match="its workers died"):
        graph.invoke(None, THREAD)
    run = journal.runs.get(ID)
    assert (run.reason, run.attempts, run.dead_step, run.dead_nodes, run.head) == ("attempts", 2, None, "", "")


def died_under(journal: Journal, *, head: str) -> None:
    """Be a worker that begins the run and is gone; its lease is over."""
    lease = journal.leases.take(thread_lease(ID))
    journal.runs.start(lease, ID, head=head)
    journal.leases.give_back(lease)


def test_an_effect_in_other_words_is_a_dead_letter_at_its_node(journal: Journal, tmp_path: Path) -> None:
    bank = Bank(tmp_path / "bank")

    def graph(amount: int) -> DurableGraph:
        pay = effect_node(
            bank.effect(once=lambda a: a["claim_id"]),
            journal,
            arguments=lambda s: {"claim_id": s["claim_id"], "amount": amount},
        )
        return chain(journal, one=step, pay=pay)

    graph(5).invoke({"claim_id": "1", "amount": 5}, thread("first"))
    assert until_dead(graph(6), error=EffectConflict) == 1
    run = journal.runs.get(ID)
    assert (run.reason, run.dead_step, run.dead_nodes, len(bank.calls)) == ("effect_conflict", 1, "pay", 1)
