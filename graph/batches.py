"""
Decisions about several calls of LangChain's `HumanInTheLoopMiddleware`: its batched form has no ids and goes by position, so an answer that was put
together in another order would run the wrong tool. Two forms say what each decision is for, and are made into the middleware's own:

    keyed     {"decisions": {tool call id: decision, ...}}                  every call that is asked about, and no other
    echoing   {"decisions": [{"name", "args", "type", ...}, ...]}           each as shown, or with its `tool_call_id`; in any order, for each says
                                                                            where it belongs
    a list    {"decisions": [decision]}                                     about one call only

What is recorded is `{"decisions": [decision, ...]}` in the order of the requests, of each decision what its kind needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import ToolCall

from checkpointing.errors import DecisionInvalid
from graph.returned import same

KINDS = ("approve", "edit", "reject", "respond")
KEPT = {"approve": (), "edit": ("edited_action",), "reject": ("message",), "respond": ("message",)}
ECHO = ("name", "args")
CALL_ID = "tool_call_id"

Shown = Mapping[str, Any]
"""A request as the middleware shows it: `name`, `args`, `description`."""


def by_position(
    asked: Mapping[str, Any], value: Any, calls: Callable[[], Sequence[ToolCall]], what: str
) -> dict[str, Any]:
    """
    Return the decisions as the middleware takes them.

    Raises:
        DecisionInvalid: one of them is missing, names nothing, is for a call that is not asked about, or is not of a kind its call takes.
    """
    requests: list[Shown] = asked["action_requests"]
    given = value.get("decisions") if isinstance(value, Mapping) else None
    if isinstance(given, list) and given and all(isinstance(one, Mapping) and CALL_ID in one for one in given):
        given = _by_their_ids(given, what)
    if isinstance(given, Mapping):
        ordered = _keyed(requests, given, calls(), what)
    elif isinstance(given, list) and all(_echoes(one) for one in given):
        ordered = _echoing(requests, given, what)
    elif isinstance(given, list) and len(given) == len(requests) == 1:
        ordered = given
    else:
        raise DecisionInvalid(f"{what} says for every call what is decided about it: {_forms(requests, calls())}")
    kept = []
    for number, (request, decision) in enumerate(zip(requests, ordered, strict=True)):
        allowed = _allowed(asked["review_configs"], request["name"])
        check_decision(request, decision, allowed=allowed, what=f"decision {number} of {what}")
        kept.append(_kept(decision))
    _check_edits_stay(requests, kept, calls, what)
    return {"decisions": kept}


def check_decision(request: Shown, decision: Any, *, allowed: tuple[str, ...], what: str) -> None:
    """
    Refuse a decision that the call it is for does not take.

    Raises:
        DecisionInvalid: a kind that is not allowed, an echo of another call, or less than the kind needs.
    """
    kind = decision.get("type") if isinstance(decision, Mapping) else None
    if kind not in allowed:
        raise DecisionInvalid(f"{what}: {request['name']!r} takes {', '.join(allowed)}, not {kind!r}")
    for part in (*ECHO, CALL_ID):
        if part in decision and part in request and not same(decision[part], request[part]):
            raise DecisionInvalid(f"{what} is for {decision[part]!r}, and {request[part]!r} was asked about there")
    if kind == "edit":
        _check_edit(request, decision.get("edited_action"), what)
    message = decision.get("message")
    if kind == "respond" and not isinstance(message, str):
        raise DecisionInvalid(f"{what}: a respond has the text 'message'")
    if kind == "reject" and not isinstance(message, str | None):
        raise DecisionInvalid(f"{what}: the 'message' of a reject is text")


def _check_edit(request: Shown, edited: Any, what: str) -> None:
    if not isinstance(edited, Mapping) or not isinstance(edited.get("args"), Mapping):
        raise DecisionInvalid(f"{what}: an edit has an 'edited_action' with 'name' and 'args'")
    if edited.get("name") != request["name"]:
        raise DecisionInvalid(
            f"{what}: an edit changes the arguments of {request['name']!r}, it does not make a {edited.get('name')!r} of it"
        )


def _allowed(reviews: list[Mapping[str, Any]], name: str) -> tuple[str, ...]:
    """Return the kinds that calls of a tool take; the review's, found by the tool's name and not by where it stands."""
    return next((tuple(one["allowed_decisions"]) for one in reviews if one["action_name"] == name), ())


def _keyed(requests: list[Shown], given: Mapping[str, Any], calls: Sequence[ToolCall], what: str) -> list[Any]:
    ids = ids_of(requests, calls)
    if ids is None:
        raise DecisionInvalid(
            f"{what} is keyed by tool call, and here the ids do not tell which call is which: {_echo_form(requests)}"
        )
    if missing := [one for one in ids if one not in given]:
        raise DecisionInvalid(f"{what} says nothing about call {', '.join(map(repr, missing))}; asked: {_listed(ids)}")
    if unknown := [one for one in given if one not in ids]:
        raise DecisionInvalid(f"{what} is not about call {', '.join(map(repr, unknown))}; asked: {_listed(ids)}")
    for one in ids:
        said = given[one].get(CALL_ID, one) if isinstance(given[one], Mapping) else one
        if said != one:
            raise DecisionInvalid(f"{what} has under call {one!r} a decision about call {said!r}")
    return [given[one] for one in ids]


def _by_their_ids(given: list[Mapping[str, Any]], what: str) -> dict[str, Any]:
    keyed = {str(one[CALL_ID]): one for one in given}
    if len(keyed) < len(given):
        raise DecisionInvalid(f"{what} decides about one call twice: {_listed([str(one[CALL_ID]) for one in given])}")
    return keyed


def ids_of(requests: Sequence[Shown], calls: Sequence[ToolCall]) -> list[str] | None:
    """Return the ids of the calls that *requests* show, in their order; `None` where they do not tell each from every other."""
    ids: list[str] = []
    every = [call["id"] for call in calls]
    for number, request in enumerate(requests):
        twins = [call["id"] for call in calls if _shows(request, call)]
        equal = [other for other, one in enumerate(requests) if _equal(one, request)]
        # Of equal calls the middleware may have asked about some only: then nothing tells about which.
        if len(twins) != len(equal):
            return None
        found = twins[equal.index(number)]
        if not found or every.count(found) > 1:
            return None
        ids.append(found)
    return ids


def _echoes(decision: Any) -> bool:
    return isinstance(decision, Mapping) and all(part in decision for part in ECHO)


def _echoing(requests: list[Shown], given: list[Mapping[str, Any]], what: str) -> list[Any]:
    if len(given) != len(requests):
        raise DecisionInvalid(f"{what} has {len(given)} decisions, and {len(requests)} calls were shown")
    placed: dict[int, Mapping[str, Any]] = {}
    for number, decision in enumerate(given):
        free = (at for at, request in enumerate(requests) if at not in placed and _equal(request, decision))
        at = next(free, None)
        if at is None:
            raise DecisionInvalid(
                f"decision {number} of {what} is for {decision['name']!r} with arguments that were not shown, or were answered already"
            )
        placed[at] = decision
    _check_twins_agree(requests, placed, what)
    return [placed[at] for at in range(len(requests))]


def _check_twins_agree(requests: list[Shown], placed: Mapping[int, Mapping[str, Any]], what: str) -> None:
    """An echo cannot tell equal calls apart, so what it decides must be the same for all of them."""
    for at, request in enumerate(requests):
        first = next(other for other, one in enumerate(requests) if _equal(one, request))
        if placed[at].get("type") != placed[first].get("type"):
            raise DecisionInvalid(
                f"{what} decides {placed[first].get('type')!r} and {placed[at].get('type')!r} about equal calls of {request['name']!r}: "
                "key the decisions by tool call, {'decisions': {id: decision}}, or decide the same about both"
            )


def _check_edits_stay(
    requests: list[Shown], kept: list[dict[str, Any]], calls: Callable[[], Sequence[ToolCall]], what: str
) -> None:
    """The middleware keeps an edit by the call's id: under an id that two calls have it would replace both, under none it is lost."""
    edited = [request for request, one in zip(requests, kept, strict=True) if one["type"] == "edit"]
    if not edited:
        return
    made = calls()
    every = [call["id"] for call in made]
    for request in edited:
        if any(_shows(request, call) and (not call["id"] or every.count(call["id"]) > 1) for call in made):
            raise DecisionInvalid(
                f"{what}: a call of {request['name']!r} has no id of its own, so an edit would reach another call too, or none; reject it"
            )


