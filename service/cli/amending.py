"""The commands that change a question that still waits: more time, or other people."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer
from rich.text import Text

from checkpointing import Approval
from checkpointing.errors import DecisionInvalid
from service.approval_settings import LONGEST_HOURS
from service.cli import show, words
from service.cli.documents import approval_document
from service.cli.exits import ending, person, print_json
from service.cli.options import ApprovalId, As, AsJson, Groups, Reason, settings_of
from service.wiring import opened


@ending
def extend(
    context: typer.Context,
    approval_id: ApprovalId,
    *,
    hours: Annotated[float, typer.Option(help="How much more time, in hours.")],
    principal: As = None,
    group: Groups = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """
    Give the people who are asked more time; their reminder moves with its end.

    Possible while the question waits. The claim's own cap on age stays what it is.

    Example: counterfoil extend apr_74071e3af07eb10a318c --hours 48 --as operator-3 --reason "On leave until Monday."
    """
    who = person(principal, group, command="extend")
    if not 0 < hours <= LONGEST_HOURS:
        raise DecisionInvalid(f"--hours takes a number above 0 and up to {LONGEST_HOURS}, not {hours:g}")
    with opened(settings_of(context), must_exist=True) as journal:
        changed = journal.approvals.extend(
            approval_id, timedelta(hours=hours), principal=who, reason=reason or "", operator=True
        )
    _report(changed, f"Recorded: {who.name} gave it {hours:g} hours more.", as_json=as_json)


@ending
def reassign(
    context: typer.Context,
    approval_id: ApprovalId,
    *,
    to: Annotated[
        list[str], typer.Option(metavar="NAME", help="Who is asked: a name, or group:NAME. May be repeated.")
    ],
    principal: As = None,
    group: Groups = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """
    Ask other people, in the time that is left; those who were asked are not any more, and what they voted does not count.

    Whoever may not decide it themselves does this as an operator, and does not decide it afterwards. A member of a group says so with --group.

    Example: counterfoil reassign apr_74071e3af07eb10a318c --to group:seniors --to ben --as operator-3
    """
    who = person(principal, group, command="reassign")
    with opened(settings_of(context), must_exist=True) as journal:
        changed = journal.approvals.reassign(approval_id, to, principal=who, reason=reason or "", operator=True)
    _report(changed, f"Recorded: {who.name} has {', '.join(changed.approvers or ())} asked.", as_json=as_json)


def _report(changed: Approval, said: str, *, as_json: bool) -> None:
    if as_json:
        print_json(approval_document(changed))
        return
    console = show.stdout()
    console.print(Text(said), soft_wrap=True)
    if changed.expires_at:
        console.print(Text(f"It expires at {words.instant(changed.expires_at)} UTC."), soft_wrap=True)
