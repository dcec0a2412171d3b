"""The command that compares the ledger with what the receivers say they executed."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

import typer
from rich.status import Status
from rich.text import Text

from checkpointing import Journal
from checkpointing.clock import from_ms
from checkpointing.errors import Refused, UnknownThread
from service import lost
from service.cli import show, window
from service.cli.differences import Listed, Report, print_document, print_report
from service.cli.exits import Exit, ending, named
from service.cli.options import As, AsJson, settings_of
from service.reconcile import GRACE, Comparison, Progress, adopted, read_lists
from service.scratch import Scratch, scratch
from service.settings import Settings
from service.wiring import effects_of, opened
from tools.effect import Effect

TOLD_EVERY = 10_000


class EffectUnlisted(Refused, LookupError):
    """No receiver has a list of this effect."""


class CopyUndated(Refused, ValueError):
    """A restored journal is to be compared, and nobody said of when it is."""


@ending
def reconcile(
    context: typer.Context,
    *,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN", help="Only what was executed or settled since: 7d, 2026-03-01, 2026-03-01T08:00 (UTC)."
        ),
    ] = None,
    fix: Annotated[
        bool, typer.Option("--fix", help="Settle what the receiver executed and nobody here settled; takes --as.")
    ] = False,
    principal: As = None,
    grace: Annotated[
        str,
        typer.Option(metavar="DURATION", help="What is younger than this may still be under way and is no difference."),
    ] = GRACE,
    only: Annotated[
        str | None, typer.Option("--effect", metavar="NAME", help="Only this effect: pay, or notify.")
    ] = None,
    restored: Annotated[
        bool,
        typer.Option(
            "--restored",
            help="The journal was restored from an older copy; --since says when that was made, and --fix records what was executed since.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """
    Compare the ledger with what the payment provider and the mail service say they executed.

    Found are: what is settled here and missing there; what was executed there and is unknown here, or claimed, in doubt or released;
    amounts, currencies and payees that differ; and two executions for one slot. What a worker is executing now, or what is younger than
    --grace, is shown as in progress and is no difference.

    With --fix an effect that the receiver executed, and that is not settled here, is settled with what the receiver says; whoever --as
    names answers for it in the audit, and every run that waits for it is ready. Nothing else is changed: what is missing, unknown,
    different or there twice takes a person, and the report says what to do. If the receiver does not answer to the end of its list,
    nothing is reported and nothing is changed; --effect leaves a receiver out. The mail service lists no keys, so of messages only those
    are found that are settled here and missing there.

    With --restored the journal is an older copy: what the receivers executed since it was made is lost here, and a run that asks for it again would
    have it executed again once the receiver has forgotten its key. --since says when the copy was made; if you are not sure, say earlier. What
    counts is the earlier of that and of the last entry in the journal's audit, and --grace before it. With --fix each lost execution is recorded
    with its key, whoever asks for it is answered with it, and no receiver is called. Stop the workers, restore the copy, call this, and start the
    workers then. Never without a restore: what is unknown here is somebody else's otherwise. Letters may be sent twice after a restore, where the
    mail service has forgotten their keys: it lists none.

    Exit code 1 if anything differs (with --fix: if anything is left), 0 if all agrees, 4 if the receiver did not answer.

    Example: counterfoil reconcile --since 7d --fix --as operator-3

    Example: counterfoil reconcile --restored --since 2026-03-01T02:00 --fix --as operator-3
    """
    who = named(principal, command="reconcile --fix") if fix else None
    if restored and since is None:
        raise CopyUndated(
            "--restored needs --since WHEN: when was the copy made that was restored? If you are not sure, say earlier"
        )
    patience = window.duration(grace, option="--grace")
    settings = settings_of(context)
    effects = _chosen(settings, only)
    with opened(settings, must_exist=True) as journal, scratch() as found:
        begin = None if since is None else window.since(since, option="--since", now=from_ms(journal.store.now_ms()))
        if restored and begin is not None:
            begin = lost.begin_of(journal, begin, patience)
        listed = _compared(journal, effects, found, since=begin, grace=patience, restored=restored, fix=who)
        given = _given(("--since", since), ("--grace", grace), ("--effect", only))
        report = Report(begin, listed, found, ("--restored", *given) if restored else given)
        if as_json:
            print_document(report)
        else:
            print_report(report, principal)
        if report.left:
            raise typer.Exit(Exit.WRONG)


def _compared(
    journal: Journal,
    effects: list[Effect],
    found: Scratch,
    *,
    since: datetime | None,
    grace: timedelta,
    restored: bool,
    fix: str | None,
) -> tuple[Listed, ...]:
    """Compare, and with a principal to answer for it adopt; every finding is in the scratch before the first is changed or shown."""
    with show.stderr().status("listing") as status:
        progress = _teller(status)
        read_lists(effects, found, since=since, progress=progress)
        for effect in effects:
            comparison = Comparison(journal, effect, found, since, grace, progress, restored)
            for finding in comparison.findings():
                found.found(finding.kind, finding.document())
        if fix is not None:
            _fix(journal, found, fix, progress)
    return tuple(Listed(effect.name, *found.counts(effect.name)) for effect in effects)


def _given(*options: tuple[str, str | None]) -> tuple[str, ...]:
    """Return the options whose value is not their default, as they were given."""
    return tuple(word for name, value in options if value not in (None, GRACE) for word in (name, str(value)))


def _fix(journal: Journal, found: Scratch, principal: str, progress: Progress) -> None:
    for count, (number, finding) in enumerate(found.findings("unsettled"), start=1):
        after = adopted(journal, finding, principal=principal)
        if after["adopted"]:
            after["ready"] = _ready(journal, after)
        found.change(number, after["kind"], after, adopted=after["adopted"])
        progress("adopting", count)
    for count, (number, finding) in enumerate(found.findings("lost"), start=1):
        after = lost.recorded(journal, finding, principal=principal)
        found.change(number, after["kind"], after, adopted=after["adopted"])
        progress("recording", count)


def _ready(journal: Journal, finding: dict[str, list[str]]) -> list[str]:
    """Return the threads that `resume` carries on now: those that were woken, and the effect's own where its run is not at rest."""
    threads = list(finding["woken"])
    try:
        own = journal.runs.get(str(finding["thread_id"]))
    except UnknownThread:
        return threads  # a raw graph has effects and no run
    return sorted({*threads, *([own.thread_id] if own.state in ("admitted", "running") else [])})


def _chosen(settings: Settings, only: str | None) -> list[Effect]:
    """Return the effects whose receivers have a list: all, or the one that is named."""
    effects = effects_of(settings)
    chosen = [effect for name, effect in effects.items() if only in (None, name)]
    if not chosen:
        raise EffectUnlisted(f"--effect takes {' or '.join(effects)}, not {only!r}")
    return chosen


def _teller(status: Status) -> Progress:
    """Return what shows how far the work is; where nobody watches a terminal, a line now and then."""

    def tell(what: str, count: int) -> None:
        status.update(f"{what}: {count:,}")
        if count % TOLD_EVERY == 0:
            status.console.print(Text(f"  {what}: {count:,}"), soft_wrap=True)

    return tell
