"""A worker carries on what was left to it: claims and decisions given with --detach, and the runs of somebody's own graph."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from checkpointing import open_journal
from graph import thread
from service.own_graphs import load_graph
from tests.service.conftest import Cli, Filed
from tests.support.processes import until
from tools.sandbox import SandboxControl

OWN_GRAPH = """
from langgraph.graph import START, StateGraph

from graph import DurableState, durable


class State(DurableState):
    number: int


def make(journal):
    builder = StateGraph(State)
    builder.add_node("add", lambda state: {"number": state["number"] + 1})
    builder.add_edge(START, "add")
    return durable(builder, journal, name="adding")


def wrong(journal):
    return "no graph"
"""


@contextmanager
def worker(settings: dict[str, str], folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run `counterfoil worker` in a process of its own, and end it as an operator would."""
    process = subprocess.Popen(
        [sys.executable, "-m", "service.cli", "worker", *arguments],
        env={**os.environ, **settings},
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said


def is_in(cli: Cli, thread_id: str, state: str) -> Callable[[], bool | None]:
    """Tell, for `until`, whether the run has come to that state."""
    return lambda: cli("show", thread_id, "--json").document["state"] == state or None


def test_what_is_left_to_the_workers_is_carried_on_by_one(
    cli: Cli, filed: Callable[..., Filed], settings: dict[str, str], control: SandboxControl, tmp_path: Path
) -> None:
    claim = filed()
    cli(*claim.submit, "--detach")
    waiting = cli("queue", "--json").document
    assert control.payments(claim.claim_id) == []

    with worker(settings, tmp_path):
        until(is_in(cli, claim.thread_id, "parked"))
        [asked] = cli("approvals", "--json").document
        said = cli("approve", asked["id"], "--as", "adjuster-17", "--detach").stdout
        until(is_in(cli, claim.thread_id, "done"))

    assert (waiting["ready"], waiting["graphs"][0]["graph"]) == (1, "claims")
    assert waiting["lag_s"] > 0
    assert "Recorded: approve by adjuster-17." in said
    assert cli("queue", "--json").document["ready"] == 0
    assert len(control.payments(claim.claim_id)) == 1


def test_a_detached_submission_may_be_given_again(cli: Cli, filed: Callable[..., Filed]) -> None:
    claim = filed()
    first = cli(*claim.submit, "--detach")
    again = cli(*claim.submit, "--detach")

    assert first.stdout.startswith(f"{claim.thread_id} is admitted")
    assert again.stdout == first.stdout
    assert cli("queue", "--json").document["ready"] == 1


def test_a_submission_that_this_process_runs_itself_is_left_alone_by_workers(
    cli: Cli, filed: Callable[..., Filed]
) -> None:
    claim = filed()
    cli(*claim.submit)

    assert cli("queue", "--json").document["ready"] == 0


def test_the_queue_is_told_in_one_line(cli: Cli, filed: Callable[..., Filed], engine: str) -> None:
    cli(*filed().submit, "--detach")
    told = cli("queue").stdout

    assert told.startswith("1 ready, the first for ")
    assert ("0 workers alive" in told) == (engine == "postgres")


def test_a_worker_carries_a_graph_of_ones_own_on(cli: Cli, url: str, settings: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "adding_graph.py").write_text(OWN_GRAPH)
    sys.path.insert(0, str(tmp_path))
    try:
        make = load_graph("adding_graph:make")
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("adding_graph", None)
    with open_journal(url) as journal:
        graph = make(journal)
        graph.submit({"number": 1}, thread("one"))
        with worker(settings, tmp_path, "--graph", "adding_graph:make"):
            until(lambda: journal.runs.get("one").state == "done" or None)

        assert graph.invoke(None, thread("one"))["number"] == 2


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("adding_graph", "is named package.module:function"),
        ("no_such_module:make", "there is no module 'no_such_module'"),
        ("json:no_such_function", "has no function 'no_such_function'"),
        ("builtins:repr", "returned str, and a worker takes what durable() made"),
    ],
)
def test_a_graph_that_cannot_be_used_is_named(cli: Cli, name: str, said: str) -> None:
    assert said in cli("worker", "--graph", name, code=1).line
