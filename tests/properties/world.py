"""
The graph of a plan, run by processes that die where the plan says; time is a file, so that nobody waits for a lease.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from langgraph.graph import START, StateGraph
from langgraph.types import Send

from checkpointing import Journal, open_journal
from checkpointing.errors import CounterfoilError, Refused, RunBusy, TryAgain
from graph import DurableGraph, DurableState, approve, durable, thread
from nodes import approval_node, effect_node, model_node
from tests.properties.plans import Event, Part, Plan
from tests.support.bank import Bank
from tests.support.points import die_after, die_at

THREAD = "t"
LEASE = timedelta(seconds=30)


class State(DurableState):
    round_of: dict[str, int]
    said: dict[str, Any]


class World:
    """One plan's folder: the bank's book, the clock, and who wrote it."""

    def __init__(self, url: str, folder: Path, plan: Plan) -> None:
        """Keep everything in *folder*."""
        self.url, self.folder, self.plan = url, folder, plan

    @property
    def bank(self) -> Bank:
        """The receiver of every effect."""
        return Bank(self.folder / "bank")

    def now(self) -> datetime:
        """Return the time as the file has it."""
        file = self.folder / "clock"
        return datetime(2026, 3, 1, tzinfo=UTC) + timedelta(seconds=int(file.read_text()) if file.exists() else 0)

    def later(self, seconds: int) -> None:
        """Let time pass for every process."""
        passed = (self.now() - datetime(2026, 3, 1, tzinfo=UTC)).total_seconds()
        (self.folder / "clock").write_text(str(int(passed) + seconds))

    def open(self) -> Journal:
        """Open the journal under the file's clock."""
        return open_journal(self.url, clock=self.now, lease=LEASE)

    def graph(self, journal: Journal) -> DurableGraph:
        """Build the plan's graph."""
        builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
        previous: list[str] = [START]
        for number, part in enumerate(self.plan.parts):
            previous = BUILD[part.shape](builder, self, journal, f"{part.shape}{number}", part, previous)
        return durable(builder, journal, attempts=50)


def expected(plan: Plan) -> list[str]:
    """Return what a run that ended must have executed, by the name each effect gives the bank."""
    found: list[str] = []
    for number, part in enumerate(plan.parts):
        name = f"{part.shape}{number}"
        match part.shape:
            case "loop" | "fan":
                found += [f"{name}/{turn}" for turn in range(part.times)]
            case "both":
                found += [f"{name}-left", f"{name}-right"]
            case "pay" | "ask" | "sub":
                found.append(name)
            case "model":
                pass
    return sorted(found)


def _pay(world: World, journal: Journal, name: Callable[[Any], str], approval: str | None = None) -> Any:
    return effect_node(
        world.bank.effect(),
        journal,
        arguments=None if approval else lambda state: {"claim_id": name(state), "amount": 5},
        approval=approval,
    )


def _chain(builder: Any, previous: list[str], name: str) -> list[str]:
    builder.add_edge(previous if len(previous) > 1 else previous[0], name)
    return [name]


def _one(builder: Any, world: World, journal: Journal, name: str, part: Part, previous: list[str]) -> list[str]:
    builder.add_node(name, _pay(world, journal, lambda state: name))
    return _chain(builder, previous, name)


def _model(builder: Any, world: World, journal: Journal, name: str, part: Part, previous: list[str]) -> list[str]:
    def ask(**_: Any) -> dict[str, Any]:
        world.bank.execute(claim_id=f"model {name}", key=f"model {name}")
        return {"answer": name}

    builder.add_node(name, model_node(ask, journal, arguments=lambda s: {}, into="said", name="ask"))
    return _chain(builder, previous, name)


def _ask(builder: Any, world: World, journal: Journal, name: str, part: Part, previous: list[str]) -> list[str]:
    asking = approval_node(name, journal, payload=lambda s: {"claim_id": name, "amount": 5})
    builder.add_node(f"{name}-question", asking)
    builder.add_node(name, _pay(world, journal, lambda state: name, approval=name))
    return _chain(builder, _chain(builder, previous, f"{name}-question"), name)


