"""The commands about effects: what was done to the world, and saying what happened to one in doubt."""

from __future__ import annotations

from shlex import quote
from typing import Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperGroup

import tools
from checkpointing import EffectRecord, Journal
from checkpointing.errors import Refused, ReissueRefused, UnknownThread
from service.cli import show, words
from service.cli.advice import advice
from service.cli.documents import effect_document
from service.cli.exits import Exit, ending, named, print_json, read_json
from service.cli.options import As, AsJson, Reason, settings_of
from service.cli.runs import all_runs
from service.situation import situation
from service.wiring import effects_of, opened

PAGE = 1000

Key = Annotated[str, typer.Argument(metavar="KEY", help="The effect's key, as `counterfoil effects` shows it.")]


class FindingUnclear(Refused, ValueError):
    """What was found out was said twice, or not at all."""


class ListByDefault(TyperGroup):
    """A group whose commands may be left out: `effects` and `effects ID` are `effects list` and `effects list ID`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put `list` in front of arguments that name no command."""
        if not args or args[0] not in {*self.commands, "--help"}:
            args = ["list", *args]
        return super().parse_args(ctx, args)


@ending
def list_effects(
    context: typer.Context,
    thread_id: Annotated[str | None, typer.Argument(metavar="ID", help="Only those of this thread.")] = None,
    as_json: AsJson = False,
) -> None:
    """
    List the effects: every call that changed the world, or may have, and every answer of a model.

    `calls` is how often the receiver was called under the one key, `replays` how often the record answered instead. An effect that is
    claimed is being executed, or its worker died; one in doubt waits for `counterfoil effects resolve`; one that was declined can be tried
    again with `counterfoil effects reissue`, and stays in the list.

    Example: counterfoil effects claim-0042
    """
    settings = settings_of(context)
    with opened(settings, must_exist=True) as journal:
        found = _all_effects(journal, thread_id)
        if thread_id is not None and not found:
            journal.runs.get(thread_id)  # an unknown thread is an error; a raw graph has effects and no run
        if as_json:
            print_json([effect_document(one) for one in found])
        elif found:
            show.show_effects(show.stdout(), found)
        else:
            whose = "" if thread_id is None else f" of thread {thread_id}"
            show.stdout().print(f"There is no effect{whose} yet in {settings.place}.", markup=False, soft_wrap=True)


@ending
def show_effect(context: typer.Context, key: Key, as_json: AsJson = False) -> None:
    """
    Show one effect: its arguments, its outcome, its approval, how often it was called and how often answered from the record.

    Example: counterfoil effects show claim-0042:pay.0:pay:0f2a54f2b7f6a1a3
    """
    with opened(settings_of(context), must_exist=True) as journal:
        record = journal.effects.get(key)
    if as_json:
        print_json(effect_document(record))
        return
    for text in words.effect_in_full(record):
        show.stdout().print(Text(text), soft_wrap=True)


@ending
def resolve(
    context: typer.Context,
    key: Key,
    *,
    happened: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="It happened; this is what the receiver answered."),
    ] = None,
    nothing_happened: Annotated[
        bool, typer.Option("--nothing-happened", help="It did not happen, and may be done now.")
    ] = False,
    principal: As = None,
    as_json: AsJson = False,
) -> None:
    """
    Say what happened to an effect in doubt.

    Look it up at the receiver first: a payment that happened and is declared as nothing is paid again. Every run that waits for it is
    ready afterwards, and `counterfoil resume ID` carries it on.

    Example: counterfoil effects resolve claim-0042:notify.0:notify:ab4a98787379bf03 --nothing-happened --as operator-3
    """
    who = named(principal, command="effects resolve")
    if (happened is None) is not nothing_happened:
        raise FindingUnclear(
            "say what you found out: either --happened JSON (what the receiver answered) or --nothing-happened"
        )
    outcome = None if happened is None else read_json(happened, option="--happened")
    with opened(settings_of(context), must_exist=True) as journal:
        waiting = [run.thread_id for run in all_runs(journal, "parked") if run.waits_for == key]
        record = journal.effects.resolve(key, happened=happened is not None, outcome=outcome, principal=who)
        woken = [thread_id for thread_id in waiting if journal.runs.get(thread_id).state == "admitted"]
        if as_json:
            print_json({**effect_document(record), "woken": woken})
            return
        show.stdout().print(Text(f"Effect {record.key} is {record.state} now."), soft_wrap=True)
        _say_what_is_next(journal, record, woken)


@ending
def reissue(
    context: typer.Context,
    key: Key,
    *,
    principal: As = None,
    reason: Reason = None,
    spoilt: Annotated[
        bool,
        typer.Option("--spoilt", help="It did not happen, and the receiver stored a failure under its key."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """
    Try an effect again that its receiver declined, at once and under a new key.

    The old key is never sent again: a receiver answers it with the same no. The run that was told of the decline has gone on, and its state
    and letters are not changed; what it was told stays on record. An effect that happened, or may have, is refused, and so is one whose key still serves: `counterfoil resume` sends it again.

    Example: counterfoil effects reissue claim-0042:pay.0:pay:0f2a54f2b7f6a1a3 --as operator-3 --reason "The account is open again."
    """
    who = named(principal, command="effects reissue")
    settings = settings_of(context)
    with opened(settings, must_exist=True) as journal:
        name = journal.effects.get(key).effect
        effect = effects_of(settings).get(name)
        if effect is None:
            raise ReissueRefused(f"effect {key!r} is a {name!r}, which this command has no tool for; see tools.reissue")
        record = tools.reissue(journal, effect, key, principal=who, reason=reason or "", spoilt=spoilt)
    if as_json:
        print_json(effect_document(record))
    else:
        for text in words.effect_in_full(record):
            show.stdout().print(Text(text), soft_wrap=True)
    if record.declined is not None:
        raise typer.Exit(Exit.WRONG)


def _say_what_is_next(journal: Journal, record: EffectRecord, woken: list[str]) -> None:
    """Name every run that was woken; where none was, say how the run that claimed the effect stands."""
    console = show.stdout()
    if woken:
        console.print(
            "To carry the run on:" if len(woken) == 1 else f"To carry the {len(woken)} runs on that waited for it:"
        )
        for thread_id in woken:
            console.print(Text(f"  counterfoil resume {quote(thread_id)}", "bold"), soft_wrap=True)
        return
    try:
        run = journal.runs.get(record.thread_id)
    except UnknownThread:
        return  # a raw graph has effects and no run
    show.show_advice(console, advice(run, situation(journal, run.thread_id)))


def _all_effects(journal: Journal, thread_id: str | None) -> list[EffectRecord]:
    """Return the effects in the order they were claimed, those too that were reissued since."""
    found: list[EffectRecord] = []
    while page := journal.effects.list(thread_id=thread_id, after=found[-1] if found else None, limit=PAGE):
        found += page
    reissued = sorted({one.thread_id for one in found if one.generation > 1})
    found += (one for each in reissued for one in journal.effects.past(each))
    return sorted(found, key=lambda one: (one.claimed_at, one.slot, one.generation))
