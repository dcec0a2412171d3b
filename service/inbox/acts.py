"""
What may be done about a run, an effect or a question, beyond deciding: the same as on the command line, each said in words before it is done.

A link leads to a page that says what will happen; only that page's form makes it happen.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal
from urllib.parse import quote

from checkpointing.digest import canonical
from checkpointing.errors import ArgumentsNotJson
from service.deciding import take_back
from service.inbox.desk import Desk, text
from service.who.visitor import Role, Visitor

Wants = Literal["nothing", "may", "must"]
HOURS = ((4, "4 hours"), (24, "1 day"), (72, "3 days"), (168, "a week"))


class NotTyped(ValueError):
    """Something is missing in the form, or cannot be read; the message is for whoever typed it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """
    What a form asks to be done.

    Attributes:
        of: The thread, the effect's key or the approval's id.
    """

    desk: Desk
    visitor: Visitor
    of: str
    form: Mapping[str, Any]
    reason: str

    @property
    def is_operator(self) -> bool:
        """Whether the visitor may change any question."""
        return self.visitor.may("operator")


@dataclass(frozen=True, slots=True)
class Act:
    """
    One thing that may be done.

    Attributes:
        roles: Who is let to its page; the ledger says whether they may.
        says: What will happen, a sentence a line.
        button: What the button that does it says.
        reason: Whether it takes a reason.
        takes: Which fields its form has besides: `hours`, `people`, `happened`.
        do: Does it, and returns the page to go on to.
    """

    title: str
    roles: tuple[Role, ...]
    says: tuple[str, ...]
    button: str
    do: Callable[[Asked], str]
    reason: Wants = "must"
    takes: Sequence[str] = ()
    is_final: bool = False


def run_page(thread_id: str) -> str:
    """Return the address of a run's page; a thread may be called anything."""
    return f"/run?id={quote(thread_id, safe='')}"


def _resume(asked: Asked) -> str:
    asked.desk.journal.runs.nudge(asked.of, principal=asked.visitor.name)
    return run_page(asked.of)


def _redrive(asked: Asked) -> str:
    asked.desk.journal.runs.redrive(asked.of, principal=asked.visitor.name, reason=asked.reason)
    return run_page(asked.of)


def _discard(asked: Asked) -> str:
    asked.desk.journal.runs.discard(asked.of, principal=asked.visitor.name, reason=asked.reason)
    return run_page(asked.of)


def _resolve(asked: Asked) -> str:
    said = text(asked.form, "happened")
    if said not in ("yes", "no"):
        raise NotTyped("Say whether it happened.")
    outcome = _json(text(asked.form, "outcome")) if said == "yes" else None
    effect = asked.desk.journal.effects.resolve(
        asked.of, happened=said == "yes", outcome=outcome, principal=asked.visitor.name
    )
    return run_page(effect.thread_id)


def _extend(asked: Asked) -> str:
    hours = text(asked.form, "hours")
    if hours not in {str(count) for count, _ in HOURS}:
        raise NotTyped("Choose how much longer.")
    asked.desk.journal.approvals.extend(
        asked.of,
        timedelta(hours=int(hours)),
        principal=asked.visitor.person,
        reason=asked.reason,
        operator=asked.is_operator,
    )
    return f"/approvals/{asked.of}"


def _reassign(asked: Asked) -> str:
    people = [one.strip() for one in text(asked.form, "people").replace("\n", ",").split(",") if one.strip()]
    if not people:
        raise NotTyped("Name somebody, or a group as group:NAME.")
    asked.desk.journal.approvals.reassign(
        asked.of, people, principal=asked.visitor.person, reason=asked.reason, operator=asked.is_operator
    )
    return f"/approvals/{asked.of}"


def _withdraw(asked: Asked) -> str:
    approval = asked.desk.journal.approvals.get(asked.of)
    take_back(asked.desk.app, asked.visitor, approval, asked.reason)
    return f"/approvals/{asked.of}"


def _json(typed: str) -> Any:
    try:
        value = json.loads(typed)
        canonical(value, what="outcome")
    except (ValueError, RecursionError, ArgumentsNotJson) as error:
        raise NotTyped('Write what its receiver has as JSON, as in {"id": "pay_1", "amount": 184000}.') from error
    return value


ACTS: Mapping[str, Act] = {
    "resume": Act(
        "Carry this run on now",
        ("operator",),
        (
            "A worker takes it up at once from its last step, where it would wait before its next attempt.",
            "What was done is read from the record and not done again. If it waits for a decision, it goes on waiting.",
        ),
        "Carry it on",
        _resume,
        reason="nothing",
    ),
    "redrive": Act(
        "Redrive this dead letter",
        ("operator",),
        (
            "A worker takes it up from its last step, with all its attempts. No effect is repeated.",
            "Mend the cause first: otherwise it comes back here.",
        ),
        "Redrive",
        _redrive,
    ),
    "discard": Act(
        "Give this run up for good",
        ("operator",),
        (
            "It is not listed and not redriven any more, and whatever it still asks is withdrawn.",
            "What was executed stays executed. This cannot be undone; the job itself can be submitted again under another name.",
        ),
        "Give it up",
        _discard,
        is_final=True,
    ),
    "resolve": Act(
        "Say what became of this effect",
        ("operator",),
        (
            "Its receiver did not answer, so nobody knows whether it happened. Look it up there first.",
            "If it happened, what you enter is recorded as its outcome, and it is never done again.",
            "If it did not happen, the run does it when it goes on.",
            "Every run that waits for this goes on at once.",
        ),
        "Record it",
        _resolve,
        reason="nothing",
        takes=("happened",),
        is_final=True,
    ),
    "extend": Act(
        "Give this question more time",
        ("operator", "approver"),
        ("The people who are asked have longer to answer, and a reminder moves along.",),
        "Give it more time",
        _extend,
        reason="may",
        takes=("hours",),
    ),
    "reassign": Act(
        "Ask other people",
        ("operator", "approver"),
        (
            "Only the people named here may decide afterwards, in the time that is left.",
            "Whoever submitted it cannot decide it, whoever is named.",
        ),
        "Ask them",
        _reassign,
        reason="may",
        takes=("people",),
    ),
    "withdraw": Act(
        "Take this back",
        ("approver", "submitter"),
        (
            "Nothing is done under it any more. If it still waits, the run goes on without it.",
            "If something was done under it already, it cannot be taken back, and you are told so.",
        ),
        "Take it back",
        _withdraw,
        is_final=True,
    ),
}
