"""
Advancing a run from the command line: a line on stderr for every step that ends, and at the end how the run stands.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from shlex import quote
from typing import Any

from rich.console import Console
from rich.status import Status
from rich.text import Text

from checkpointing import Run
from checkpointing.errors import CounterfoilError, EffectInDoubt, GraphChanged, RunBusy, RunDead
from checkpointing.principals import Principal
from graph import thread
from graph.advance import one_line
from service.cli import show, words
from service.cli.advice import advice, carried_on_here, in_python
from service.cli.documents import run_document
from service.cli.exits import print_json
from service.situation import busy, situation
from service.wiring import App
from service.words import CHANNELS, currency_of, why

POLL_S = 0.2
HELD = "is held for another {left} by {owner}"


class NodeFailed(CounterfoilError):
    """A node raised an error of its own; the run's row says what becomes of it."""


def advance(app: App, given: Any, thread_id: str, *, principal: Principal | None = None) -> None:
    """
    Do what *given* asks of the thread until its run rests.

    A run that parks because an effect is in doubt rests too: its row says so, and the advice says what to do.

    Raises:
        NodeFailed: a node raised what is no error of ours.
        CounterfoilError: as `DurableGraph.stream`.
    """
    console = show.stderr()
    with console.status("starting") as status:
        teller = _Teller(console, status)
        for event in _events(app, given, thread_id, principal, teller):
            teller.tell(event)


def leave(app: App, given: Any, thread_id: str, *, principal: Principal | None = None) -> None:
    """Record what *given* asks of the thread, and leave the run to the workers; errors as `DurableGraph.submit`."""
    app.graph.submit(given, thread(thread_id, principal=principal))


def advance_when_free(app: App, thread_id: str, *, wait_s: float) -> None:
    """
    Advance the thread; while another worker holds it, try again for *wait_s* seconds.

    Raises:
        RunBusy: it is still held after that.
    """
    deadline = time.monotonic() + wait_s
    said = False
    while True:
        try:
            return advance(app, None, thread_id)
        except RunBusy as busy:
            if time.monotonic() >= deadline:
                raise
            if not said:
                show.stderr().print(Text(f"waiting: {busy}"), soft_wrap=True)
            said = True
        time.sleep(max(0.0, min(POLL_S, deadline - time.monotonic())))


def report(app: App, thread_id: str, *, as_json: bool, detached: bool = False) -> None:
    """Say on stdout how the run stands and what to do next; a run that was *detached* is the workers'."""
    run, at = app.journal.runs.get(thread_id), situation(app.journal, thread_id)
    if as_json:
        print_json(run_document(run, at))
        return
    console = show.stdout()
    console.print(Text.assemble((thread_id, "bold"), f" is {run.state}{_ending(app, run)}"))
    if detached and run.state in ("admitted", "running"):
        console.print("It is left to the workers (counterfoil worker); counterfoil queue shows what waits for them.")
        return
    if run.state != "done":
        show.show_advice(console, advice(run, at))


def _events(
    app: App, given: Any, thread_id: str, principal: Principal | None, teller: _Teller
) -> Iterator[Mapping[str, Any]]:
    """Yield what the run does; what it raises is put into words that say how the run stands."""
    try:
        yield from app.graph.stream(given, thread(thread_id, principal=principal), stream_mode="debug")
    except EffectInDoubt:
        return
    except RunBusy as held:
        raise busy(app.journal, thread_id, HELD) from held
    except RunDead as dead:
        run = app.journal.runs.get(thread_id)
        raise RunDead(
            f"thread {thread_id!r} is a dead letter ({why(run)}): {run.error}; see counterfoil dead {quote(thread_id)}"
        ) from dead
    except GraphChanged as refused:
        if carried_on_here(app.journal.runs.find(thread_id)):
            raise
        raise GraphChanged(f"{refused}; carry it on in Python: {in_python(thread_id)}") from refused
    except CounterfoilError:
        raise
    except Exception as error:
        if not teller.node:
            raise  # before any node: a fault of this program
        raise _failed(app, thread_id, error, teller.node) from error


def _failed(app: App, thread_id: str, error: Exception, node: str) -> NodeFailed:
    """Return what to say of an error that is not ours."""
    run = app.journal.runs.get(thread_id)
    used = f"{run.attempts} {'attempt' if run.attempts == 1 else 'attempts'} used"
    return NodeFailed(
        f"node failed: {one_line(error)} (in {node}); the run is {run.state} with {used}; see counterfoil show {quote(thread_id)}"
    )


@dataclass(slots=True)
class _Teller:
    """
    Tells the steps of a run as they end.

    Attributes:
        currency: That of the claim, once it was read.
        node: What was begun last; empty before the first.
    """

    console: Console
    status: Status
    currency: str = ""
    node: str = ""

    def tell(self, event: Mapping[str, Any]) -> None:
        """Show one event of LangGraph's `debug` stream; a step's number is that of the checkpoint it starts from."""
        number, payload = int(event["step"]) - 1, event["payload"]
        step = f"step {number}  {payload.get('name', '')}"
        if event["type"] == "task":
            self.node = str(payload["name"])
            if isinstance(payload["input"], Mapping):
                self.currency = currency_of(payload["input"])
            self.status.update(step)
        elif event["type"] == "task_result":
            self.console.print(Text(f"  {step:<24}{self._result(payload)}"), soft_wrap=True)

    def _result(self, payload: Mapping[str, Any]) -> str:
        if payload["error"]:
            return "failed"
        if payload["interrupts"]:
            return "asks and waits"
        result = payload["result"] if isinstance(payload["result"], Mapping) else {}
        said = [
            f"decided: {one['type']} by {one['by'] or 'nobody: its time was over'}"
            for one in result.get("approvals", {}).values()
        ]
        said += [
            f"{key}: {words.value(key, value, self.currency)}" for key, value in result.items() if key not in CHANNELS
        ]
        return ", ".join(said)


def _ending(app: App, run: Run) -> str:
    if run.state != "done":
        return f" ({why(run)})" if run.reason else ""
    outcome = app.graph.get_state(thread(run.thread_id)).values.get("outcome")
    return f": {outcome}" if outcome else ""
