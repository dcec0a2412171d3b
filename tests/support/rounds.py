"""A graph that goes round until it has done so many, and counts in a file, so that the count survives the process that went round."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from langgraph.graph import END, START, StateGraph

from checkpointing import Journal, open_journal
from checkpointing.errors import CapReached, RunBusy
from graph import Caps, DurableGraph, DurableState, durable, thread
from tests.support.points import die_at
from tests.support.processes import until

THREAD = thread("claim-0042")
LEASE = timedelta(milliseconds=400)
SIX = Caps(supersteps=6)


class State(DurableState):
    rounds: int
    until: int


class Rounds:
    """Counts the rounds that were begun, by anybody."""

    def __init__(self, file: Path) -> None:
        """Keep a line a round in *file*."""
        self.file = file

    @property
    def count(self) -> int:
        """How many rounds were begun."""
        return len(self.file.read_text().splitlines()) if self.file.exists() else 0

    def begin(self) -> None:
        """Count one."""
        with self.file.open("a") as file:
            file.write("round\n")


def looping(
    journal: Journal,
    rounds: Rounds,
    *,
    then: Callable[[], object] = lambda: None,
    bound: Mapping[str, Any] | None = None,
    **options: Any,
) -> DurableGraph:
    """Return the graph: each superstep is a round, after which *then* is called; *bound* is the config that it is compiled with."""

    def one_round(state: State) -> dict[str, Any]:
        rounds.begin()
        then()
        return {"rounds": state["rounds"] + 1}

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("round", one_round)
    builder.add_edge(START, "round")
    builder.add_conditional_edges("round", lambda s: END if s["rounds"] >= s["until"] else "round")
    if bound is None:
        return durable(builder, journal, **options)
    return durable(builder.compile().with_config(bound), journal, **options)  # type: ignore[arg-type]  # LangGraph's own class again


def rounds_process(url: str, folder: Path, point: str | None = None, nth: int = 1) -> None:
    """Be a process: go round for ever under a cap of six, and die at *point* if one is given; a dead one's lease is waited for."""
    with open_journal(url, lease=LEASE) as journal:
        graph = looping(journal, Rounds(folder / "rounds"), caps=SIX)
        given: Any = None if journal.runs.find("claim-0042") else {"rounds": 0, "until": 99}
        if point:
            die_at(point, nth=nth)

        def stopped() -> bool | None:
            try:
                graph.invoke(given, THREAD)
            except RunBusy:
                return None
            except CapReached:
                return True
            raise AssertionError("it was not capped")

        until(stopped)
