"""The command that copies a SQLite journal while it is in use."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from checkpointing.errors import Refused
from service.backup import copy_sqlite
from service.cli.exits import ending, print_json
from service.cli.options import AsJson, settings_of
from service.wiring import JournalMissing, sqlite_file


class CopyIsTheServers(Refused):
    """A Postgres journal is copied by Postgres."""


@ending
def backup(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where the copy goes; nothing may be there.")],
    as_json: AsJson = False,
) -> None:
    """
    Copy a SQLite journal to FILE while workers go on.

    The copy is whole and of one moment. Copying the journal's file alone is not enough: what was committed last stands beside it. Copy the
    folder of documents after it; documents are only added there. What the copy lacks once it is restored, and how that is mended, is said
    by counterfoil reconcile --help, --restored; the time to give there is printed here. A Postgres journal is copied by pg_dump.

    Example: counterfoil backup /backup/claims-2026-03-01.db
    """
    settings = settings_of(context)
    journal = sqlite_file(settings.url.get_secret_value())
    if journal is None:
        raise CopyIsTheServers(
            "a Postgres journal is copied by Postgres, whole and of one moment: "
            f"pg_dump --format=custom --file {quote(str(file))} --dbname URL   ({settings.place})"
        )
    if not journal.exists():
        raise JournalMissing(f"no journal at {settings.place}: COUNTERFOIL_URL or --url says where it is")
    # In whole seconds, and so rather a little too early.
    made_at = f"{copy_sqlite(journal, file):%Y-%m-%dT%H:%M:%SZ}"
    documents = settings.artefacts or f"{journal}.artefacts"
    if as_json:
        print_json({"copy": str(file), "made_at": made_at, "bytes": file.stat().st_size, "documents": documents})
        return
    typer.echo(f"Copied {journal} to {file} ({file.stat().st_size:,} bytes), as of {made_at}.")
    typer.echo(f"Copy its documents now, after it: {documents}")
    typer.echo(f"If it is ever restored: counterfoil reconcile --restored --since {made_at} --fix --as NAME")
