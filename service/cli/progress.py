"""
Advancing a run from the command line: a line on stderr for every step that ends, and at the end how the run stands.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.status import Status
from rich.text import Text

from checkpointing import Run
from checkpointing.errors import EffectInDoubt, RunBusy
from graph import thread
from service.cli import show, words
from service.cli.advice import advice
from service.cli.documents import run_document
from service.cli.exits import print_json
from service.wiring import App

POLL_S = 0.2


def advance(app: App, given: Any, thread_id: str, *, principal: str | None = None) -> None:
    """
    Do what *given* asks of the thread until its run rests; errors as `DurableGraph.stream`.

    A run that parks because an effect is in doubt rests too: its row says so, and the advice says what to do.
    """
    console = show.stderr()
    config = thread(thread_id, principal=principal)
    with console.status("starting") as status:
        teller = _Teller(console, status)
        try:
            for event in app.graph.stream(given, config, stream_mode="debug"):
                teller.tell(event)
        except EffectInDoubt:
            return


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


def report(app: App, thread_id: str, *, as_json: bool) -> None:
    """Say on stdout how the run stands and what to do next."""
    run = app.journal.runs.get(thread_id)
    if as_json:
        print_json(run_document(app.journal, run))
        return
    console = show.stdout()
    console.print(Text.assemble((thread_id, "bold"), f" is {run.state}{_ending(app, run)}"))
    if run.state != "done":
        show.show_advice(console, advice(app.journal, run))


@dataclass(slots=True)
class _Teller:
    """
    Tells the steps of a run as they end.

    Attributes:
        currency: That of the claim, once it was read.
    """

    console: Console
    status: Status
    currency: str = ""

    def tell(self, event: Mapping[str, Any]) -> None:
        """Show one event of LangGraph's `debug` stream; a step's number is that of the checkpoint it starts from."""
        number, payload = int(event["step"]) - 1, event["payload"]
        step = f"step {number}  {payload.get('name', '')}"
        if event["type"] == "task":
            if isinstance(payload["input"], Mapping):
                self.currency = words.currency_of(payload["input"])
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
            f"{key}: {words.value(key, value, self.currency)}"
            for key, value in result.items()
            if key not in words.CHANNELS
        ]
        return ", ".join(said)


def _ending(app: App, run: Run) -> str:
    if run.state != "done":
        return f" ({run.reason})" if run.reason else ""
    outcome = app.graph.get_state(thread(run.thread_id)).values.get("outcome")
    return f": {outcome}" if outcome else ""
