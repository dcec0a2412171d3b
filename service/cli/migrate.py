"""The command `migrate`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from checkpointing.granting import grant
from checkpointing.journal import known_tables
from checkpointing.standing import Standing, found
from service.cli.exits import Exit, ending, print_json
from service.cli.options import AsJson, settings_of
from service.settings import Settings
from service.wiring import JournalMissing, looked_at, opened


@ending
def migrate(
    context: typer.Context,
    check: Annotated[
        bool, typer.Option("--check", help="Only look: exit code 0 if nothing is left to do, else 1. Changes nothing.")
    ] = False,
    to: Annotated[
        str | None,
        typer.Option(
            "--grant",
            metavar="ROLE",
            help="Afterwards let this role work with the journal, without any right to change its tables.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """
    Bring the journal's tables up to date, and say what was done.

    Every other command and every worker does that too, when it opens the journal. This one is for Postgres where the application's role may
    not create tables: run it as a role that may, before the new version is deployed. Workers of the version before go on meanwhile; they refuse
    to be started again once the tables are newer than they are.

    With COUNTERFOIL_SCHEMA the tables are in a schema of that name, which is made where it is missing.

    Example: counterfoil --url postgresql://owner@host/claims migrate --grant claims_app
    """
    settings = settings_of(context)
    if check:
        there, aim = _looked(settings)
        _say(settings, there, aim, granted=None, as_json=as_json)
        if not there.reaches(aim):
            raise typer.Exit(Exit.WRONG)
        return
    with opened(settings) as journal:
        before, after = journal.found, found(journal.store)
        if to is not None:
            grant(journal.store, to)
    _say(settings, before, after, granted=to, as_json=as_json, migrated=True)


def _looked(settings: Settings) -> tuple[Standing, Standing]:
    try:
        return looked_at(settings)
    except JournalMissing:
        return Standing(), known_tables(dispatches=False)


def _say(
    settings: Settings, there: Standing, aim: Standing, *, granted: str | None, as_json: bool, migrated: bool = False
) -> None:
    done = there.reaches(aim)
    if as_json:
        words = {
            "found": asdict(there),
            "reached" if migrated else "needed": asdict(aim),
            "up_to_date": done or migrated,
        }
        print_json({"journal": settings.place, **words, "granted": granted})
        return
    if done:
        typer.echo(f"{settings.place} is up to date: {there}")
    elif migrated:
        typer.echo(f"{settings.place} was brought from {there} to {aim}")
    else:
        typer.echo(f"{settings.place} has {there} and needs {aim}: run counterfoil migrate")
    if granted:
        typer.echo(f"{granted} may work with it")
