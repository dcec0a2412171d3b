"""The commands about runs: submit, list, show, resume, redrive."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from checkpointing import Journal, Run
from checkpointing.admissions import RunState
from checkpointing.clock import from_ms
from graph import thread
from graph.timeline import timeline
from service.cli import show as showing
from service.cli.advice import advice
from service.cli.documents import run_document, timeline_document
from service.cli.exits import ending, named, print_json
from service.cli.options import As, AsJson, Reason, ThreadId, settings_of
from service.cli.progress import advance, advance_when_free, report
from service.submission import accept, read_submission
from service.wiring import opened, wired

PAGE = 1000


@ending
def submit(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The claim file.")],
    thread_id: Annotated[str, typer.Option("--thread", metavar="ID", help="The thread that takes the claim.")],
    principal: As = None,
    as_json: AsJson = False,
) -> None:
    """
    Submit a claim file and run it until it waits or ends.

    The file is checked whole before anything is stored. Then the claim is filed, its documents are stored, and the run begins. After a
    crash, or when the claims system did not answer, give the same command again. Whoever submits a claim never approves it.

    Example: counterfoil submit examples/claims/0042/claim.json --thread claim-0042 --as intake
    """
    thread(thread_id)
    submission = read_submission(file)
    with wired(settings_of(context)) as app:
        accept(app, submission, thread_id)
        advance(app, submission.input, thread_id, principal=principal)
        report(app, thread_id, as_json=as_json)


@ending
def list_runs(
    context: typer.Context,
    state: Annotated[RunState | None, typer.Option(help="Only runs in this state.")] = None,
    as_json: AsJson = False,
) -> None:
    """
    List the runs, or those in one state.

    A run is admitted (somebody may take it up), running, parked (it waits, and no process is alive), done, or dead (a dead letter).

    Example: counterfoil list --state parked
    """
    settings = settings_of(context)
    with opened(settings) as journal:
        runs = _all_runs(journal, state)
        if as_json:
            print_json([run_document(journal, run) for run in runs])
        elif runs:
            showing.stdout().print(showing.runs_table(runs))
        else:
            which = f" in state {state}" if state else ""
            showing.stdout().print(f"There is no run{which} in {settings.place}.", markup=False)


@ending
def show(context: typer.Context, thread_id: ThreadId, as_json: AsJson = False) -> None:
    """
    Show what happened in a run, step by step, and what to do next.

    Each step has what it changed in the state, its effects with how often they were called and how often answered from the ledger, its
    approvals with who decided, and how long it waited. A step's number is that of the checkpoint it starts from. `starts` counts the
    workers that began at that very step; a step without a number was reached by a worker that had begun before it.

    Example: counterfoil show claim-0042
    """
    with wired(settings_of(context)) as app:
        line = timeline(app.graph, thread_id)
        if as_json:
            print_json(timeline_document(app.journal, line))
            return
        console = showing.stdout()
        showing.show_timeline(console, line, now=from_ms(app.journal.store.now_ms()))
        showing.show_advice(console, advice(app.journal, line.run))


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
    with wired(settings_of(context)) as app:
        advance_when_free(app, thread_id, wait_s=wait_s)
        report(app, thread_id, as_json=as_json)


@ending
def redrive(
    context: typer.Context,
    thread_id: ThreadId,
    principal: As = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """
    Take a dead letter up again from its last step; no effect is repeated.

    Mend the cause first: `counterfoil show ID` has it. The run is ready afterwards, and `counterfoil resume ID` carries it on.

    Example: counterfoil redrive claim-0042 --as operator-3 --reason "new API key"
    """
    who = named(principal, command="redrive")
    with opened(settings_of(context)) as journal:
        run = journal.runs.redrive(thread_id, principal=who, reason=reason or "")
        if as_json:
            print_json(run_document(journal, run))
            return
        showing.show_advice(showing.stdout(), advice(journal, run))


def _all_runs(journal: Journal, state: RunState | None) -> list[Run]:
    runs: list[Run] = []
    while page := journal.runs.list(state=state, after=runs[-1].thread_id if runs else "", limit=PAGE):
        runs += page
    return runs
