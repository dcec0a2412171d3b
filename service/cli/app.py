"""
The command line `counterfoil`: which commands there are, and what its help says of all of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated

import typer
from rich.markup import escape

from service.cli import decisions, effects, outside, runs

HELP = """
Durable agents whose side effects happen once.

A claim is submitted as a run of its own. It runs until it is done, or until it waits for a person; then no process is alive, and a decision, or `resume`, carries it on, on any machine. A worker may be killed at any moment: nothing is done twice.

Start with `counterfoil demo`. To do it by hand: `counterfoil sandbox` in one terminal, `counterfoil submit` in another.

The journal is where COUNTERFOIL_URL or --url says, by default counterfoil.db here; settings may stand in a file .env, too.
"""

EXITS = """\
Exit codes:
  0  done, or parked (it says what it waits for)
  1  something is wrong: a fault in the audit, a dead letter, an error of a node
  2  bad input: an unknown id, a malformed file, a wrong setting; nothing was changed
  3  not allowed, too late, or somebody was faster
  4  busy or unreachable: try again
"""

RUNS, DECISIONS, RECORD, WORLD = "Runs", "Approvals", "The record", "The outside world"


def main() -> None:
    """Run the command line."""
    command_line()()


def command_line() -> typer.Typer:
    """Return the command line with all its commands."""
    app = _group("counterfoil", HELP)
    app.callback(epilog=EXITS)(_every_command)
    for function, name, panel in (
        (runs.submit, "submit", RUNS),
        (runs.list_runs, "list", RUNS),
        (runs.show, "show", RUNS),
        (runs.resume, "resume", RUNS),
        (runs.redrive, "redrive", RUNS),
        (decisions.approvals, "approvals", DECISIONS),
        (decisions.approve, "approve", DECISIONS),
        (decisions.reject, "reject", DECISIONS),
        (decisions.edit, "edit", DECISIONS),
        (outside.demo, "demo", WORLD),
        (outside.sandbox, "sandbox", WORLD),
    ):
        _add(app, name, function, panel)
    app.add_typer(_effects(), rich_help_panel=RECORD)
    app.add_typer(_audit(), rich_help_panel=RECORD)
    return app


def _every_command(
    context: typer.Context,
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The journal, in place of COUNTERFOIL_URL."),
    ] = None,
) -> None:
    context.obj = url


def _effects() -> typer.Typer:
    group = _group("effects", "See what was done to the world, and say what happened to an effect in doubt.")
    group.info.cls = effects.ListByDefault
    _add(group, "list", effects.list_effects)
    _add(group, "resolve", effects.resolve)
    return group


def _audit() -> typer.Typer:
    group = _group("audit", "Verify the record of who did what.")
    group.callback()(lambda: None)  # keeps `verify` a command of its own
    _add(group, "verify", outside.audit_verify)
    return group


def _add(group: typer.Typer, name: str, function: Callable[..., None], panel: str | None = None) -> None:
    """Add a command whose help is its docstring, paragraph by paragraph: Typer would keep the line breaks of the source."""
    paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
    text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    group.command(name, help=escape(text), rich_help_panel=panel)(function)


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
