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
from service.own_graphs import MakeGraph, load_graph
from tests.service.conftest import Cli, Filed, in_process
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
    make = load_own(tmp_path)
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
        ("os:getcwd", "does not take the open journal as its one argument"),
        ("builtins:repr", "returned str, and a worker takes what durable() made"),
    ],
)
def test_a_graph_that_cannot_be_used_is_named(cli: Cli, name: str, said: str) -> None:
    assert said in cli("worker", "--graph", name, code=2).line


WORKING_BY_HAND = """
from checkpointing import open_journal
from service.worker import work
from adding_graph import make

with open_journal("{url}") as journal:
    work([make(journal)])
print("drained")
"""


def test_work_in_python_is_drained_by_a_signal(url: str, settings: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "adding_graph.py").write_text(OWN_GRAPH)
    script = tmp_path / "working.py"
    script.write_text(WORKING_BY_HAND.format(url=url))
    process = subprocess.Popen(
        [sys.executable, str(script)], env={**os.environ, **settings}, cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    make = load_own(tmp_path)
    with open_journal(url) as journal:
        make(journal).submit({"number": 1}, thread("one"))
        until(lambda: journal.runs.get("one").state == "done" or None, timeout_s=60)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=60)

    assert (process.returncode, said.splitlines()[-1]) == (0, "drained")


def load_own(folder: Path, module: str = "adding_graph") -> MakeGraph:
    sys.path.insert(0, str(folder))
    try:
        return load_graph(f"{module}:make")
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop(module, None)


def test_a_look_at_an_empty_database_makes_no_tables(settings: dict[str, str], empty_url: str) -> None:
    """A mistyped name would be filled with them."""
    cli = in_process({**settings, "COUNTERFOIL_URL": empty_url})
    assert "no journal at" in cli("list", code=2).line
    cli("migrate", "--check", code=1)


LEAVES_A_THREAD = """
import threading

from langgraph.graph import START, StateGraph

from graph import DurableState, durable


class State(DurableState):
    number: int


def leave(state):
    threading.Thread(target=threading.Event().wait).start()
    return {"number": 2}


def make(journal):
    builder = StateGraph(State)
    builder.add_node("leave", leave)
    builder.add_edge(START, "leave")
    return durable(builder, journal, name="leaving")
"""


def test_a_thread_that_a_run_left_behind_does_not_keep_a_drained_worker_alive(
    url: str, settings: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "leaving_graph.py").write_text(LEAVES_A_THREAD)
    make = load_own(tmp_path, "leaving_graph")
    with open_journal(url) as journal, worker(settings, tmp_path, "--graph", "leaving_graph:make"):
        make(journal).submit({"number": 1}, thread("one"))
        until(lambda: journal.runs.get("one").state == "done" or None, timeout_s=60)
