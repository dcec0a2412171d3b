"""
The stories that a crash cuts short: what happened before, what the process does that dies, and what its claim is like.

A story is data. `tell` brings the claim to where the process dies; `run_to_the_end` is what operators and workers do afterwards, whatever the
story was: mend the bank, submit, decide, find out, redrive, resume.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from checkpointing import Journal, open_journal
from checkpointing.errors import EffectInDoubt, EffectUnsettled, Rejected, RunBusy, TryAgain
from graph import DurableGraph, thread
from tests.support.bank import Bank
from tests.support.points import die_after, die_at
from tests.support.processes import finish, start, until
from tests.support.small_claim import LEASE, THREAD, act, small_claim
from tools import Receiver

DOCUMENT = b"a photograph of a van"
OPERATOR = "operator-3"


@dataclass(frozen=True)
class Story:
    """
    One way to a crash.

    Attributes:
        dying: What the process does that dies: an action of `do`.
        before: What happened first, each action in a process of its own; `action, point` is one that died there.
        claim: What the claim is like, as `small_claim` takes it.
        raw: The graph runs as LangGraph's own, so there is no run.
    """

    dying: str
    before: tuple[str | tuple[str, str], ...] = ()
    claim: Mapping[str, Any] = field(default_factory=dict)
    raw: bool = False


FORGETFUL = {"receiver": Receiver()}
"""A bank with neither keys nor a look-up: doubt takes a person."""

STORIES = {
    "submitting": Story("submit"),
    "approving": Story("approve", before=("submit",)),
    "opening": Story("open"),
    "keeping a document": Story("keep"),
    "working slowly": Story("approve at a slow bank", before=("submit",)),
    "no answer": Story("approve at a silent bank", before=("submit",)),
    "wrong request": Story("approve at a refusing bank", before=("submit",)),
    "redriving": Story("redrive", before=("submit", "approve at a refusing bank")),
    "found out": Story("resolve", before=("submit", ("approve", "executed"), ("resume", "after run.park")), claim=FORGETFUL),
    "overdue": Story("resume", before=("submit",), claim={"ttl": timedelta(milliseconds=1)}),
    "without a run": Story("submit raw", raw=True),
    "forgetting": Story("forget", before=("submit", "approve")),
}  # fmt: skip


def tell(name: str, url: str, folder: Path, point: str, nth: int = 1) -> None:
    """Let the story happen and its process die at *point*."""
    for step in STORIES[name].before:
        if isinstance(step, str):
            finish(start(one_act, url, folder, name, step))
        else:
            dies(url, folder, name, *step)
    dies(url, folder, name, STORIES[name].dying, point, nth)


def dies(url: str, folder: Path, name: str, action: str, point: str, nth: int = 1) -> None:
    """Start processes until one of them has died at *point*; those before it met the lease of an earlier dead one."""

    def died() -> bool | None:
        process = start(one_act, url, folder, name, action, point, nth)
        process.join(60)
        if process.exitcode == BUSY:
            return None
        assert process.exitcode == -9, f"{action!r} did not die at {point!r}, it ended with {process.exitcode}"
        return True

    until(died)


BUSY = 75
"""How a process ends that met a lease."""


def one_act(url: str, folder: Path, name: str, action: str, point: str | None = None, nth: int = 1) -> None:
    """Be a process: do one *action* of the story, and die at *point* if one is given."""
    if point == "executed":
        die_after(Bank, "execute")
    elif point:
        die_at(point, nth=nth)
    with open_journal(url, lease=LEASE, artefacts=str(folder / "artefacts")) as journal:
        graph = small_claim(journal, folder, **STORIES[name].claim)
        try:
            do(graph, folder, action)
        except RunBusy:
            raise SystemExit(BUSY) from None
        except (EffectInDoubt, EffectUnsettled, Rejected):
            pass  # how a story goes


def do(graph: DurableGraph, folder: Path, action: str) -> None:
    """Do one thing to the claim."""
    plain, _, mood = action.removesuffix(" bank").partition(" at a ")
    Bank(folder / "bank").become(mood)
    match plain:
        case "open":
            pass
        case "keep":
            graph.journal.artefacts.put(DOCUMENT, name="van.jpg", media_type="image/jpeg")
        case "redrive":
            graph.journal.runs.redrive(THREAD, principal=OPERATOR)
        case "resolve":
            resolve(graph.journal, folder)
        case "forget":
            graph.journal.saver.delete_thread(THREAD)
        case "submit raw":
            graph.compiled.invoke({"claim_id": "0042"}, thread(THREAD))
        case _:
            act(graph, plain)


def resolve(journal: Journal, folder: Path) -> None:
    """Find out what happened to the payment in doubt, and say so."""
    [doubtful] = journal.effects.list(thread_id=THREAD, state="in_doubt")
    [paid] = [call for call in Bank(folder / "bank").executed if call["key"] == doubtful.key]
    journal.effects.resolve(doubtful.key, happened=True, outcome=paid, principal=OPERATOR)


def run_to_the_end(name: str, url: str, folder: Path) -> Journal:
    """Do what is left to do, in this process, as soon as the dead one's lease allows it; the journal is the caller's to close."""
    journal = open_journal(url, artefacts=str(folder / "artefacts"))
    graph = small_claim(journal, folder, **STORIES[name].claim)
    step = raw_step if STORIES[name].raw else durable_step

    def ended() -> bool | None:
        with suppress(TryAgain):
            return step(graph, folder)
        return None

    until(ended)
    return journal


def durable_step(graph: DurableGraph, folder: Path) -> bool | None:
    """Do the next thing to a run; true once there is nothing left."""
    run = graph.journal.runs.find(THREAD)
    if run is None:
        do(graph, folder, "submit")
    elif run.state == "done":
        return True
    elif run.state == "dead":
        do(graph, folder, "redrive")
    elif run.waits_for:
        do(graph, folder, "resolve")
    elif any(one.expires_at is None for one in graph.journal.approvals.pending(thread_id=THREAD)):
        do(graph, folder, "approve")
    else:
        do(graph, folder, "resume")
    return None


def raw_step(graph: DurableGraph, folder: Path) -> bool | None:
    """Do the next thing to a thread that LangGraph's own graph runs."""
    journal, config = graph.journal, thread(THREAD)
    if not journal.saver.head(THREAD):
        do(graph, folder, "submit raw")
    elif pending := journal.approvals.pending(thread_id=THREAD):
        journal.approvals.decide(pending[0].id, {"type": "approve"}, principal="adjuster-17")
    elif not graph.compiled.get_state(config).tasks:
        return True
    else:
        graph.compiled.invoke(None, config)
    return None
