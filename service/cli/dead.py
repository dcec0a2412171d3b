"""The commands about dead letters: see them, take them up again, give them up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer
from rich.text import Text

from checkpointing import Journal, Run
from checkpointing.errors import InputRefused, RunDiscarded
from service.cli import show, words
from service.cli.advice import advice, unfinished
from service.cli.documents import run_document
from service.cli.exits import ReasonMissing, ending, named, print_json
from service.cli.options import As, AsJson, Reason, ThreadId, settings_of
from service.situation import EVERY, situation
from service.wiring import opened

PAGE = 1000
DiedOf = Annotated[
    str | None,
    typer.Option("--died-of", metavar="REASON", help="Only those with this reason, as `dead --json` has it: attempts."),
]


@ending
def dead(
    context: typer.Context,
    thread_id: Annotated[str | None, typer.Argument(metavar="ID", help="Show this one whole.")] = None,
    died_of: DiedOf = None,
    as_json: AsJson = False,
) -> None:
    """
    List the dead letters: runs that cannot go on by themselves, and wait for somebody to mend what stopped them; with ID show one whole.

    A run becomes one when its attempts at one step are used up, or at once where another attempt could only fail again. Nothing is lost: it
    stands at its last step. Once the cause is mended, `counterfoil redrive ID` takes it up from there, and no effect is repeated. What is
    not to go on at all is given up with `counterfoil discard ID`, and is not listed any more; `counterfoil list --state dead` has it.

    Example: counterfoil dead claim-0042
    """
    settings = settings_of(context)
    with opened(settings, must_exist=True) as journal:
        if thread_id is not None:
            _show_one(journal, journal.runs.get(thread_id), as_json=as_json)
            return
        found, at = list(_pages(journal, died_of)), situation(journal)
        if as_json:
            print_json([run_document(run, at) for run in found])
        elif found:
            show.stdout().print(show.dead_table(found))
        else:
            which = f" of reason {died_of}" if died_of else ""
            show.stdout().print(f"There is no dead letter{which} in {settings.place}.", markup=False, soft_wrap=True)


@ending
def redrive(
    context: typer.Context,
    thread_id: Annotated[str | None, typer.Argument(metavar="ID", help="The thread's id; or --all.")] = None,
    *,
    every: Annotated[
        bool, typer.Option("--all", help="Every dead letter that nobody gave up; takes --reason.")
    ] = False,
    died_of: DiedOf = None,
    principal: As = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """
    Take a dead letter up again from its last step, with all its attempts; no effect is repeated.

    Mend the cause first: `counterfoil dead ID` has it. The run is ready afterwards: a worker carries it on, or `counterfoil resume ID`.

    With --all every dead letter is taken up, or with --died-of those of one reason, each in a transaction of its own: if the command is
    killed in the middle, give it again. Whatever somebody else has taken up or given up meanwhile is left alone and counted.

    Example: counterfoil redrive claim-0042 --as operator-3 --reason "new API key"

    Example: counterfoil redrive --all --died-of rejected --as operator-3 --reason "new API key"
    """
    who = named(principal, command="redrive")
    if every == (thread_id is not None):
        raise InputRefused("redrive takes the ID of one thread, or --all, and not both")
    if died_of is not None and not every:
        raise InputRefused("--died-of chooses among all dead letters; give it with --all")
    with opened(settings_of(context), must_exist=True) as journal:
        if thread_id is None:
            _redrive_all(journal, who, _why(reason, "redrive --all"), died_of, as_json=as_json)
            return
        run = journal.runs.redrive(thread_id, principal=who, reason=reason or "")
        at = situation(journal, thread_id)
        if as_json:
            print_json(run_document(run, at))
            return
        show.show_advice(show.stdout(), advice(run, at))


@ending
def discard(
    context: typer.Context,
    thread_id: ThreadId,
    principal: As = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """
    Give a dead letter up for good: it is not listed and not redriven any more, and nobody is asked for it.

    What it still asks is withdrawn with it. What was executed stays executed, and an effect in doubt stays in doubt: `counterfoil effects
    resolve` and `counterfoil reconcile` find out. The job itself can be submitted again under another thread's id.

    Example: counterfoil discard claim-0042 --as operator-3 --reason "paid by cheque"
    """
    who = named(principal, command="discard")
    why = _why(reason, "discard")
    with opened(settings_of(context), must_exist=True) as journal:
        before = journal.runs.get(thread_id).discarded_at
        run = journal.runs.discard(thread_id, principal=who, reason=why)
        if as_json:
            print_json(run_document(run, situation(journal, thread_id)))
            return
        at = f" at {words.instant(run.discarded_at)} UTC" if run.discarded_at else ""
        said = f"{'Nothing was changed: ' if before else ''}{thread_id} was discarded by {run.discarded_by}{at}: {run.discarded_why}"
        show.stdout().print(Text(words.line(said)), soft_wrap=True)
        _show_unfinished(journal, run)


def redriven(journal: Journal, principal: str, reason: str, died_of: str | None) -> Iterator[tuple[str, bool]]:
    """Redrive every dead letter, each in a transaction of its own, and yield each thread and whether it was this call that redrove it."""
    for run in _pages(journal, died_of):
        try:
            journal.runs.redrive(run.thread_id, principal=principal, reason=reason)
        except (InputRefused, RunDiscarded):  # somebody was faster
            yield run.thread_id, False
        else:
            yield run.thread_id, True


def _redrive_all(journal: Journal, who: str, why: str, died_of: str | None, *, as_json: bool) -> None:
    taken: dict[bool, list[str]] = {True: [], False: []}
    for thread_id, ours in redriven(journal, who, why, died_of):
        taken[ours].append(thread_id)
    if as_json:
        print_json({"redriven": taken[True], "skipped": taken[False]})
        return
    count, skipped = len(taken[True]), len(taken[False])
    said = f"{count} {'dead letter is' if count == 1 else 'dead letters are'} ready again; workers carry them on."
    if skipped:
        said += f" {skipped} had been taken up or given up by somebody else meanwhile."
    show.stdout().print(said if taken[True] or taken[False] else "There is no dead letter to redrive.", soft_wrap=True)


def _pages(journal: Journal, died_of: str | None) -> Iterator[Run]:
    """Yield dead letters in the order of their threads, a page at a time, so that each is met once, however often it dies meanwhile."""
    after = ""
    while page := journal.runs.dead(reason=died_of, after=after, limit=PAGE):
        yield from page
        after = page[-1].thread_id


def _why(reason: str | None, command: str) -> str:
    if reason is None or not reason.strip():
        raise ReasonMissing(f"{command} needs --reason TEXT: why? It is recorded; nothing was changed")
    return reason


def _show_one(journal: Journal, run: Run, *, as_json: bool) -> None:
    if run.state != "dead":
        raise InputRefused(f"thread {run.thread_id!r} is {run.state}, which is no dead letter; see counterfoil show")
    at = situation(journal, run.thread_id)
    if as_json:
        print_json(run_document(run, at))
        return
    show.show_block(show.stdout(), run.thread_id, *words.dead_letter(run))
    _show_unfinished(journal, run)
    show.show_advice(show.stdout(), advice(run, at))


def _show_unfinished(journal: Journal, run: Run) -> None:
    for said in unfinished(journal.effects.list(thread_id=run.thread_id, limit=EVERY)):
        show.show_advice(show.stdout(), said)
