"""
What a run waits for, and the exact command that takes it on.
"""

from __future__ import annotations

from dataclasses import dataclass
from shlex import quote
from typing import Any

from checkpointing import Approval, Journal, Run
from checkpointing.clock import to_ms
from checkpointing.leases import thread_lease
from service.cli.words import payload


@dataclass(frozen=True, slots=True)
class Advice:
    """
    What is the case with a run, and what to do about it.

    Attributes:
        what: One sentence.
        commands: What to type, in order of preference; empty where nothing is to be done.
    """

    what: str
    commands: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it for a program."""
        return {"what": self.what, "commands": list(self.commands)}


def advice(journal: Journal, run: Run) -> Advice:
    """Return what to do next about *run*; reads the journal, changes nothing."""
    match run.state:
        case "done":
            return Advice("The run is done; nothing is left to do.")
        case "dead":
            return Advice(
                f"The run is a dead letter ({run.reason}): {run.error}. Mend the cause, then:",
                (f"counterfoil redrive {quote(run.thread_id)} --as NAME",),
            )
        case "parked":
            return _parked(journal, run)
        case _:
            return _going(journal, run)


def _parked(journal: Journal, run: Run) -> Advice:
    if run.waits_for:
        resolve = f"counterfoil effects resolve {quote(run.waits_for)}"
        return Advice(
            f"The run waits for somebody to find out whether effect {run.waits_for} happened; no process is alive.",
            (
                f"{resolve} --happened JSON --as NAME",
                f"{resolve} --nothing-happened --as NAME",
            ),
        )
    pending = journal.approvals.pending(thread_id=run.thread_id)
    now = journal.store.now_ms()
    if not pending or any(one.expires_at and to_ms(one.expires_at) <= now for one in pending):
        return Advice(
            "The time to decide is over; advancing the run applies the outcome at expiry:",
            (_resume(run),),
        )
    asked = "; ".join(f"{one.name} ({', '.join(payload(one.payload))})" for one in pending)
    return Advice(
        f"The run waits for approval of {asked}; no process is alive.",
        tuple(command for one in pending for command in _decisions(one)),
    )


def _decisions(one: Approval) -> list[str]:
    return [f"counterfoil {kind} {one.id} --as NAME" for kind in ("approve", "reject") if kind in one.allowed]


def _going(journal: Journal, run: Run) -> Advice:
    if holder := journal.leases.holder(thread_lease(run.thread_id)):
        return Advice(
            f"Worker {holder} carries the run on. To wait for it:",
            (f"{_resume(run)} --wait 60",),
        )
    failed = f" The last attempt failed: {run.error}." if run.error else ""
    who = "its worker is gone" if run.state == "running" else "nobody is doing it"
    return Advice(f"There is something to do and {who}.{failed} To carry it on:", (_resume(run),))


def _resume(run: Run) -> str:
    return f"counterfoil resume {quote(run.thread_id)}"
