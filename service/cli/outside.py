"""The commands about the outside world and the record of it: sandbox, demo, audit verify."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from checkpointing.errors import Refused, Rejected, Unreachable
from service.cli import show
from service.cli.exits import Exit, ending, print_json
from service.cli.options import AsJson, settings_of
from service.demo import play
from service.demo_stage import EngineName
from service.demo_worker import DemoFailed
from service.wiring import opened
from tools.claim_file import ClaimFile, load_claim_file
from tools.claims_system import ClaimsSystem
from tools.sandbox import serve


class SandboxUnusable(Refused, OSError):
    """The sandbox cannot start here: the port is taken, or the file is another's."""


@ending
def sandbox(
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free port.")] = 8042,
    database: Annotated[Path, typer.Option(metavar="FILE", help="Its SQLite file; made if it is not there.")] = Path(
        "sandbox.db"
    ),
    load: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="File every claim in this folder of claim folders."),
    ] = None,
) -> None:
    """
    Run the outside world on one port: a payment provider, a mail service and the carrier's claims system.

    It counts the money that moved and misbehaves when told to. It runs until Ctrl-C and keeps everything in its file. The other
    commands find it where it listens by default. A claim that is loaded is filed for the thread `claim-ID`.

    Example: counterfoil sandbox --load examples/claims
    """
    files = _claim_files(load) if load else []

    def ready(url: str) -> None:
        typer.echo(f"sandbox listening on {url}")
        # The server takes calls only when this function has returned, hence the thread.
        threading.Thread(target=_file_all, args=(files, url), daemon=True).start()

    try:
        serve(host, port, database, ready)
    except OSError as error:
        raise SandboxUnusable(f"sandbox: {error}") from error


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
    with opened(settings_of(context)) as journal:
        faults = list(journal.audit.verify())
    if as_json:
        print_json({"whole": not faults, "faults": faults})
    for fault in [] if as_json else faults:
        typer.echo(fault)
    if faults:
        raise typer.Exit(Exit.WRONG)
    if not as_json:
        typer.echo("The audit is whole.")


def _claim_files(folder: Path) -> list[ClaimFile]:
    """
    Read every claim of *folder* before anything starts.

    Raises:
        SandboxUnusable: there is no claim in it.
        ClaimFileInvalid: one of them is none.
    """
    paths = sorted(folder.glob("*/claim.json"))
    if not paths:
        raise SandboxUnusable(f"there is no claim in {folder}: --load takes a folder of folders with a claim.json each")
    return [load_claim_file(path) for path in paths]


def _file_all(files: list[ClaimFile], url: str) -> None:
    """File the claims, each for its own thread; one that is filed otherwise already stays as it is."""
    system, filed = ClaimsSystem(url), 0
    for file in files:
        try:
            system.file(file.claim, file.policy, reference=f"claim-{file.claim.id}")
            filed += 1
        except (Rejected, Unreachable) as error:
            typer.echo(f"sandbox: not loaded: {error}", err=True)
    if files:
        typer.echo(f"{filed} claims filed")
