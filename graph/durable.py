"""
The durable graph: LangGraph's four calls, by thread id, each under the thread's lease and each safe to repeat.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot

from checkpointing import Journal, Run
from checkpointing.budget import Caps
from checkpointing.errors import GraphRefused, InputRefused
from checkpointing.steps import Feed
from graph.accepting import Accepting, Compiled
from graph.advance import Advance, Pass
from graph.backoff import Backoff
from graph.caps import controlled
from graph.checks import check_builder
from graph.snapshots import output

NOTHING = object()
"""The result of a call that had nothing to run."""


def durable(
    builder: StateGraph[Any, Any, Any, Any] | Compiled,
    journal: Journal,
    *,
    turns: bool = False,
    attempts: int = 5,
    backoff: Backoff | None = None,
    name: str | None = None,
    caps: Caps | None = None,
) -> DurableGraph:
    """
    Make the graph of *builder* durable in *journal*.

    Args:
        builder: a graph whose state derives from `DurableState`, not compiled yet, or as `create_agent` returns it: compiled without a
            checkpointer of its own.
        journal: where its runs are kept.
        turns: a thread that is done takes further input, each under a submission the caller names.
        attempts: starts without a new checkpoint before a run is a dead letter.
        backoff: how long workers leave a run alone after an attempt; by default a second, doubled each time, up to five minutes.
        name: what the graph is called. The runs of a named graph are carried on by the graph of that name only.
        caps: what a run may take over its life; by default whatever it likes. One that has taken it all is a dead letter.

    Raises:
        GraphRefused: the graph cannot be made durable as it is; the message names what to change.
    """
    if attempts < 1:
        raise GraphRefused(f"attempts is {attempts}: a run is started at least once")
    if isinstance(builder, CompiledStateGraph):
        compiled = _with_saver(builder, journal, name)
    else:
        check_builder(builder)
        compiled = builder.compile(checkpointer=journal.saver, name=name)
    accepting = Accepting(compiled, journal, name or "", turns)
    return DurableGraph(
        compiled, journal, Advance(compiled, journal, attempts, accepting, backoff or Backoff(), caps or Caps())
    )


def _with_saver(given: Compiled, journal: Journal, name: str | None) -> Compiled:
    """Return a copy of a compiled graph that keeps its checkpoints in *journal*; the config, store and breakpoints it has stay."""
    if given.checkpointer not in (None, journal.saver):
        raise GraphRefused("the graph was compiled with a checkpointer of its own: leave it out, the journal has one")
    check_builder(given.builder)
    return given.copy({"checkpointer": journal.saver, **({"name": name} if name else {})})


class DurableGraph:
    """
    A compiled graph whose runs survive.

    Attributes:
        compiled: LangGraph's own graph, for drawing it and for those who know what they do: it takes no lease.
        journal: Where its runs are kept.
        needs_a_loop: A node of it is async only, so that `ainvoke` alone can run it.
    """

    def __init__(self, compiled: Compiled, journal: Journal, advance: Advance) -> None:
        """Use `durable()` instead."""
        self.compiled = compiled
        self.journal = journal
        self.needs_a_loop = _is_async(compiled.builder)
        self._advance = advance

    def invoke(self, given: Any, config: RunnableConfig, **options: Any) -> Any:
        """
        Do what *given* asks of the thread in *config*, and return the state as LangGraph's `invoke` does.

        A mapping submits input, `None` advances, `Command(resume=...)` decides; repeating any of them is safe. A parked run comes back with
        `__interrupt__`. Errors as `Advance.passes`; *options* are those of LangGraph's `invoke`.
        """
        options, stop = controlled(_checked(options), self._advance.caps)
        passes: Feed[Pass, None] = Feed(self._advance.passes(given, config, stop))
        result: Any = NOTHING
        with closing(passes):
            while (one := passes.next()) is not None:
                with passes.told():
                    result = self.compiled.invoke(one.input, one.config, durability="sync", **options)
        return self._output(config) if result is NOTHING else result

    async def ainvoke(self, given: Any, config: RunnableConfig, **options: Any) -> Any:
        """As `invoke`; a caller that is cancelled leaves the run to the next call, with the lease given back."""
        run = self.journal.bridge.run
        options, stop = controlled(_checked(options), self._advance.caps)
        passes: Feed[Pass, None] = Feed(self._advance.passes(given, config, stop))
        result: Any = NOTHING
        try:
            while (one := await run(passes.next)) is not None:
                with passes.told():
                    result = await self.compiled.ainvoke(one.input, one.config, durability="sync", **options)
        finally:
            await asyncio.shield(run(passes.close))
        return await run(self._output, config) if result is NOTHING else result

    def stream(self, given: Any, config: RunnableConfig, **options: Any) -> Iterator[Any]:
        """
        As `invoke`, yielding what LangGraph's `stream` yields; nothing if there is nothing to do.

        A consumer that leaves early gives the run back to the next call; one that pauses for longer than the lease may lose it.
        """
        options, stop = controlled(_checked(options), self._advance.caps)
        passes: Feed[Pass, None] = Feed(self._advance.passes(given, config, stop))
        with closing(passes):
            while (one := passes.next()) is not None:
                with passes.told():
                    for chunk in self.compiled.stream(one.input, one.config, durability="sync", **options):
                        one.heartbeat.pause()
                        yield chunk
                        one.heartbeat.go_on()

    async def astream(self, given: Any, config: RunnableConfig, **options: Any) -> AsyncIterator[Any]:
        """As `stream`."""
        run = self.journal.bridge.run
        options, stop = controlled(_checked(options), self._advance.caps)
        passes: Feed[Pass, None] = Feed(self._advance.passes(given, config, stop))
        try:
            while (one := await run(passes.next)) is not None:
                with passes.told():
                    async for chunk in self.compiled.astream(one.input, one.config, durability="sync", **options):
                        one.heartbeat.pause()
                        yield chunk
                        one.heartbeat.go_on()
        finally:
            await asyncio.shield(run(passes.close))

    def submit(self, given: Any, config: RunnableConfig) -> Run:
        """
        Record what *given* asks of the thread in *config*, input or a decision, and leave it to the workers; return its run.

        Repeating it is safe. A crash before the commit leaves nothing, one after it a run that a worker takes up. Errors as `invoke`.
        """
        return self._advance.submit(given, config)

    @property
    def name(self) -> str:
        """What the graph is called; empty if it has no name."""
        return self._advance.accepting.name

    @property
    def caps(self) -> Caps:
        """What its runs may take over their life."""
        return self._advance.caps

    def get_state(self, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        """Return LangGraph's snapshot of the thread."""
        return self.compiled.get_state(config, subgraphs=subgraphs)

    def get_state_history(self, config: RunnableConfig, **options: Any) -> Iterator[StateSnapshot]:
        """Return LangGraph's snapshots of the thread, newest first."""
        return self.compiled.get_state_history(config, **options)

    def _output(self, config: RunnableConfig) -> Any:
        keys = self.compiled.output_channels
        return output(self.compiled.get_state(config), keys if isinstance(keys, str) else list(keys))


def _is_async(builder: StateGraph[Any, Any, Any, Any]) -> bool:
    """Tell whether a node of the graph, or of a graph in it, is an async function and nothing else."""
    for node in builder.nodes.values():
        if isinstance(node.runnable, CompiledStateGraph):
            if _is_async(node.runnable.builder):
                return True
        elif getattr(node.runnable, "func", NOTHING) is None:  # LangGraph's own has `func`, `afunc` or both
            return True
    return False


def _checked(options: dict[str, Any]) -> dict[str, Any]:
    """Refuse to be less durable: under `async` and `exit` a kill loses whole supersteps."""
    if options.get("durability", "sync") != "sync":
        raise InputRefused(f"a durable run is always durability='sync', not {options['durability']!r}")
    return {name: value for name, value in options.items() if name != "durability"}
