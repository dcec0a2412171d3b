"""
The demo: two claims, two workers killed at the worst moment, and one payment each, counted where the money moves.

    submit ─▶ parked, no process alive ─▶ approve ─▶ SIGKILL ─▶ the answers arrive at nobody ─▶ resume ─▶ done
                                            │
                                            ├─ claim-0043: inside `pay`, after the money moved and before it was recorded
                                            └─ claim-0042: inside `notify`, with its payment on record

The moments are not hoped for: the sandbox executes the call and holds its answer, and the worker that waits for it is killed from
outside. Every number in the report is counted: at the sandbox, in the journal, from the exit codes of the processes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from checkpointing import EffectRecord
from checkpointing.leases import thread_lease
from graph.timeline import StepView, timeline
from service.demo_report import Report, count, tell
from service.demo_stage import LEASE_S, EngineName, Stage, set_up
from service.demo_worker import DemoFailed, Worker
from service.settings import Settings
from service.wiring import App, wired

Say = Callable[[str], None]

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "claims"
WAIT_S = 20
"""How long a resume waits for the lease of the killed worker; the demo's leases last two seconds."""


@dataclass(frozen=True, slots=True)
class Cast:
    """
    One claim's part in the demo.

    Attributes:
        node: Where its worker is killed.
        at: The service whose answer is held, as the sandbox calls it.
        moment: What is true at that moment, in words.
        place: How the story names the place.
    """

    claim_id: str
    node: Literal["pay", "notify"]
    at: Literal["transfers", "emails"]
    place: str
    moment: str

    @property
    def thread_id(self) -> str:
        """The claim's thread."""
        return f"claim-{self.claim_id}"


CASTS = (
    Cast(
        "0042",
        "notify",
        "emails",
        "in",
        "with the payment on record and the letter on its way",
    ),
    Cast(
        "0043",
        "pay",
        "transfers",
        "inside",
        "after the money moved and before it was recorded",
    ),
)


def play(engine: EngineName, say: Say, *, given: Settings, keep: Path | None = None) -> Report:
    """
    Play the demo from beginning to end, telling its story line by line, and return what was counted.

    Raises:
        DemoFailed: something did not happen as it must; the message says what, `log` what the process concerned said.
        FolderInUse: *keep* is not new and not empty.
        JournalUnusable: there is no Postgres to play on.
    """
    for cast in CASTS:
        if not _file(cast).is_file():
            raise DemoFailed(f"there is no {_file(cast)}: run the demo from a checkout of Counterfoil")
    say(f"Two claims, two kills, on {engine}.")
    with set_up(engine, keep, given) as stage, wired(stage.settings) as app:
        say(f"The outside world is a sandbox of its own at {stage.settings.claims_url}.")
        _submit(stage, app, say)
        _approve_and_kill(stage, app, say)
        _resume(stage, app, say)
        report = count(stage, app, {cast.thread_id: cast.claim_id for cast in CASTS})
        tell(report, say)
        if keep is not None:
            say(f"\nKept in {stage.folder}: the sandbox's database and what every process said.")
            if engine == "sqlite":
                say(f"  counterfoil --url {stage.settings.url.get_secret_value()} show {CASTS[0].thread_id}")
    return report


def _submit(stage: Stage, app: App, say: Say) -> None:
    """Both are submitted, wait for approval, and their processes have ended."""
    say("\nBoth are submitted, each by a process of its own.")
    workers = {
        cast: stage.start(
            f"submit-{cast.thread_id}", "submit", str(_file(cast)), "--thread", cast.thread_id, "--as", "intake"
        )
        for cast in CASTS
    }  # fmt: skip
    for cast, worker in workers.items():
        worker.end()
        run = app.journal.runs.get(cast.thread_id)
        if (run.state, run.reason) != ("parked", "approval") or _alive(app, cast, worker):
            raise DemoFailed(f"{cast.thread_id} does not wait for approval", worker.said())
        say(f"  {cast.thread_id} waits for approval; no process is alive.")
        say(
            f"      Process {worker.pid} has ended, nobody holds the lease: "
            f"the run stands in step {_standing(app, cast).number}, as rows."
        )