def _rounds(state: Any, name: str) -> int:
    return int((state.get("round_of") or {}).get(name, 0))


def _loop(builder: Any, world: World, journal: Journal, name: str, part: Part, previous: list[str]) -> list[str]:
    builder.add_node(name, _pay(world, journal, lambda state: f"{name}/{_rounds(state, name)}"))
    builder.add_node(f"{name}-count", lambda state: {"round_of": {name: _rounds(state, name) + 1}})
    builder.add_node(f"{name}-end", lambda state: {})
    builder.add_edge(name, f"{name}-count")
    builder.add_conditional_edges(
        f"{name}-count",
        lambda state: name if _rounds(state, name) < part.times else f"{name}-end",
        [name, f"{name}-end"],
    )
    _chain(builder, previous, name)
    return [f"{name}-end"]


def _fan(builder: Any, world: World, journal: Journal, name: str, part: Part, previous: list[str]) -> list[str]:
    builder.add_node(f"{name}-spread", lambda state: {})
    builder.add_node(name, _pay(world, journal, lambda state: state["claim_id"]))
    builder.add_node(f"{name}-end", lambda state: {})
    builder.add_conditional_edges(
        f"{name}-spread", lambda state: [Send(name, {"claim_id": f"{name}/{n}"}) for n in range(part.times)], [name]
    )
    builder.add_edge(name, f"{name}-end")
    _chain(builder, previous, f"{name}-spread")
    return [f"{name}-end"]


def _both(builder: Any, world: World, journal: Journal, name: str, part: Part, previous: list[str]) -> list[str]:
    builder.add_node(f"{name}-spread", lambda state: {})
    _chain(builder, previous, f"{name}-spread")
    for side in ("left", "right"):
        _one(builder, world, journal, f"{name}-{side}", part, [f"{name}-spread"])
    return [f"{name}-left", f"{name}-right"]


def _sub(builder: Any, world: World, journal: Journal, name: str, part: Part, previous: list[str]) -> list[str]:
    inner: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    inner.add_node("inner", _pay(world, journal, lambda state: name))
    inner.add_edge(START, "inner")
    builder.add_node(name, inner.compile())
    return _chain(builder, previous, name)


BUILD = {"pay": _one, "model": _model, "ask": _ask, "loop": _loop, "fan": _fan, "both": _both, "sub": _sub}


def act(world: World, event: Event, side: str = "left") -> None:
    """Do what *event* says in this process; what is refused or busy is part of life."""
    if event.point == "executed":
        die_after(Bank, "execute")
    elif event.point:
        die_at(event.point, nth=event.nth)
    with world.open() as journal:
        graph = world.graph(journal)
        with suppress(TryAgain, Refused):
            _do(graph, event, side)


def _do(graph: DurableGraph, event: Event, side: str) -> None:
    match event.kind:
        case "submit":
            graph.invoke({"said": {}}, thread(THREAD))
        case "nudge":
            graph.invoke(None, thread(THREAD))
        case "approve" | "two":
            for pending in graph.journal.approvals.pending(thread_id=THREAD):
                graph.invoke(approve(pending), thread(THREAD, principal=f"adjuster-{side}"))
        case "travel":
            history = list(graph.get_state_history(thread(THREAD)))
            if history:
                graph.compiled.invoke(None, history[event.choice % len(history)].config)
        case "later":
            pass


def finish(world: World) -> Journal:
    """Do what operators and workers would until the run is done, and return the journal."""
    journal = world.open()
    graph = world.graph(journal)
    for _ in range(40):
        world.later(60)
        with suppress(RunBusy):
            graph.invoke({"said": {}}, thread(THREAD))
        for pending in journal.approvals.pending(thread_id=THREAD):
            with suppress(CounterfoilError):
                graph.invoke(approve(pending), thread(THREAD, principal="adjuster-last"))
        if journal.runs.get(THREAD).state in ("done", "dead"):
            break
    return journal


def as_json(plan: Plan) -> str:
    """Return the plan as a script can read it."""
    return json.dumps(
        {"parts": [vars(part) for part in plan.parts], "events": [vars(event) for event in plan.events]}, indent=1
    )
