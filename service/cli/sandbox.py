"""The commands about the sandbox: running it, making it misbehave, and letting happen to a claim what its `later.json` says."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated, get_args

import typer
from pydantic import ValidationError

from checkpointing.errors import Refused, Rejected, Unreachable
from service.cli import words
from service.cli.exits import ending
from service.cli.options import settings_of
from service.demo import EXAMPLES
from tools.claim_file import ClaimFile, load_claim_file
from tools.claim_models import EstimateLine, Record
from tools.claims_system import ClaimsSystem
from tools.sandbox import SandboxControl, serve
from tools.sandbox.faults import At, Kind


class SandboxUnusable(Refused, OSError):
    """The sandbox cannot start here: the port is taken, or the file is another's."""


class LaterUnreadable(Refused, ValueError):
    """The file that says what happens later is not there, or is none."""


class ClaimNotThere(Refused, LookupError):
    """The sandbox does not take the change: it has no such claim."""


class Later(Record):
    """What a `later.json` says."""

    withdraw: bool = False
    estimate: tuple[EstimateLine, ...] = ()


@ending
def sandbox(
    context: typer.Context,
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
    Run the outside world on one port: a payment provider, a mail service, a ticket desk, a chat and the carrier's claims system.

    It counts the money that moved and misbehaves when told to (`counterfoil sandbox fault`). It runs until Ctrl-C and keeps everything in its file. The other
    commands find it where it listens by default. With --load every claim is filed for the thread `claim-ID`, and can be submitted for that
    thread only; without it `counterfoil submit` files the claim itself.

    Example: counterfoil sandbox --load examples/claims
    """
    if context.invoked_subcommand:
        return
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
def later(
    context: typer.Context,
    claim_id: Annotated[str, typer.Argument(metavar="CLAIM", help="The claim's id, as in 0048.")],
    folder: Annotated[
        Path,
        typer.Option("--claims", metavar="DIR", help="The folder of claim folders.", show_default="examples/claims"),
    ] = EXAMPLES,
) -> None:
    """
    Let happen to a claim what its later.json says: the claimant withdraws it, or the repairer's estimate grows.

    It changes the claim at the running sandbox, as the outside world would while the run waits. Play it after `counterfoil submit` and
    before `counterfoil approve`; of the examples, 0048 and 0049 have one.

    Example: counterfoil sandbox later 0048
    """
    settings = settings_of(context)
    planned = _later(folder / claim_id / "later.json")
    control = SandboxControl(settings.claims_url, settings.timeout_seconds)
    try:
        if planned.withdraw:
            control.withdraw(claim_id)
            typer.echo(f"claim {claim_id} is withdrawn now")
        if planned.estimate:
            claim = control.grow_estimate(claim_id, planned.estimate)
            typer.echo(f"the estimate of claim {claim_id} is {words.money(claim.total, claim.currency)} now")
    except Rejected as refused:
        raise ClaimNotThere(f"{refused}; submit claim {claim_id} first") from refused


@ending
def fault(
    context: typer.Context,
    at: Annotated[At, typer.Argument(metavar="AT", help="Where: " + ", ".join(get_args(At)) + ".")],
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help="What: " + ", ".join(get_args(Kind)) + ".")],
    match: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only calls that have this text in them, such as a claim's id.")
    ] = None,
    times: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many calls it hits.")] = 1,
) -> None:
    """
    Make the running sandbox misbehave at the next calls that write.

    `drop_before` and `drop_after` break the connection before or after the call was executed, so that its answer is lost; `hold_before` and
    `hold_after` keep the caller waiting; `error_500` and `error_500_after` answer 500 without and after executing it; `rate_limit` answers
    429; `forget_key` executes a known key again; `old_answer` answers another request
    under a known key with the first answer, in place of a refusal.

    An effect calls three times before it gives up, so a payment in doubt takes --times 3.

    Example: counterfoil sandbox fault transfers drop_after --match 0042 --times 3
    """
    settings = settings_of(context)
    SandboxControl(settings.claims_url, settings.timeout_seconds).fault(at, kind, match=match, times=times)
    calls = "call" if times == 1 else f"{times} calls"
    typer.echo(
        f"the next {calls} that {'writes' if times == 1 else 'write'} to {at}{f' with {match!r} in it' if match else ''}: {kind}"
    )


def _later(path: Path) -> Later:
    """
    Read what is to happen.

    Raises:
        LaterUnreadable: there is no such file, or it says something else.
    """
    try:
        return Later.model_validate_json(path.read_bytes())
    except OSError as error:
        raise LaterUnreadable(
            f"{path} cannot be read: {error.strerror}; of the examples, 0048 and 0049 have one"
        ) from error
    except ValidationError as error:
        raise LaterUnreadable(f'{path} is neither {{"withdraw": true}} nor {{"estimate": [...]}}') from error


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
