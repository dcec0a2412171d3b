"""The demo, and the commands about the record of who did what: demo, audit verify, audit show."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from checkpointing.audit import ACCESS
from checkpointing.errors import InputRefused
from service.cli import show, words
from service.cli.documents import entry_document
from service.cli.exits import Exit, ending, print_json
from service.cli.options import AsJson, settings_of
from service.demo import play
from service.demo_stage import EngineName
from service.demo_worker import DemoFailed
from service.wiring import opened


@ending
def demo(
    context: typer.Context,
    engine: Annotated[EngineName, typer.Option(help="Where the journal is.")] = "sqlite",
    keep: Annotated[Path | None, typer.Option(metavar="DIR", help="Play in this new folder and keep it.")] = None,
    as_json: AsJson = False,
) -> None:
    """
    See it work: two claims, two processes killed at the worst moment, one payment each. Takes less than a minute.

    Needs nothing: it starts a sandbox, submits two claims, approves them, kills both approving processes with SIGKILL, resumes, and
    counts the payments at the sandbox. On Postgres it uses a schema of its own where COUNTERFOIL_URL is a Postgres URL, and else
    starts a server for itself. Exit code 1 if anything did not happen exactly once.

    Example: counterfoil demo
    """
    console = show.stdout()

    def say(line: str) -> None:
        if not as_json:
            console.print(Text(line), soft_wrap=True)

    try:
        report = play(engine, say, given=settings_of(context), keep=keep)
    except DemoFailed as failed:
        if failed.log:
            typer.echo(failed.log.rstrip(), err=True)
        raise
    except KeyboardInterrupt:
        typer.echo("counterfoil: interrupted; every process of the demo has ended", err=True)
        raise
    if as_json:
        print_json(report.as_json())
    if not report.once:
        raise typer.Exit(Exit.WRONG)


@ending
def audit_verify(context: typer.Context, as_json: AsJson = False) -> None:
    """
    Verify the audit: that no entry was changed, removed, added or moved, and that everything on record has its entry.

    Prints a line for every fault. Exit code 1 if there is one, 0 if the chains are whole.

    Example: counterfoil audit verify
    """
    with opened(settings_of(context), must_exist=True) as journal:
        faults = list(journal.audit.verify())
    if as_json:
        print_json({"whole": not faults, "faults": faults})
    for fault in [] if as_json else faults:
        typer.echo(fault)
    if faults:
        raise typer.Exit(Exit.WRONG)
    if not as_json:
        typer.echo("The audit is whole.")


@ending
def audit_show(
    context: typer.Context,
    thread_id: Annotated[str | None, typer.Argument(metavar="ID", help="The thread's id; or --access.")] = None,
    *,
    access: Annotated[bool, typer.Option("--access", help="Who added and revoked tokens.")] = False,
    as_json: AsJson = False,
) -> None:
    """
    Show who did what when, for one thread; with --access, who may come in by whose doing.

    An entry has its number, its time (UTC), what was done, and by whom: a person, or a worker (host, process, and a random part). It
    names keys, ids, digests and principals, never what was paid to whom: `counterfoil effects show KEY` has that. Digests are cut to 16
    digits; --json has them whole.

    Example: counterfoil audit show claim-0042
    """
    if access == (thread_id is not None):
        raise InputRefused("audit show takes the ID of one thread, or --access, and not both")
    with opened(settings_of(context), must_exist=True) as journal:
        entries = journal.audit.entries(thread_id or ACCESS)
        if not entries and thread_id is not None:
            journal.runs.get(thread_id)  # an unknown thread is an error; a raw graph has entries and no run
    if as_json:
        print_json([entry_document(one) for one in entries])
    else:
        for text in (text for one in entries for text in words.entry(one)):
            show.stdout().print(Text(text), soft_wrap=True)
