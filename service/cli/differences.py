"""
What a reconciliation found, for people and as JSON. Neither holds all of it: people get the first of each kind, JSON is written as it is read.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from shlex import quote
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from service.cli import show, words
from service.findings import DIFFERENCES
from service.scratch import Scratch

SHOWN = 50
"""How many findings of a kind people are shown."""

HEADINGS = {
    "missing": "Settled here, missing there",
    "unknown": "Executed there, unknown here",
    "lost": "Executed there, lost here with the restored copy",
    "unsettled": "Executed there, not settled here",
    "differs": "The two sides do not agree",
    "twice": "Executed more than once",
    "incomparable": "Settled here by a person, and not to be compared; no difference",
    "awaited": "Recorded as executed before the journal was restored, and not asked for yet; no difference",
    "in_progress": "In progress, or too young to be judged; no difference yet",
}

NEXT = {
    "missing": "Ask the receiver what became of it: the run went on as if it had happened. What is on record here:",
    "unknown": (
        "It cannot be adopted: nobody here knows what it was for. Another journal may use the same account; "
        "else somebody executed it by hand, or a record was lost. To ask another journal:"
    ),
    "lost": "To have each of them answer the run that asks for it, so that it is not executed again:",
    "unsettled": "The receiver has executed it. To settle it with that, so that its run goes on and it is not done again:",
    "differs": "Find out at the receiver which side is right; what is on record here stays as it is:",
    "twice": "Take back at the receiver what is too much. What is on record here:",
    "incomparable": "Only whoever settled it, or the receiver's own people, can say whether it was executed. What is on record here:",
    "awaited": "Their runs are answered with them; nothing is to be done.",
    "in_progress": "Compare again in some minutes.",
}

UNFIT = "Its facts are not those that were asked for, so a person must say what happened:"
UNFIT_RELEASED = (
    "Its facts are not those that were asked for, and it is released here as not executed: the next attempt executes it again. "
    "Take it back at the receiver before its run goes on. What is on record here:"
)


@dataclass(frozen=True, slots=True)
class Listed:
    """
    What was compared of one effect.

    Attributes:
        executed: How many executions its receiver listed.
        unidentified: How many of these have neither a key nor an identity, so that nobody can tell them from other people's.
    """

    effect: str
    executed: int
    unidentified: int


@dataclass(frozen=True, slots=True)
class Report:
    """
    How a reconciliation ended.

    Attributes:
        since: The begin of the window; `None`: everything.
        scratch: Has the findings.
        given: The options that say what was compared, as they were given; `--fix` goes with the same ones.
    """

    since: datetime | None
    listed: tuple[Listed, ...]
    scratch: Scratch
    given: tuple[str, ...] = ()

    @property
    def left(self) -> int:
        """How many differences are left."""
        return sum(
            count for (kind, adopted), count in self.scratch.totals().items() if kind in DIFFERENCES and not adopted
        )


def print_document(report: Report) -> None:
    """Write the report as one JSON document, a finding at a time."""
    totals = report.scratch.totals()
    head = {
        "since": report.since.isoformat() if report.since else None,
        "agrees": report.left == 0,
        "differences": report.left,
        "adopted": sum(count for (_, adopted), count in totals.items() if adopted),
        "awaited": totals.get(("awaited", False), 0),
        "incomparable": totals.get(("incomparable", False), 0),
        "in_progress": totals.get(("in_progress", False), 0),
        "listed": [
            {"effect": one.effect, "executed": one.executed, "unidentified": one.unidentified} for one in report.listed
        ],
    }
    typer.echo(json.dumps(head, indent=2, ensure_ascii=False).removesuffix("\n}") + ',\n  "findings": [', nl=False)
    separator = "\n"
    for _, finding in report.scratch.findings():
        typer.echo(f"{separator}    {json.dumps(finding, ensure_ascii=False)}", nl=False)
        separator = ",\n"
    typer.echo("\n  ]\n}")


def print_report(report: Report, principal: str | None) -> None:
    """Show the report to a person, with what to do next."""
    console = show.stdout()
    totals = report.scratch.totals()
    for kind, heading in HEADINGS.items():
        if count := totals.get((kind, False), 0):
            fix = shlex.join(("counterfoil", "reconcile", "--fix", "--as", principal or "NAME", *report.given))
            _show_kind(console, report.scratch, kind, f"{heading} ({count})", fix)
    if count := totals.get(("unsettled", True), 0):
        _show_adopted(console, report.scratch, count)
    if count := totals.get(("lost", True), 0):
        _show_recorded(console, report.scratch, count)
    for one in report.listed:
        console.print(Text(_compared(one, report.since)))
    console.print(Text(_verdict(report.left, totals.get(("in_progress", False), 0))))


def _verdict(left: int, in_progress: int) -> str:
    if left:
        return f"{left} differences." if left > 1 else "1 difference."
    return f"The ledger and its receivers agree{f', except {in_progress} in progress' if in_progress else ''}."


def _show_kind(console: Console, scratch: Scratch, kind: str, heading: str, fix: str) -> None:
    rows = [finding for _, finding in islice(scratch.findings(kind), SHOWN + 1)]
    console.print(Text(heading, "bold red" if kind in DIFFERENCES else "yellow"))
    for finding in rows[:SHOWN]:
        show.show_block(
            console,
            words.line(finding["key"] or finding["effect"]),
            *map(words.line, _why(finding)),
            f"here: {', '.join(_here(finding))}",
            f"there: {', '.join(_there(finding))}",
        )
    if len(rows) > SHOWN:
        console.print(f"These are the first {SHOWN}; --json has them all.")
    fit = [finding for finding in rows[:SHOWN] if not (kind == "unsettled" and finding["differences"])]
    if fit:
        _show_next(console, NEXT[kind], _commands(kind, fit, fix))
    unfit = [finding for finding in rows[:SHOWN] if finding not in fit]
    if open_keys := [quote(one["key"]) for one in unfit if one["state"] != "released"]:
        _show_next(
            console, UNFIT, [f"counterfoil effects resolve {key} --happened JSON --as NAME" for key in open_keys]
        )
    if released := [quote(one["key"]) for one in unfit if one["state"] == "released"]:
        _show_next(console, UNFIT_RELEASED, [f"counterfoil effects show {key}" for key in released])
    console.print()


def _show_adopted(console: Console, scratch: Scratch, count: int) -> None:
    console.print(Text(f"Adopted ({count}): settled with what the receiver executed", "green"))
    rows = [finding for _, finding in islice(scratch.findings("unsettled", adopted=True), SHOWN)]
    for finding in rows:
        console.print(Text(f"  {words.line(finding['key'])}: {', '.join(_there(finding))}"), soft_wrap=True)
    if count > SHOWN:
        console.print(f"These are the first {SHOWN}; --json has them all.")
    if ready := dict.fromkeys(thread_id for finding in rows for thread_id in finding.get("ready", ())):
        _show_next(console, "To carry their runs on:", [f"counterfoil resume {quote(one)}" for one in ready])
    console.print()


def _show_recorded(console: Console, scratch: Scratch, count: int) -> None:
    console.print(Text(f"Recorded ({count}): whoever asks for one of these is answered with it", "green"))
    for _, finding in islice(scratch.findings("lost", adopted=True), SHOWN):
        said = f"  {words.line(finding['key'] or finding['effect'])}: {', '.join(_there(finding))}; {finding['why']}"
        console.print(Text(said), soft_wrap=True)
    if count > SHOWN:
        console.print(f"These are the first {SHOWN}; --json has them all.")
    console.print()


def _show_next(console: Console, what: str, commands: list[str]) -> None:
    console.print(Text(what))
    for command in commands:
        console.print(Text(f"  {words.line(command)}", "bold"), soft_wrap=True)


def _commands(kind: str, findings: list[dict[str, Any]], fix: str) -> list[str]:
    """Return the commands that take these findings on, each once."""
    if kind in ("unsettled", "lost"):
        return [fix]
    if kind in ("in_progress", "awaited"):
        return []
    if kind == "unknown":
        return [f"counterfoil --url URL effects show {quote(f['key'])}" for f in findings if f["key"]]
    keys = dict.fromkeys(str(finding["slot_key"]) for finding in findings if finding["slot_key"])
    return [f"counterfoil effects show {quote(key)}" for key in keys]


def _here(finding: Mapping[str, Any]) -> Iterator[str]:
    """Say what the ledger has."""
    if finding["state"] is None:
        yield "nothing"
        return
    yield str(finding["state"]).replace("_", " ")
    if finding["recorded"] is not None:
        yield words.value(finding["effect"], finding["recorded"], "")


def _there(finding: Mapping[str, Any]) -> Iterator[str]:
    """Say what the receiver has."""
    executed = finding["executed"]
    if executed is None:
        yield "nothing"
        return
    yield words.value(finding["effect"], executed["outcome"], "")
    yield f"{words.instant(datetime.fromisoformat(executed['at']))} UTC"


def _why(finding: Mapping[str, Any]) -> Iterator[str]:
    yield finding["why"]
    currency = str((finding["executed"] or {"outcome": {}})["outcome"].get("currency", ""))
    for one in finding["differences"]:
        if one["field"] == "taken_back":
            yield "taken back by the receiver"
        else:
            yield f"{one['field']}: {_fact(one['field'], one['here'], currency)} → {_fact(one['field'], one['there'], currency)}"


def _fact(field: str, value: Any, currency: str) -> str:
    """Return one side of a difference, an amount as money."""
    if field == "amount" and isinstance(value, int) and currency:
        return words.money(value, currency)
    return words.line(str(value))


def _compared(one: Listed, since: datetime | None) -> str:
    """Say what was compared, and what could not be."""
    window = f" since {words.instant(since)} UTC" if since else ""
    said = f"{one.effect}: {one.executed} executed at its receiver{window}"
    if one.unidentified:
        said += f", {one.unidentified} of them without a key or an identity: those were looked at by their ids alone"
    return said + "."
