"""
How a call says which thread it means, who is acting, and what was decided.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, Interrupt

from checkpointing import Approval
from checkpointing.digest import JSON
from checkpointing.errors import DecisionInvalid, InputRefused
from checkpointing.principals import Person
from nodes.principal import PRINCIPAL, Principal, principal_of
from nodes.state import CHANNELS

SUBMISSION = "__counterfoil_submission"
LONGEST_THREAD_ID = 255

Shown = Mapping[str, Any] | Approval | Interrupt
"""A question as its asker got it: the interrupt, its value, or the approval."""


@dataclass(frozen=True, slots=True)
class Start:
    """Run the thread on this input."""

    input: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Nudge:
    """Do whatever is left to do."""


@dataclass(frozen=True, slots=True)
class Decide:
    """Record these decisions, each by the approval it names or the interrupt it answers, and advance."""

    answers: tuple[Answer, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """
    One decision and what it is for.

    Attributes:
        approval_id: The approval it names, or `None`.
        interrupt_id: LangGraph's interrupt it answers, or `None`.
        value: The decision as it came.
    """

    approval_id: str | None
    interrupt_id: str | None
    value: Any


Ask = Start | Nudge | Decide


def thread(thread_id: str, *, principal: str | Person | None = None, submission: str | None = None) -> RunnableConfig:
    """
    Return the config that names a thread.

    Args:
        thread_id: 1 to 255 characters without control characters.
        principal: who is acting, as authentication says; needed to decide. A `Person` has groups and a limit too.
        submission: the caller's name for this input, where the graph takes turns: the same name is the same turn.

    Raises:
        InputRefused: not a thread id.
    """
    _check_thread_id(thread_id)
    configurable: dict[str, Any] = {"thread_id": thread_id}
    if principal is not None:
        configurable[PRINCIPAL] = Principal(principal if isinstance(principal, Person) else Person(principal))
    if submission is not None:
        configurable[SUBMISSION] = submission
    return {"configurable": configurable}


def approve(request: Shown) -> Command[Any]:
    """Return the command that approves exactly what *request* shows."""
    return _decision(request, type="approve")


def reject(request: Shown, reason: str | None = None) -> Command[Any]:
    """Return the command that rejects what *request* shows."""
    return _decision(request, type="reject", **({} if reason is None else {"reason": reason}))


def edit(request: Shown, payload: Mapping[str, JSON], reason: str | None = None) -> Command[Any]:
    """Return the command that approves *payload* in place of what *request* shows; it has the same keys."""
    return _decision(
        request,
        type="edit",
        payload=dict(payload),
        **({} if reason is None else {"reason": reason}),
    )


def answer(request: Shown | str, value: JSON) -> Command[Any]:
    """Return the command that answers a graph's own `interrupt()`, given as the interrupt, its id, or its approval."""
    if isinstance(request, Interrupt):
        return Command(resume={request.id: value})
    if isinstance(request, Approval) and request.interrupt_id:
        return Command(resume={request.interrupt_id: value})
    if isinstance(request, str):
        return Command(resume={request: value})
    return _decision(request, type="respond", value=value)


def read_ask(given: object) -> Ask:
    """
    Return what a call's input asks for.

    Raises:
        InputRefused: input of another kind, a command that updates or jumps, channels that are not the caller's to write.
        DecisionInvalid: a resume that names nothing.
    """
    if given is None:
        return Nudge()
    if isinstance(given, Command):
        return _read_command(given)
    if isinstance(given, dict):
        if own := sorted(CHANNELS & given.keys()):
            raise InputRefused(
                f"the input may not write {', '.join(own)}: those channels are the record of what happened"
            )
        return Start(given)
    raise InputRefused(f"the input is a mapping, None or Command(resume=...), not {type(given).__name__}")


def read_config(config: RunnableConfig) -> tuple[str, Person | None, str]:
    """
    Return the thread id, the principal and the submission a config names.

    Raises:
        InputRefused: no thread id, or a checkpoint is addressed.
    """
    configurable = config.get("configurable", {})
    if configurable.get("checkpoint_id") or configurable.get("checkpoint_ns"):
        raise InputRefused(
            "a durable run is advanced from its head only; look at an old checkpoint with replay(thread_id), "
            "and try another way from it with fork(thread_id, at=...)"
        )
    thread_id = configurable.get("thread_id")
    _check_thread_id(thread_id)
    principal, submission = principal_of(config), str(configurable.get(SUBMISSION) or "")
    name = principal.name if principal else None
    if not is_plain(f"{name or ''}{submission}"):
        raise InputRefused(
            f"a principal and a submission are text without control characters, not {name!r}, {submission!r}"
        )
    return str(thread_id), principal, submission


def _read_command(command: Command[Any]) -> Decide:
    if command.update or command.goto:
        raise InputRefused(
            "a durable run takes no update and no goto: they would change what was recorded; see fork(thread_id, at=...)"
        )
    resume = command.resume
    if isinstance(resume, Mapping) and resume.get("approval"):
        return Decide((Answer(str(resume["approval"]), None, resume),))
    if isinstance(resume, Mapping) and resume and all(_is_interrupt_id(key) for key in resume):
        return Decide(tuple(_unwrapped(str(key), value) for key, value in resume.items()))
    raise DecisionInvalid(
        "a resume must name what it answers, or it would answer whatever is pending by then: approve(request), reject(request), "
        "edit(request, payload), answer(interrupt, value), or {interrupt id: decision}"
    )


def _unwrapped(interrupt_id: str, value: Any) -> Answer:
    named = value.get("approval") if isinstance(value, Mapping) else None
    return Answer(str(named) if named else None, interrupt_id, value)


def _is_interrupt_id(key: object) -> bool:
    return isinstance(key, str) and len(key) == 32 and all(c in "0123456789abcdef" for c in key)


def _decision(request: Shown | str, **decision: Any) -> Command[Any]:
    shown = request.value if isinstance(request, Interrupt) else request
    if isinstance(shown, Approval):
        shown = shown.request()
    if not isinstance(shown, Mapping) or "id" not in shown:
        raise DecisionInvalid(
            "this is not an approval's request: it has no id. For a graph's own interrupt() use answer(interrupt, value)"
        )
    return Command(resume={"approval": shown["id"], "payload_hash": shown.get("payload_hash"), **decision})


def is_plain(text: str) -> bool:
    """Tell whether *text* has no control characters and no lone surrogates."""
    return not any(unicodedata.category(character) in ("Cc", "Cs") for character in text)


def _check_thread_id(thread_id: object) -> None:
    if not isinstance(thread_id, str) or not 1 <= len(thread_id) <= LONGEST_THREAD_ID or not is_plain(thread_id):
        raise InputRefused(
            f"a thread id is text of 1 to {LONGEST_THREAD_ID} characters without control characters, not {thread_id!r:.80}"
        )
