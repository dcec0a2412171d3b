"""
What the demo came to: payments and messages counted at the sandbox, calls and replays in the ledger, kills by exit codes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from checkpointing import EffectRecord
from service.demo_stage import Stage
from service.wiring import App


@dataclass(frozen=True, slots=True)
class Tally:
    """
    What one claim came to.

    Attributes:
        payments, messages: Executed at the sandbox.
        total: Of the payments, in minor units.
        state: The run's.
        effects: The run's rows in the ledger.
        executed: How many calls the sandbox executed, by the key they came with.
        repeated: How many it answered from its own memory of the key.
    """

    thread_id: str
    payments: int
    total: int
    messages: int
    state: str
    effects: tuple[EffectRecord, ...]
    executed: Mapping[str, int]
    repeated: Mapping[str, int]

    @property
    def once(self) -> bool:
        """Whether everything happened, and happened once."""
        return self.payments == 1 and self.messages == 1 and self.state == "done"


@dataclass(frozen=True, slots=True)
class Report:
    """
    What the demo came to.

    Attributes:
        kills: Processes that ended by SIGKILL.
        faults: What is wrong with the audit; empty if it is whole.
    """

    tallies: tuple[Tally, ...]
    kills: int
    faults: tuple[str, ...]

    @property
    def once(self) -> bool:
        """Whether the demo showed what it promises."""
        return all(one.once for one in self.tallies) and self.kills == len(self.tallies) and not self.faults

    def as_json(self) -> dict[str, Any]:
        """Return it for a program; `total` is in major units."""
        claims = {
            one.thread_id: {"payments": one.payments, "total": major(one.total), "state": one.state}
            for one in self.tallies
        }
        return {"claims": claims, "kills": self.kills}


def count(stage: Stage, app: App, claim_ids: Mapping[str, str]) -> Report:
    """Count at the sandbox what happened to each claim, and read in the journal what is on record; *claim_ids* are by thread."""
    calls = stage.sandbox.calls()
    executed = Counter(call["key"] for call in calls if call["executed"])
    repeated = Counter(call["key"] for call in calls if call["outcome"] == "replayed")
    tallies = []
    for thread_id, claim_id in claim_ids.items():
        payments = stage.sandbox.payments(claim_id)
        tallies.append(
            Tally(
                thread_id=thread_id,
                payments=len(payments),
                total=sum(payment.amount for payment in payments),
                messages=len(stage.sandbox.messages(claim_id)),
                state=app.journal.runs.get(thread_id).state,
                effects=tuple(app.journal.effects.list(thread_id=thread_id)),
                executed=executed,
                repeated=repeated,
            )
        )
    kills = sum(worker.killed for worker in stage.workers)
    return Report(tuple(tallies), kills, tuple(app.journal.audit.verify()))


def tell(report: Report, say: Callable[[str], None]) -> None:
    """Say what was counted, line by line."""
    say(
        "\nBoth waited for approval with no process alive, and both workers were killed. The payment provider counts:\n"
    )
    for one in report.tallies:
        say(f"{one.thread_id}: {_counted(one.payments, 'payment')}, total {major(one.total)}")
    say("")
    for one in report.tallies:
        say(f"{one.thread_id}: {_counted(one.messages, 'message')} to the claimant")
    say("\nWhat was called, each effect under one key (repeated: by the receiver; replays: by the ledger):")
    for one in report.tallies:
        for effect in one.effects:
            say(f"  {one.thread_id}  {effect.effect:<8}{_called(one, effect)}")
    for fault in report.faults:
        say(f"Audit: {fault}")
    say("\nAudit verified: every chain is whole." if not report.faults else "\nThe audit is not whole.")
    if not report.once:
        say("Something did not happen exactly once.")


def _called(tally: Tally, effect: EffectRecord) -> str:
    """Say how often an effect was called, what the receiver made of it, and how often the ledger answered."""
    said = _counted(effect.calls, "call")
    if executed := tally.executed.get(effect.key):
        said += f": {executed} executed, {tally.repeated.get(effect.key, 0)} repeated"
    return f"{said}; {_counted(effect.replays, 'replay')}"


def major(minor: int) -> int | float:
    """Return minor units as major ones, an integer where they are whole."""
    return minor // 100 if minor % 100 == 0 else minor / 100


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
