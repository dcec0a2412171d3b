"""
The arguments and options that several commands share, and the settings a command runs with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from service.settings import Settings, load_settings

ThreadId = Annotated[str, typer.Argument(metavar="ID", help="The thread's id.")]
ApprovalId = Annotated[
    str,
    typer.Argument(metavar="ID", help="The approval's id, as `counterfoil approvals` shows it."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else there.")]
As = Annotated[str | None, typer.Option("--as", metavar="NAME", help="Who is acting; it stands in the audit.")]
Groups = Annotated[
    list[str] | None,
    typer.Option("--group", metavar="NAME", help="A group that who is acting belongs to. May be repeated."),
]
Reason = Annotated[str | None, typer.Option(metavar="TEXT", help="Why; it is recorded.")]


@dataclass(frozen=True, slots=True)
class Given:
    """
    What was given for every command.

    Attributes:
        url: The journal, in place of `COUNTERFOIL_URL`.
        debug: Show the traceback of an error.
    """

    url: str | None = None
    debug: bool = False


def given_to(context: typer.Context) -> Given:
    """Return what was given for every command."""
    found = context.find_root().obj
    return found if isinstance(found, Given) else Given()


Detach = Annotated[
    bool,
    typer.Option("--detach", help="Record it and leave the run to the workers (counterfoil worker)."),
]


def settings_of(context: typer.Context) -> Settings:
    """
    Return the settings, with `--url` where it was given.

    Raises:
        SettingsInvalid: a variable cannot be used.
    """
    return load_settings(given_to(context).url)
