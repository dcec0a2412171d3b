"""
The command line `counterfoil`: which commands there are, and what its help says of all of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib.metadata import version
from itertools import islice
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer.core import TyperGroup

from service.cli import (
    amending,
    backup,
    dead,
    decisions,
    effects,
    migrate,
    outside,
    queue,
    reconcile,
    runs,
    sandbox,
    serve,
    token,
    worker,
)
from service.cli.options import Given

HELP = """
Durable agents whose side effects happen once.

A claim is submitted as a run of its own. It runs until it is done, or until it waits for a person; then no process is alive, and a decision, or `resume`, carries it on, on any machine. A worker may be killed at any moment: nothing is done twice.

Start with `counterfoil demo`. To do it by hand: `counterfoil sandbox` in one terminal, `counterfoil submit` in another.

The journal is where COUNTERFOIL_URL or --url says, by default counterfoil.db here; settings may stand in a file .env, too (docs/settings.md).
"""

EXITS = """\
Exit codes:
  0  done, or parked (it says what it waits for)
  1  something is wrong: a fault in the audit, a difference to a receiver, a dead letter, an error of a node
  2  bad input: an unknown id, a malformed file, a wrong setting; nothing was changed
  3  not allowed, too late, or somebody was faster
  4  busy or unreachable: try again
"""

FOR_EVERY_COMMAND = ("--url", "--debug")
"""What `counterfoil` itself takes."""

RUNS, DECISIONS, RECORD, WORLD = "Runs", "Approvals", "The record", "The outside world"
PEOPLE = "Who comes in"


def main() -> None:
    """Run the command line."""
    command_line()()


def command_line() -> typer.Typer:
    """Return the command line with all its commands."""
    app = _group("counterfoil", HELP)
    app.info.cls = OptionsAnywhere
    app.callback(epilog=EXITS)(_every_command)
    for function, name, panel in (
        (runs.submit, "submit", RUNS),
        (runs.list_runs, "list", RUNS),
        (runs.show, "show", RUNS),
        (runs.resume, "resume", RUNS),
        (dead.dead, "dead", RUNS),
        (dead.redrive, "redrive", RUNS),
        (dead.discard, "discard", RUNS),
        (worker.worker, "worker", RUNS),
        (serve.serve_command, "serve", RUNS),
        (queue.queue_command, "queue", RUNS),
        (decisions.approvals, "approvals", DECISIONS),
        (decisions.approve, "approve", DECISIONS),
        (decisions.reject, "reject", DECISIONS),
        (decisions.edit, "edit", DECISIONS),
        (decisions.withdraw, "withdraw", DECISIONS),
        (amending.extend, "extend", DECISIONS),
        (amending.reassign, "reassign", DECISIONS),
        (outside.demo, "demo", WORLD),
        (reconcile.reconcile, "reconcile", RECORD),
        (backup.backup, "backup", RECORD),
        (migrate.migrate, "migrate", RECORD),
    ):
        _add(app, name, function, panel)
    app.add_typer(_sandbox(), rich_help_panel=WORLD)
    app.add_typer(_effects(), rich_help_panel=RECORD)
    app.add_typer(_audit(), rich_help_panel=RECORD)
    app.add_typer(_token(), rich_help_panel=PEOPLE)
    return app


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"counterfoil {version('counterfoil')}")
        raise typer.Exit


def _every_command(
    context: typer.Context,
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The journal, in place of COUNTERFOIL_URL."),
    ] = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; it may hold people's data.")
    ] = False,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    context.obj = Given(url, debug)


class OptionsAnywhere(TyperGroup):
    """Takes `--url` and `--debug` after the command too, where people write them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put them in front; after `--` nothing is an option."""
        end = args.index("--") if "--" in args else len(args)
        front: list[str] = []
        rest: list[str] = []
        words = iter(args[:end])
        for word in words:
            if word.partition("=")[0] not in FOR_EVERY_COMMAND:
                rest.append(word)
                continue
            front.append(word)
            if word == "--url":
                front += islice(words, 1)
        return super().parse_args(ctx, [*front, *rest, *args[end:]])


def _effects() -> typer.Typer:
    group = _group("effects", "See what was done to the world, and say what happened to an effect in doubt.")
    group.info.cls = effects.ListByDefault
    _add(group, "list", effects.list_effects)
    _add(group, "show", effects.show_effect)
    _add(group, "resolve", effects.resolve)
    _add(group, "reissue", effects.reissue)
    return group


def _audit() -> typer.Typer:
    group = _group("audit", "See the record of who did what, and verify it.")
    _add(group, "show", outside.audit_show)
    _add(group, "verify", outside.audit_verify)
    return group


def _token() -> typer.Typer:
    group = _group("token", "Say who comes in over HTTP and in the inbox, and what they may do there.")
    _add(group, "add", token.add)
    _add(group, "list", token.list_tokens)
    _add(group, "revoke", token.revoke)
    return group


def _sandbox() -> typer.Typer:
    """Return `sandbox`, a command that has others: `sandbox later`, `sandbox fault`."""
    text = _help_of(sandbox.sandbox)
    group = _group("sandbox", text)
    group.info.no_args_is_help = False
    group.callback(invoke_without_command=True, help=text)(sandbox.sandbox)
    _add(group, "later", sandbox.later)
    _add(group, "fault", sandbox.fault)
    return group


def _add(group: typer.Typer, name: str, function: Callable[..., None], panel: str | None = None) -> None:
    """Add a command whose help is its docstring."""
    group.command(name, help=_help_of(function), rich_help_panel=panel)(function)


def _help_of(function: Callable[..., None]) -> str:
    """Return a docstring paragraph by paragraph: Typer would keep the line breaks of the source."""
    paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
    return escape("\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs))


def _group(name: str, text: str) -> typer.Typer:
    return typer.Typer(
        name=name,
        help=text,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="rich",
        # A traceback with the values of local variables would show secrets and people's data.
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
