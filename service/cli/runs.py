"""The commands about runs: submit, list, show, resume."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Annotated

import typer

from checkpointing import Journal, Run
from checkpointing.admissions import RunState
from checkpointing.clock import from_ms
from checkpointing.errors import RunBusy
from graph import thread
from graph.timeline import timeline
from service.cli import show as showing
from service.cli.advice import advice, declined
from service.cli.documents import run_document, taken_document, timeline_document
from service.cli.exits import ending, named, print_json
from service.cli.options import As, AsJson, Detach, ThreadId, settings_of
from service.cli.progress import advance, advance_when_free, leave, report
from service.cli.rounds import with_every_round
from service.notices.graph import NAME as NOTICES
from service.situation import busy, situation
from service.submission import accept, is_unfinished, read_submission
from service.wiring import opened, wired

PAGE = 1000
CARRIED_ON = "is being carried on by {owner}, which holds it for another {left}"


@ending
def submit(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The claim file.")],
    *,
    thread_id: Annotated[str, typer.Option("--thread", metavar="ID", help="The thread that takes the claim.")],
    principal: As = None,
    detach: Detach = False,
    as_json: AsJson = False,
) -> None:
    """
    Submit a claim file and run it until it waits or ends, or with --detach leave it to the workers.

    The file is checked whole before anything is stored. Then `submit` itself files the claim at the claims system, stores its documents,
    and begins the run. After a crash, or when the claims system did not answer, give the same command again. Whoever submits a claim
    never approves it; without --as that is the user you are logged in as.

    The same claim again for the same thread: if its run is parked, done or dead, that is an error, and the exit code is 2. If the run is
    admitted or running and nobody holds the thread (a submit that was killed, an attempt that was left unfinished), it is carried on and
    reported as usual, with exit code 0. While somebody holds the thread the exit code is 4. A file whose content differs from what was
    filed under its id is refused, with exit code 2.

    A claim that `counterfoil sandbox --load` has filed is filed for the thread `claim-ID`: submit it with that --thread.

    Example: counterfoil submit examples/claims/0042/claim.json --thread claim-0042 --as intake
    """
    thread(thread_id)
    who = getpass.getuser() if principal is None else named(principal, command="submit")
    submission = read_submission(file)
    with wired(settings_of(context)) as app:
        try:
            if is_unfinished(app, submission, thread_id):
                if not detach:
                    advance(app, None, thread_id)
            else:
                accept(app, submission, thread_id)
                carry_on = leave if detach else advance
                carry_on(app, submission.input, thread_id, principal=who)
        except RunBusy as held:
            raise busy(app.journal, thread_id, CARRIED_ON) from held
        report(app, thread_id, as_json=as_json, detached=detach)


@ending
def list_runs(
    context: typer.Context,
    state: Annotated[RunState | None, typer.Option(help="Only runs in this state.")] = None,
    graph: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only runs of the graph of this name, as notices.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """
    List the runs, or those in one state; those that send notices only with --graph notices.

    A run is admitted (somebody may take it up), running, parked (it waits, and no process is alive), done, or dead (a dead letter). A
    running run whose worker is gone waits for `counterfoil resume ID`.

    Example: counterfoil list --state parked
    """
    settings = settings_of(context)
    with opened(settings, must_exist=True) as journal:
        runs, at = [run for run in all_runs(journal, state) if _is_listed(run, graph)], situation(journal)
        if as_json:
            print_json([run_document(run, at) for run in runs])
        elif runs:
            showing.stdout().print(showing.runs_table(runs, at))
        else:
            which = f"{f' of graph {graph}' if graph else ''}{f' in state {state}' if state else ''}"
            showing.stdout().print(f"There is no run{which} in {settings.place}.", markup=False, soft_wrap=True)


@ending
def show(context: typer.Context, thread_id: ThreadId, as_json: AsJson = False) -> None:
    """
    Show what happened in a run, step by step, and what to do next.

    Each step has what it changed in the state, its effects with how often they were called and how often answered from the ledger, its
    approvals with who decided what and why, and how long it waited. A step's number is that of the checkpoint it starts from. `starts`
    stands there if more than one worker began at the same step, and counts them.

    Example: counterfoil show claim-0042
    """
    with wired(settings_of(context), must_exist=True) as app:
        line = with_every_round(timeline(app.graph, thread_id), app.journal.approvals.of_thread(thread_id))
        at = situation(app.journal, thread_id)
        used = app.journal.runs.taken(thread_id)
        if as_json:
            print_json({**timeline_document(line, at), **taken_document(used, app.settings.caps)})
            return
        console = showing.stdout()
        showing.show_timeline(console, line, now=from_ms(at.now_ms))
        showing.show_taken(console, line, used, app.settings.caps)
        showing.show_advice(console, advice(line.run, at))
        if again := declined(line):
            showing.show_advice(console, again)


@ending
def resume(
    context: typer.Context,
    thread_id: ThreadId,
    wait_s: Annotated[
        float,
        typer.Option("--wait", metavar="SECONDS", min=0, help="How long to wait for a held thread."),
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """
    Carry a run on: whatever is left to do, nothing if nothing is.

    After a crash this takes the run up at its last step; what was done is read from the record and not done again. A run that waits for
    a decision goes on waiting, unless its time is over. A worker that was killed keeps the thread until its lease ends; with --wait the
    command waits for that.

    Example: counterfoil resume claim-0042 --wait 60
    """
    with wired(settings_of(context), must_exist=True) as app:
        advance_when_free(app, thread_id, wait_s=wait_s)
        report(app, thread_id, as_json=as_json)


def all_runs(journal: Journal, state: RunState | None = None) -> list[Run]:
    """Return every run, or those in one state, in order of their thread ids."""
    runs: list[Run] = []
    while page := journal.runs.list(state=state, after=runs[-1].thread_id if runs else "", limit=PAGE):
        runs += page
    return runs


def _is_listed(run: Run, graph: str | None) -> bool:
    """Tell whether the run is of the *graph* asked for; where none is, of any that does not only tell of others."""
    return run.graph != NOTICES if graph is None else run.graph == graph
