"""What our code reads inside LangGraph, with no promise that it stays: an upgrade that changes it turns a test red."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Send, interrupt
from typing_extensions import TypedDict

from nodes.state import READ
from nodes.visit import PUSH

THREAD: RunnableConfig = {"configurable": {"thread_id": "1"}}


class State(TypedDict, total=False):
    amount: int
    answers: list[Any]


def compiled(saver: InMemorySaver, *edges: tuple[str, str], **nodes: Any) -> Any:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for name, node in nodes.items():
        builder.add_node(name, node)
    for one, other in edges:
        builder.add_edge(one, other)
    return builder.compile(checkpointer=saver)


def test_a_node_finds_its_place_in_its_config() -> None:
    seen: list[Any] = []

    def node(state: State, config: RunnableConfig) -> dict[str, Any]:
        seen.append((config["configurable"], config["metadata"]["langgraph_path"]))
        return {}

    graph = compiled(InMemorySaver(), (START, "node"), node=RunnableLambda(node))
    graph.invoke({"amount": 5}, {"configurable": {"thread_id": "1", "__ours": object()}})
    [(configurable, path)] = seen

    assert configurable["checkpoint_ns"].startswith("node:")
    assert set(configurable["checkpoint_map"]) == {""}
    assert configurable[READ]("amount", False) == 5
    assert "__ours" in configurable
    assert path == ("__pregel_pull", "node")


def test_a_sent_node_is_handed_its_argument_and_reads_the_channel() -> None:
    seen: list[Any] = []

    def node(state: Any, config: RunnableConfig) -> dict[str, Any]:
        seen.append(
            (
                state,
                config["configurable"][READ]("amount", False),
                config["metadata"]["langgraph_path"][:2],
            )
        )
        return {}

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("node", RunnableLambda(node))
    builder.add_conditional_edges(START, lambda state: [Send("node", {"n": n}) for n in range(2)], ["node"])
    builder.compile(checkpointer=InMemorySaver()).invoke({"amount": 5}, THREAD)

    assert sorted(seen, key=str) == [({"n": 0}, 5, (PUSH, 0)), ({"n": 1}, 5, (PUSH, 1))]


def test_no_key_that_begins_with_two_underscores_is_stored() -> None:
    saver = InMemorySaver()
    graph = compiled(saver, (START, "node"), node=lambda state: {})
    graph.invoke(
        {"amount": 5},
        {"configurable": {"thread_id": "1", "__counterfoil_principal": "adjuster-17"}},
    )

    assert "adjuster-17" not in str(list(saver.list(THREAD)))


def test_the_head_schedules_nodes_by_channels_named_for_them() -> None:
    saver = InMemorySaver()
    graph = compiled(saver, (START, "ask"), ask=lambda state: {"answers": [interrupt("?")]})
    graph.invoke({"amount": 5}, THREAD)
    head = saver.get_tuple(THREAD)

    assert head is not None
    assert "branch:to:ask" in head.checkpoint["channel_values"]


def test_a_key_the_state_does_not_have_is_dropped() -> None:
    graph = compiled(InMemorySaver(), (START, "node"), node=lambda state: {"amount": 6, "unknown": 7})

    assert graph.invoke({"amount": 5}, THREAD) == {"amount": 6}


def test_steps_count_from_the_input() -> None:
    graph = compiled(InMemorySaver(), (START, "one"), ("one", "two"), one=lambda state: {}, two=lambda state: {})
    graph.invoke({"amount": 5}, THREAD)
    history = [(snapshot.metadata["step"], snapshot.next) for snapshot in graph.get_state_history(THREAD)]

    assert history == [(2, ()), (1, ("two",)), (0, ("one",)), (-1, ("__start__",))]


def test_an_edited_checkpoint_is_a_new_one_of_its_own_kind() -> None:
    graph = compiled(InMemorySaver(), (START, "one"), ("one", "two"), one=lambda state: {}, two=lambda state: {})
    graph.invoke({"amount": 5}, THREAD)
    before = next(snapshot for snapshot in graph.get_state_history(THREAD) if snapshot.next == ("two",))
    graph.update_state(before.config, {"amount": 6})
    edited = graph.get_state(THREAD)
    graph.invoke(None, before.config)
    sources = [snapshot.metadata["source"] for snapshot in graph.get_state_history(THREAD)]

    assert edited.metadata["source"] == "update"
    assert edited.metadata["step"] == before.metadata["step"] + 1
    assert sources.count("fork") == 1