def _approve_and_kill(stage: Stage, app: App, say: Say) -> None:
    """Both are approved, and both approving processes are killed while the outside world has acted and not answered."""
    say("\nAn adjuster approves both. The sandbox does what it is asked and holds its answers back.")
    for cast in CASTS:
        stage.sandbox.fault(cast.at, "hold_after", match=cast.claim_id)
    workers = {cast: _approve(stage, app, cast) for cast in CASTS}
    for cast, worker in workers.items():
        stage.until(
            lambda cast=cast: _at_its_moment(stage, app, cast),  # type: ignore[misc]  # bound now, not in the next round
            what=f"{cast.thread_id} reached {cast.node}",
            worker=worker,
        )
        step = _standing(app, cast)
        worker.kill()
        if not worker.killed or not _at_its_moment(stage, app, cast):
            raise DemoFailed(f"{cast.thread_id} was not killed at its moment", worker.said())
        say(f"  {cast.thread_id} was killed {cast.place} step {step.number} ({cast.node}), {cast.moment}.")
        say(f"      SIGKILL to process {worker.pid}; its lease ends within {LEASE_S:.0f} s.")


def _resume(stage: Stage, app: App, say: Say) -> None:
    """New processes wait for the leases of the dead ones, and finish both."""
    released = stage.sandbox.release()
    say(f"\nThe {released} answers arrive, and nobody is there to hear them. Two new processes resume.")
    workers = {
        cast: stage.start(f"resume-{cast.thread_id}", "resume", cast.thread_id, "--wait", str(WAIT_S)) for cast in CASTS
    }
    for cast, worker in workers.items():
        worker.end()
        run = app.journal.runs.get(cast.thread_id)
        if run.state != "done":
            raise DemoFailed(f"{cast.thread_id} is {run.state}, not done", worker.said())
        say(f"  {cast.thread_id} was finished by process {worker.pid}.")


def _approve(stage: Stage, app: App, cast: Cast) -> Worker:
    waiting = app.journal.approvals.pending(thread_id=cast.thread_id)
    if len(waiting) != 1:
        raise DemoFailed(f"{cast.thread_id} asks {len(waiting)} questions, not one")
    return stage.start(f"approve-{cast.thread_id}", "approve", waiting[0].id, "--as", "adjuster-17")


def _at_its_moment(stage: Stage, app: App, cast: Cast) -> bool:
    """Whether the sandbox has executed the call whose outcome the ledger does not have yet."""
    effects = {one.effect: one.state for one in _effects(app, cast.thread_id)}
    if effects.get(cast.node) != "claimed":
        return False
    executed = {
        "pay": len(stage.sandbox.payments(cast.claim_id)),
        "notify": len(stage.sandbox.messages(cast.claim_id)),
    }
    return executed[cast.node] == 1 and (cast.node == "pay" or effects.get("pay") == "settled")


def _alive(app: App, cast: Cast, worker: Worker) -> bool:
    """Whether the system still knows the worker's process, or the journal somebody who holds the thread."""
    try:
        os.kill(worker.pid, 0)
    except ProcessLookupError:
        return app.journal.leases.holder(thread_lease(cast.thread_id)) is not None
    return True


def _standing(app: App, cast: Cast) -> StepView:
    step = timeline(app.graph, cast.thread_id).standing
    if step is None:
        raise DemoFailed(f"{cast.thread_id} stands in no step")
    return step


def _effects(app: App, thread_id: str) -> list[EffectRecord]:
    return app.journal.effects.list(thread_id=thread_id)


def _file(cast: Cast) -> Path:
    return EXAMPLES / cast.claim_id / "claim.json"
