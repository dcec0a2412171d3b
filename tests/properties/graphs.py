"""
The graph of a history: parts of every shape, one after the other, whose every step leaves a trace outside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.types import Send

from checkpointing import Journal
from graph import DurableGraph, DurableState, durable
from nodes import approval_node, effect_node, model_node
from nodes.state import union
from tests.properties.history import Part, named
from tests.properties.receiver import Desk, append

TTL = timedelta(hours=2)
Builder = StateGraph[Any, Any, Any, Any]
Subject = Callable[[Any], str]
"""What a step calls its operation, from the state."""


class State(DurableState):
    price: int
    rounds: Annotated[dict[str, int], union]
    said: Annotated[dict[str, Any], union]


@dataclass(frozen=True)
class Site:
    """Where a graph is built: in which journal, with which receiver, leaving its traces in which folder."""

    journal: Journal
    desk: Desk
    folder: Path

    def build(self, parts: list[Part]) -> DurableGraph:
        """Build the graph of *parts*."""
        builder: Builder = StateGraph(State)
        builder.add_node("begin", self.counted("begin", lambda state: {}))
        builder.add_edge(START, "begin")
        previous = ["begin"]
        for name, part in named(parts):
            previous = SHAPES[part.shape](self, builder, name, part, previous)
        return durable(builder, self.journal, attempts=50)

    def counted(self, name: str, work: Callable[[Any], dict[str, Any]]) -> Callable[..., dict[str, Any]]:
        """Return a node that computes, and writes down from which checkpoint it ran."""

        def node(state: State, config: RunnableConfig) -> dict[str, Any]:
            root = config["configurable"].get("checkpoint_map", {}).get("", "")
            append(self.folder / "nodes", {"node": name, "checkpoint": root})
            return work(state)

        return node

    def step(self, builder: Builder, name: str, part: Part, previous: list[str], subject: Subject) -> list[str]:
        """Add an effect, after a question where the part has one."""
        if part.question == "none":
            pay = effect_node(
                self.desk.effect(part.receiver),
                self.journal,
                arguments=lambda state: {"claim_id": subject(state), "amount": state["price"]},
            )
            builder.add_node(name, pay)
            return chain(builder, previous, name)
        ask = approval_node(
            name,
            self.journal,
            payload=lambda state: {"claim_id": subject(state), "amount": state["price"]},
            allowed=("approve", "reject", "edit"),
            ttl=None if part.question == "lasting" else TTL,
            on_expiry="approve" if part.question == "approves" else "reject",
        )
        builder.add_node(f"{name}-question", ask)
        builder.add_node(name, effect_node(self.desk.effect(part.receiver), self.journal, approval=name))
        return chain(builder, chain(builder, previous, f"{name}-question"), name)

    def model(self, builder: Builder, name: str, previous: list[str]) -> list[str]:
        """Add a question to a model."""

        def ask(**_: Any) -> dict[str, Any]:
            append(self.folder / "models", name)
            return {"answer": name}

        builder.add_node(name, model_node(ask, self.journal, arguments=lambda s: {}, into="said", name=name))
        return chain(builder, previous, name)

    def computing(self, builder: Builder, name: str, previous: list[str]) -> list[str]:
        """Add a node that changes nothing."""
        builder.add_node(name, self.counted(name, lambda state: {}))
        return chain(builder, previous, name)


def chain(builder: Builder, previous: list[str], name: str) -> list[str]:
    """Let *name* follow; it waits for all of *previous*."""
    builder.add_edge(previous if len(previous) > 1 else previous[0], name)
    return [name]


def _chain(site: Site, builder: Builder, name: str, part: Part, previous: list[str]) -> list[str]:
    return site.step(builder, name, part, previous, lambda state: f"{name}/0")


def _loop(site: Site, builder: Builder, name: str, part: Part, previous: list[str]) -> list[str]:
    def turn(state: Any) -> int:
        return int((state.get("rounds") or {}).get(name, 0))

    first = name if part.question == "none" else f"{name}-question"
    last = site.step(builder, name, part, previous, lambda state: f"{name}/{turn(state)}")
    builder.add_node(f"{name}-count", site.counted(f"{name}-count", lambda s: {"rounds": {name: turn(s) + 1}}))
    chain(builder, last, f"{name}-count")
    builder.add_node(f"{name}-end", site.counted(f"{name}-end", lambda state: {}))
    builder.add_conditional_edges(
        f"{name}-count", lambda state: first if turn(state) < part.times else f"{name}-end", [first, f"{name}-end"]
    )
    return [f"{name}-end"]


def _fan(site: Site, builder: Builder, name: str, part: Part, previous: list[str]) -> list[str]:
    site.computing(builder, f"{name}-spread", previous)
    pay = effect_node(
        site.desk.effect(part.receiver),
        site.journal,
        arguments=lambda state: {"claim_id": state["claim_id"], "amount": state["price"]},
    )
    builder.add_node(name, pay)
    builder.add_conditional_edges(
        f"{name}-spread",
        lambda s: [Send(name, {"claim_id": f"{name}/{n}", "price": s["price"]}) for n in range(part.times)],
        [name],
    )
    return site.computing(builder, f"{name}-end", [name])


def _both(site: Site, builder: Builder, name: str, part: Part, previous: list[str]) -> list[str]:
    site.computing(builder, f"{name}-spread", previous)
    ends = site.model(builder, f"{name}-model", [f"{name}-spread"])
    for side in ("left", "right"):
        ends += site.step(builder, f"{name}-{side}", part, [f"{name}-spread"], lambda s, side=side: f"{name}-{side}/0")
    return site.computing(builder, f"{name}-end", ends)


def _sub(site: Site, builder: Builder, name: str, part: Part, previous: list[str]) -> list[str]:
    inner: Builder = StateGraph(State)
    site.step(inner, f"{name}-inner", part, [START], lambda state: f"{name}/0")
    builder.add_node(name, inner.compile())
    return chain(builder, previous, name)


SHAPES = {"chain": _chain, "loop": _loop, "fan": _fan, "both": _both, "sub": _sub}