def _kept(decision: Mapping[str, Any]) -> dict[str, Any]:
    kind = decision["type"]
    return {"type": kind, **{part: decision[part] for part in KEPT[kind] if decision.get(part) is not None}}


def _equal(one: Shown, other: Shown) -> bool:
    return same([one["name"], one["args"]], [other["name"], other["args"]])


def _shows(request: Shown, call: ToolCall) -> bool:
    return same([request["name"], request["args"]], [call["name"], call["args"]])


def _forms(requests: list[Shown], calls: Sequence[ToolCall]) -> str:
    ids = ids_of(requests, calls)
    keyed = f"{{'decisions': {{{', '.join(f'{one!r}: {{...}}' for one in ids)}}}}}, by tool call, or " if ids else ""
    return f"{keyed}{_echo_form(requests)}"


def _echo_form(requests: list[Shown]) -> str:
    return (
        f"{{'decisions': [{', '.join(_echoed_by(requests))}]}}, each with the 'name' and the 'args' it was shown with"
    )


def _echoed_by(requests: list[Shown]) -> Iterator[str]:
    return (f"{{'name': {request['name']!r}, 'args': {{...}}, 'type': ...}}" for request in requests)


def _listed(ids: Sequence[str]) -> str:
    return ", ".join(map(repr, ids))
