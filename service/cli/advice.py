"""
What a run waits for, and the exact command that takes it on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from shlex import quote
from typing import Any

from checkpointing import Approval, EffectRecord, Run
from checkpointing.clock import to_ms
from graph.claims import NAME
from graph.timeline import Timeline
from service.cli import words
from service.notices.graph import NAME as NOTICES
from service.situation import Situation
from service.words import why


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


def advice(run: Run, at: Situation) -> Advice:
    """Return what to do next about *run* in this situation."""
    match run.state:
        case "done":
            return Advice("The run is done; nothing is left to do.")
        case "dead":
            return _dead(run)
        case "parked":
            return _parked(run, at)
        case _:
            return _going(run, at)


def declined(line: Timeline) -> Advice | None:
    """Return how to try again what a receiver declined, if anything was and is not yet."""
    return _reissue([one for step in line.steps for one in step.effects])


def unfinished(effects: Iterable[EffectRecord]) -> Iterator[Advice]:
    """Yield what is to be done about the effects of a run that will not, or may not, go on: those in doubt, and those that were declined."""
    found = list(effects)
    doubtful = [one.key for one in found if one.state in ("claimed", "in_doubt")]
    if doubtful:
        yield Advice(
            "Nobody knows yet whether this happened; find out, or redrive the run, which asks the receiver again where that is possible:",
            tuple(f"counterfoil effects resolve {quote(key)} --happened JSON --as NAME" for key in doubtful),
        )
    if again := _reissue(found):
        yield again


def carried_on_here(run: Run | None) -> bool:
    """Tell whether these commands can carry the run on: it is the claims graph's, and has a row."""
    return run is not None and run.graph == NAME


def in_python(thread_id: str) -> str:
    """Return how another graph's run is carried on."""
    return f"graph.invoke(None, thread({thread_id!r}))"


def _reissue(effects: Iterable[EffectRecord]) -> Advice | None:
    keys = dict.fromkeys(one.key for one in effects if one.declined is not None and one.reissued_as is None)
    if not keys:
        return None
    return Advice(
        "Its receiver declined an effect. Once the cause is mended, to try it again under a new key:",
        tuple(f"counterfoil effects reissue {quote(key)} --as NAME" for key in keys),
    )


def _dead(run: Run) -> Advice:
    """Return what to do about a dead letter; what helps first stands first."""
    said = f"The run is a dead letter ({why(run)}): {run.error}."
    if run.discarded_by:
        return Advice(f"{said} It was given up; nothing is left to do.")
    redrive = f"counterfoil redrive {quote(run.thread_id)} --as NAME"
    discard = f"counterfoil discard {quote(run.thread_id)} --as NAME --reason TEXT"
    if run.reason in words.HOPELESS:
        return Advice(f"{said} {words.HOPELESS[run.reason]}:", (discard, redrive))
    return Advice(
        f"{said} {words.MEND.get(run.reason or '', 'Mend the cause')}, then redrive it; or give it up:",
        (redrive, discard),
    )


def _parked(run: Run, at: Situation) -> Advice:
    if run.waits_for:
        resolve = f"counterfoil effects resolve {quote(run.waits_for)}"
        return Advice(
            f"The run waits for somebody to find out whether effect {run.waits_for} happened; no process is alive.",
            (
                f"{resolve} --happened JSON --as NAME",
                f"{resolve} --nothing-happened --as NAME",
            ),
        )
    pending = at.pending.get(run.thread_id, [])
    if not pending or any(one.expires_at and to_ms(one.expires_at) <= at.now_ms for one in pending):
        return Advice(
            "The time to decide is over; advancing the run applies the outcome at expiry:",
            (_resume(run),),
        )
    if not carried_on_here(run):
        return Advice("The run waits for a decision; its own graph takes it, in Python:", (_decide_in_python(run),))
    asked = "; ".join(f"{one.name} ({', '.join(words.payload(one.payload))})" for one in pending)
    return Advice(
        f"The run waits for approval of {asked}; no process is alive.",
        tuple(command for one in pending for command in _decisions(one)),
    )


def _decisions(one: Approval) -> list[str]:
    """Return a command for every kind of decision that is taken; an edit gives the whole payload anew, here as it is asked."""
    given = {"approve": "", "reject": "", "edit": f" --payload {quote(json.dumps(one.payload, ensure_ascii=False))}"}
    return [f"counterfoil {kind} {one.id} --as NAME{more}" for kind, more in given.items() if kind in one.allowed]


def _going(run: Run, at: Situation) -> Advice:
    if holder := at.holder(run.thread_id):
        going = f"Worker {holder.owner} carries the run on."
        if not carried_on_here(run):
            return Advice(going)
        return Advice(f"{going} To wait for it:", (f"{_resume(run)} --wait 60",))
    failed = f" The last attempt failed: {run.error}." if run.error else ""
    who = "its worker is gone" if run.state == "running" else "nobody is doing it"
    later = "A worker takes it up" if run.due_at is None or to_ms(run.due_at) <= at.now_ms else _later(run.due_at)
    if run.graph == NOTICES:
        return Advice(f"There is something to tell and {who}.{failed} {later} (counterfoil worker).")
    worker, where = ("", "here") if carried_on_here(run) else (" --graph MODULE:FUNCTION", "in Python")
    return Advice(
        f"There is something to do and {who}.{failed} {later} (counterfoil worker{worker}). To carry it on {where}:",
        (_resume(run),),
    )


def _later(due: datetime) -> str:
    """Say from when on a worker takes the run up."""
    return f"A worker takes it up from {due:%H:%M:%S} UTC on"


def _resume(run: Run) -> str:
    """Return the command; of another graph's run, what its own program says."""
    return f"counterfoil resume {quote(run.thread_id)}" if carried_on_here(run) else in_python(run.thread_id)


def _decide_in_python(run: Run) -> str:
    return f"graph.invoke(approve(request), thread({run.thread_id!r}, principal=NAME))"
