"""
Tables for people: runs, one run's timeline, approvals, effects.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from checkpointing import Approval, EffectRecord, Run
from checkpointing.budget import Caps, Taken
from graph.drawing import duration
from graph.timeline import StepView, Timeline
from service.cli import words
from service.cli.advice import Advice
from service.situation import Situation
from service.words import currency_of, effect_state, times, why

WIDEST_CHANGE = 25
"""Leaves room for an effect's key in a terminal of 100 columns."""

STYLES = {
    "done": "green",
    "settled": "green",
    "parked": "yellow",
    "pending": "yellow",
    "claimed": "yellow",
    "running": "cyan",
    "admitted": "cyan",
    "in_doubt": "bold red",
    "declined": "bold red",
    "dead": "bold red",
}


def stdout() -> Console:
    """Return the console for what was asked for."""
    return Console(highlight=False)


def stderr() -> Console:
    """Return the console for progress."""
    return Console(stderr=True, highlight=False)


def runs_table(runs: Iterable[Run], at: Situation) -> Table:
    """Show runs, a row each; one that is running on paper only says so."""
    table = empty_table("thread", "state", "why", "submitted by", "last change (UTC)")
    for run in runs:
        said = why(run) or words.short(run.error or "", 60)
        gone = run.state == "running" and at.holder(run.thread_id) is None
        table.add_row(
            Text(run.thread_id, overflow="fold"),
            Text("running, its worker is gone", "yellow") if gone else _state(run.state),
            Text(said),
            Text(run.submitted_by or "", overflow="fold"),
            words.instant(run.updated_at),
        )
    return table


def dead_table(runs: Iterable[Run]) -> Table:
    """Show dead letters, a row each."""
    table = empty_table("thread", "reason", "error", "step", "attempts", "since (UTC)")
    table.columns[4].justify = "right"
    for run in runs:
        table.add_row(
            Text(run.thread_id, overflow="fold"),
            Text(run.reason or "", overflow="fold"),
            Text(words.short(run.error or "", 120), overflow="fold"),
            Text(words.where(run), overflow="fold"),
            str(run.attempts),
            words.instant(run.updated_at),
        )
    return table


def approvals_table(approvals: Iterable[Approval], *, now: datetime) -> Table:
    """Show what waits for a decision, what expires first in front."""
    table = empty_table("approval", "thread", "name", "what is asked", "takes", "expires (UTC)")
    table.columns[0].no_wrap = True
    for one in approvals:
        table.add_row(
            one.id,
            Text(one.thread_id, overflow="fold"),
            Text("\n".join(filter(None, (one.name, words.line(words.asked_of(one))))), overflow="fold"),
            Text("\n".join(words.payload(one.payload)), overflow="fold"),
            "\n".join(one.allowed),
            _expiry(one, now),
        )
    return table


def every_approval_table(approvals: Iterable[Approval]) -> Table:
    """Show approvals, decided or not, first asked first."""
    table = empty_table("approval", "thread", "what is asked", "how it stands", "asked, decided (UTC)")
    table.columns[0].no_wrap = True
    for one in approvals:
        table.add_row(
            one.id,
            Text(one.thread_id, overflow="fold"),
            Text("\n".join(words.payload(one.payload)), overflow="fold"),
            Text("\n".join((words.approval(one), *words.decided(one))), overflow="fold"),
            "\n".join(words.instant(at) for at in (one.opened_at, one.decided_at) if at),
        )
    return table


def show_effects(console: Console, effects: Iterable[EffectRecord]) -> None:
    """Show effects in the order they are given."""
    for one in effects:
        outcome = "" if one.outcome is None or one.declined else f" {words.value(one.effect, one.outcome, '')}"
        state = effect_state(one)
        show_block(
            console,
            one.key,
            Text.assemble(_state(state), outcome, f": {words.line(one.declined)}" if one.declined else ""),
            f"{times(one)}, claimed {words.instant(one.claimed_at)} UTC",
            *([f"reissued as {one.reissued_as}"] if one.reissued_as else []),
        )


