"""
LangGraph as it comes: its own savers and its own graph, with none of our code between.

What ran stands in a file, one line a run, so that it survives the process that ran it.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import StateGraph

OfficialSaver = SqliteSaver | PostgresSaver
Node = Callable[..., Any]

THREAD: RunnableConfig = {"configurable": {"thread_id": "claim-0042"}}


@contextmanager
def official_saver(url: str) -> Iterator[OfficialSaver]:
    """Open LangGraph's own saver at a journal's URL."""
    if url.startswith("sqlite:///"):
        with SqliteSaver.from_conn_string(url.removeprefix("sqlite:///")) as saver:
            yield saver
        return
    with PostgresSaver.from_conn_string(url) as saver:
        saver.setup()
        yield saver


class Trace:
    """What ran, in order, whoever ran it."""

    def __init__(self, file: Path) -> None:
        """Keep the lines in *file*."""
        self.file = file
        file.touch()

    def mark(self, name: str, config: RunnableConfig | None = None) -> None:
        """Note that *name* runs, and where LangGraph says it runs."""
        step = config["metadata"]["langgraph_step"] if config else None
        task = config["configurable"]["checkpoint_ns"] if config else None
        line = {"name": name, "step": step, "task": task}
        with self.file.open("ab", buffering=0) as file:
            os.write(file.fileno(), (json.dumps(line) + "\n").encode())

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Every line: `name`, `step`, `task`."""
        return [json.loads(line) for line in self.file.read_text().splitlines()]

    @property
    def names(self) -> list[str]:
        """The names alone."""
        return [line["name"] for line in self.lines]

    def node(self, name: str, then: Node | None = None) -> Node:
        """Make a node that leaves its line and then does *then*."""

        def run(state: Any, config: RunnableConfig) -> Any:
            self.mark(name, config)
            return then(state) if then else {}

        return run


def builder_of(state: type, *edges: tuple[str, str], **nodes: Any) -> StateGraph[Any, Any, Any, Any]:
    """Return a graph of these nodes and edges, not compiled."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(state)
    for name, node in nodes.items():
        builder.add_node(name, node)
    for one, other in edges:
        builder.add_edge(one, other)
    return builder


def die(*_: object) -> None:
    """Kill this process."""
    os.kill(os.getpid(), signal.SIGKILL)


def stall(saver: Any, method: str, when: Callable[..., bool]) -> None:
    """Let *method* of *saver* never come back *when* its arguments are these: a disk that does not answer."""
    original = getattr(saver, method)

    def stalled(*args: Any, **kwargs: Any) -> Any:
        if when(*args, **kwargs):
            threading.Event().wait()
        return original(*args, **kwargs)

    setattr(saver, method, stalled)


def fail(saver: Any, method: str, when: Callable[..., bool], error: Exception) -> None:
    """Let *method* of *saver* raise *error* once, the first time its arguments are these: a disk that is full for a moment."""
    original, left = getattr(saver, method), [1]

    def failing(*args: Any, **kwargs: Any) -> Any:
        if left and when(*args, **kwargs):
            left.clear()
            raise error
        return original(*args, **kwargs)

    setattr(saver, method, failing)


def die_between(saver: Any, wanted: Callable[[Any], bool], *, step: int) -> None:
    """Kill this process when the *wanted* writes of a task are on disk and the checkpoint of *step*, behind them, is not."""
    put, put_writes, written = saver.put, saver.put_writes, threading.Event()

    def writes_and_says(config: RunnableConfig, writes: Any, *rest: Any, **named: Any) -> None:
        put_writes(config, writes, *rest, **named)
        if wanted(writes):
            written.set()

    def dies(config: Any, checkpoint: Any, metadata: Any, versions: Any) -> Any:
        if metadata["step"] == step and written.wait(30):
            die()
        return put(config, checkpoint, metadata, versions)

    saver.put_writes, saver.put = writes_and_says, dies
