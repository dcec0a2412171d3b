"""The commands about approvals: what waits, and approving, rejecting or editing it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any

import typer
from langgraph.types import Command
from rich.text import Text

from checkpointing import Approval, Journal
from checkpointing.clock import from_ms
from checkpointing.errors import RunBusy, RunDead
from checkpointing.principals import Person
from graph import asks
from service.cli import show
from service.cli.advice import carried_on_here, in_python
from service.cli.documents import approval_document
from service.cli.exits import ValueNotJson, ending, person, print_json, read_json
from service.cli.options import ApprovalId, As, AsJson, Detach, Groups, Reason, settings_of
from service.cli.progress import advance, leave, report
from service.cli.runs import all_runs
from service.situation import EVERY, situation
from service.wiring import App, opened, wired

LIMIT = 1000


@ending
def approvals(
    context: typer.Context,
    thread_id: Annotated[str | None, typer.Argument(metavar="ID", help="Only those of this thread.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Decided, expired and superseded ones too.")] = False,
    as_json: AsJson = False,
) -> None:
    """
    List what waits for a decision, what expires first in front; with --all every approval of the runs, first asked first.

    What is asked is exactly what will be done: an approval is bound to it, and if it changes there is a new approval.

    Example: counterfoil approvals --all claim-0042
    """
    settings = settings_of(context)
    with opened(settings, must_exist=True) as journal:
        if thread_id is not None:
            journal.runs.get(thread_id)  # an unknown thread is an error
        if every:
            _list_all(journal, thread_id, settings.place, as_json=as_json)
            return
        waiting = journal.approvals.pending(thread_id=thread_id, limit=LIMIT)
        if as_json:
            print_json([approval_document(one) for one in waiting])
        elif waiting:
            table = show.approvals_table(waiting, now=from_ms(journal.store.now_ms()))
            show.stdout().print(table)
        else:
            show.stdout().print(f"Nothing waits for a decision in {settings.place}.", markup=False, soft_wrap=True)
        if len(waiting) == LIMIT:
            typer.echo(f"counterfoil: these are the first {LIMIT}; there may be more", err=True)


@ending
def approve(
    context: typer.Context,
    approval_id: ApprovalId,
    *,
    principal: As = None,
    group: Groups = None,
    detach: Detach = False,
    as_json: AsJson = False,
) -> None:
    """
    Approve exactly what is asked, and carry the run on.

    The decision is recorded before the run moves; if this process dies, or another one holds the thread, it stands all the same. The
    first decision wins. Whoever submitted the claim may not approve it. Where several people have to approve, this is one vote.

    Example: counterfoil approve apr_74071e3af07eb10a318c --as adjuster-17
    """
    who = person(principal, group, command="approve")
    _decide(context, approval_id, who, asks.approve, detach=detach, as_json=as_json)


@ending
def reject(
    context: typer.Context,
    approval_id: ApprovalId,
    *,
    principal: As = None,
    group: Groups = None,
    reason: Reason = None,
    detach: Detach = False,
    as_json: AsJson = False,
) -> None:
    """
    Reject what is asked, and carry the run on: nothing is paid, and the claimant is told.

    The reason stands in the letter to the claimant.

    Example: counterfoil reject apr_74071e3af07eb10a318c --as adjuster-17 --reason "Not this car."
    """

    def made(approval: Approval) -> Command[Any]:
        return asks.reject(approval, reason)

    who = person(principal, group, command="reject")
    _decide(context, approval_id, who, made, detach=detach, as_json=as_json)


@ending
def edit(
    context: typer.Context,
    approval_id: ApprovalId,
    *,
    payload: Annotated[str, typer.Option(metavar="JSON", help="The whole payload; amounts are minor units.")],
    principal: As = None,
    group: Groups = None,
    reason: Reason = None,
    detach: Detach = False,
    as_json: AsJson = False,
) -> None:
    """
    Approve something else than what is asked, and carry the run on.

    The payload is given whole, with the keys of the one that is asked; `counterfoil show ID` has it ready to be changed. Amounts are in minor
    units: 100000 is 1000.00.

    Example: counterfoil edit apr_74071e3af07eb10a318c --as adjuster-17 --payload '{"claim_id": "0042", "amount": 100000, "currency": "EUR", "payee": "acct_1"}'
    """
    given = read_json(payload, option="--payload")
    if not isinstance(given, dict):
        raise ValueNotJson("--payload takes a JSON object with the keys of the payload that is asked")

    def made(approval: Approval) -> Command[Any]:
        return asks.edit(approval, given, reason)

    who = person(principal, group, command="edit")
    _decide(context, approval_id, who, made, detach=detach, as_json=as_json)


@ending
def withdraw(
    context: typer.Context,
    approval_id: ApprovalId,
    *,
    principal: As = None,
    group: Groups = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """
    Take a question back, or an approval, and carry the run on; nothing may be done under it afterwards.

    Possible until an effect has acted under it. A claim that waits for the question is not paid: it ends as undecided and the claimant is
    told. A run that has read the decision already ends as a dead letter where it would have acted. The approvers may do it; whoever
    submitted may take back a question that still waits. A reject is not taken back.

    Example: counterfoil withdraw apr_74071e3af07eb10a318c --as adjuster-17 --reason "Asked in error."
    """
    who = person(principal, group, command="withdraw")
    with wired(settings_of(context), must_exist=True) as app:
        withdrawn = app.journal.approvals.withdraw(approval_id, principal=who, reason=reason or "")
        if not as_json:
            show.stdout().print(Text(f"Recorded: withdrawn by {who.name}."), soft_wrap=True)
        if not carried_on_here(app.journal.runs.find(withdrawn.thread_id)):
            _leave(withdrawn, as_json=as_json)
            return
        with suppress(RunBusy):  # whoever holds the thread carries it on
            advance(app, None, withdrawn.thread_id)
        report(app, withdrawn.thread_id, as_json=as_json)


def _list_all(journal: Journal, thread_id: str | None, place: str, *, as_json: bool) -> None:
    """Show every approval: of one thread, or of all runs and of whatever else asks."""
    threads = [thread_id] if thread_id is not None else [run.thread_id for run in all_runs(journal)]
    found = {one.id: one for name in threads for one in journal.approvals.of_thread(name)}
    if thread_id is None:  # a raw graph has approvals and no run; those that wait are not to be missed
        found |= {one.id: one for one in journal.approvals.pending(limit=EVERY)}
    asked = sorted(found.values(), key=lambda one: (one.opened_at, one.round, one.id))
    if as_json:
        print_json([approval_document(one) for one in asked])
    elif asked:
        show.stdout().print(show.every_approval_table(asked))
    else:
        show.stdout().print(f"Nothing was ever asked in {place}.", markup=False, soft_wrap=True)


def _decide(
    context: typer.Context,
    approval_id: str,
    who: Person,
    decision: Callable[[Approval], Command[Any]],
    *,
    detach: bool,
    as_json: bool,
) -> None:
    with wired(settings_of(context), must_exist=True) as app:
        approval = app.journal.approvals.get(approval_id)
        carry_on = leave if detach else advance
        try:
            carry_on(app, decision(approval), approval.thread_id, principal=who)
        except RunDead:  # the decision is recorded all the same, and read when somebody redrives the run
            if not as_json:
                _say_recorded(app, approval_id)
            raise
        if not as_json:
            _say_recorded(app, approval_id)
        report(app, approval.thread_id, as_json=as_json, detached=detach)


def _leave(withdrawn: Approval, *, as_json: bool) -> None:
    """Say who carries on a run that is none of the claims graph, or that has no row."""
    if as_json:
        print_json(approval_document(withdrawn))
        return
    said = f"This run is carried on by its own graph: {in_python(withdrawn.thread_id)}; or by the Agent Server: a run with input=None."
    show.stdout().print(Text(said), soft_wrap=True)


def _say_recorded(app: App, approval_id: str) -> None:
    """Say that the decision stands, also where another worker has the run in its hands; or whose votes there are."""
    one = app.journal.approvals.get(approval_id)
    if one.state == "pending":
        voted = ", ".join(
            f"{vote.decision['type']} by {vote.principal}" for vote in app.journal.approvals.votes(one.id)
        )
        show.stdout().print(Text(f"Recorded: {voted}. It is decided when enough of them say the same."), soft_wrap=True)
        return
    kind = one.decision["type"] if one.decision else "the decision"
    said = f"Recorded: {kind} by {one.decided_by}."
    if holder := situation(app.journal, one.thread_id).holder(one.thread_id):
        said += f" Worker {holder.owner} holds the thread and carries it on."
    show.stdout().print(Text(said), soft_wrap=True)