def show_block(console: Console, key: str, *facts: str | Text) -> None:
    """Show a key, and below it what there is to say of it; each on one line, however narrow the terminal, so that it can be copied."""
    console.print(Text(key, "bold"), soft_wrap=True)
    for fact in facts:
        console.print(Text.assemble("  ", fact), soft_wrap=True)


def show_timeline(console: Console, line: Timeline, *, now: datetime) -> None:
    """Show a run: how it stands, and what happened at every step."""
    run = line.run
    head = Text.assemble((run.thread_id, "bold"), " is ", _state(run.state))
    head.append(f" ({why(run)})" if run.reason else "")
    if outcome := (line.steps[-1].update.get("outcome") if line.steps else None):
        head.append(f": {outcome}")
    console.print(head)
    by = f" by {run.submitted_by}" if run.submitted_by else ""
    console.print(Text(f"submitted{by} at {words.instant(run.created_at)} UTC{_lives(run)}", "dim"))
    if run.error:
        console.print(Text(f"error: {run.error}", "red"))
    if line.steps:
        console.print(_steps_table(line, now=now))
    if keys := dict.fromkeys(one.key for step in line.steps for one in step.effects):
        console.print("Its effects:")
        for key in keys:
            console.print(Text(f"  {key}"), soft_wrap=True)


def show_taken(console: Console, line: Timeline, used: Taken, caps: Caps) -> None:
    """Show what the run has taken, and of how much where there is a cap."""
    state = {**line.steps[-1].before, **line.steps[-1].update} if line.steps else {}
    console.print(Text(f"taken: {words.taken(used, caps, currency_of(state))}", "dim"))


def show_advice(console: Console, said: Advice) -> None:
    """Show what to do next, each command on a line of its own so that it can be copied."""
    console.print(Text(said.what))
    for command in said.commands:
        console.print(Text(f"  {command}", "bold"), soft_wrap=True)


def empty_table(*columns: str) -> Table:
    """Return a table in the style of all of them, without rows."""
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        padding=(0, 1, 0, 0),
        header_style="bold",
    )
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _steps_table(line: Timeline, *, now: datetime) -> Table:
    again = any(step.attempts > 1 for step in line.steps)
    table = empty_table("step", "node", "changed", *(["starts"] if again else []), "effects, approvals, waits")
    table.columns[0].justify = "right"
    table.columns[2].max_width = WIDEST_CHANGE
    for step in line.steps:
        standing = step is line.standing
        starts = str(step.attempts) if step.attempts > 1 else ""
        table.add_row(
            str(step.number),
            Text(", ".join(step.nodes), "yellow" if standing else ""),
            Text("\n".join(words.changes(step)), overflow="fold"),
            *([starts] if again else []),
            Text("\n".join(_happened(step, line.run, standing=standing, now=now)), overflow="fold"),
        )
    return table


def _happened(step: StepView, run: Run, *, standing: bool, now: datetime) -> Sequence[str]:
    lines = [words.effect(one) for one in step.effects]
    lines += [part for one in step.approvals for part in (words.approval(one), *words.decided(one), one.id)]
    if step.waited > timedelta(0):
        lines.append(f"waited {duration(step.waited)}")
    if standing and run.state == "parked":
        lines.append(f"waits for {duration(now - run.updated_at)} now")
    return lines


def _lives(run: Run) -> str:
    """Say what is out of the ordinary: another turn, workers that died."""
    turn = f", turn {run.turn}" if run.turn > 1 else ""
    died = f", {run.resumes} of its workers died" if run.resumes > 1 else ""
    return turn + (", one of its workers died" if run.resumes == 1 else died)


def _expiry(one: Approval, now: datetime) -> str:
    if one.expires_at is None:
        return "never"
    if one.expires_at <= now:
        return f"{words.instant(one.expires_at)}\nover"
    return f"{words.instant(one.expires_at)}\nin {duration(one.expires_at - now)}"


def _state(state: str) -> Text:
    return Text(state.replace("_", " "), STYLES.get(state, ""))
