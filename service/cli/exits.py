"""
How a command ends: an exit code that a script can act on, and one line that says what happened.

    0   done, or parked: nothing is wrong
    1   something is wrong: a fault in the audit, a difference to a receiver, a dead letter, an error of a node
    2   bad input: an unknown id, a malformed file, a wrong setting; nothing was changed
    3   not allowed, too late, or somebody was faster
    4   busy or unreachable: the same command works later
"""

from __future__ import annotations

import functools
import json
import traceback
from collections.abc import Callable
from enum import IntEnum
from typing import Any, ParamSpec, cast

import typer

from checkpointing.digest import canonical
from checkpointing.errors import (
    AlreadyDecided,
    AlreadySettled,
    ApprovalExpired,
    ArgumentsNotJson,
    CounterfoilError,
    GraphChanged,
    GraphRefused,
    KeyInUse,
    NotAllowed,
    PayloadChanged,
    Refused,
    ReissueRefused,
    RunDiscarded,
    Stop,
    TryAgain,
    Unreachable,
)
from checkpointing.principals import Person
from service.cli import words
from service.cli.options import given_to
from tools.wire import NoConnection

P = ParamSpec("P")


class Exit(IntEnum):
    """The exit codes; `counterfoil --help` shows the module's table."""

    OK = 0
    WRONG = 1
    BAD_INPUT = 2
    TOO_LATE = 3
    TRY_AGAIN = 4


CODES: tuple[tuple[Exit, tuple[type[CounterfoilError], ...]], ...] = (
    (
        Exit.TOO_LATE,
        (NotAllowed, AlreadyDecided, ApprovalExpired, PayloadChanged, AlreadySettled, ReissueRefused, RunDiscarded),
    ),
    (Exit.TRY_AGAIN, (TryAgain, Stop, Unreachable, KeyInUse)),
    (Exit.WRONG, (GraphChanged, GraphRefused)),
    (Exit.BAD_INPUT, (Refused,)),
)
"""The first that fits counts; whatever fits none is `WRONG`."""


NOBODY_THERE = "; is it running? Start one with counterfoil sandbox, or set COUNTERFOIL_CLAIMS_URL"


class PrincipalMissing(Refused):
    """The command records who asked for it, and nobody was named."""


class ReasonMissing(Refused):
    """The command records why, and no reason was given."""


class ValueNotJson(Refused, ValueError):
    """An option that takes JSON was given something else."""


def exit_code(error: CounterfoilError) -> Exit:
    """Return the exit code that says what the caller of a command should do about *error*."""
    return next((code for code, kinds in CODES if isinstance(error, kinds)), Exit.WRONG)


def one_line(error: CounterfoilError) -> str:
    """Return the error's message on one line, with what to do where nobody took the call."""
    said = words.line(str(error)) or type(error).__name__
    return said + (NOBODY_THERE if isinstance(error, NoConnection) else "")


def ending(command: Callable[P, None]) -> Callable[P, None]:
    """
    Make every error of ours the end of *command*: one line on stderr, or with `--json` one document on stdout, and its exit code.

    With `--debug` its traceback stands before that line. An error that is not ours keeps its traceback: it is a fault of this program.
    """

    @functools.wraps(command)
    def run(*args: P.args, **options: P.kwargs) -> None:
        try:
            command(*args, **options)
        except CounterfoilError as error:
            context = cast("typer.Context | None", options.get("context"))
            if context is not None and given_to(context).debug:
                typer.echo("".join(traceback.format_exception(error)).rstrip(), err=True)
            if options.get("as_json"):
                print_json({"error": {"type": type(error).__name__, "message": one_line(error)}})
            else:
                typer.echo(f"counterfoil: {one_line(error)}", err=True)
            raise typer.Exit(exit_code(error)) from error

    return run


def print_json(document: Any) -> None:
    """Write one JSON document to stdout."""
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False, default=str))


def read_json(text: str, *, option: str) -> Any:
    """
    Return the JSON value an option was given.

    Raises:
        ValueNotJson: it is no JSON, or holds what the record cannot: NaN, an integer beyond 2^53.
    """
    try:
        value = json.loads(text)
        canonical(value, what=option)
    except ArgumentsNotJson as error:
        raise ValueNotJson(f"what {option} was given is not JSON: {error}") from error
    except (ValueError, RecursionError) as error:
        raise ValueNotJson(f"{option} takes JSON, as in {option} '{{\"amount\": 184000}}': {error}") from error
    return value


def named(principal: str | None, *, command: str) -> str:
    """
    Return who is acting.

    Raises:
        PrincipalMissing: nobody was named.
    """
    if principal is None or not principal.strip():
        raise PrincipalMissing(
            f"{command} needs --as NAME: who is acting? Nothing was recorded; give it again with --as"
        )
    return principal.strip()


def person(principal: str | None, groups: list[str] | None, *, command: str) -> Person:
    """Return who is acting, with the groups they say they are in: whoever has the journal is believed. Errors as `named`."""
    return Person(named(principal, command=command), frozenset(groups or ()))
