"""
Agent Inbox's form of a question and of its answer, where a graph asks in it, and where ours are shown in it (`service/agent_inbox.py`).

    asked       {"action_request": {"action", "args"}, "config": {"allow_accept", "allow_edit", "allow_respond", "allow_ignore"}, "description"?},
                alone or as a list with one
    answered    [{"type": "accept" | "edit" | "response" | "ignore", "args": null | text | {"action", "args"}}]

Its form sends every value back as text. So an accept means what was shown, whatever came back with it; an edit's values are read as the kinds of
those shown; and neither may name another action.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from checkpointing.errors import DecisionInvalid
from graph.returned import read_as

ALLOWED_BY = {
    "accept": "allow_accept",
    "edit": "allow_edit",
    "response": "allow_respond",
    "ignore": "allow_ignore",
}


@dataclass(frozen=True, slots=True)
class Response:
    """
    One answer of Agent Inbox, checked against the question.

    Attributes:
        kind: `accept`, `edit`, `response` or `ignore`.
        action: The action's name, as asked.
        args: Its arguments: as asked, or for an edit what was made of them, in the kinds of those asked.
        text: What a response says, or why something is ignored.
        alone: Nothing came with it.
    """

    kind: str
    action: str
    args: Any
    text: str | None
    alone: bool

    def as_sent(self) -> list[dict[str, Any]]:
        """Return it as a node that asked gets it: a list with one."""
        if self.kind in ("accept", "edit") and not self.alone:
            return [{"type": self.kind, "args": {"action": self.action, "args": self.args}}]
        return [{"type": self.kind, "args": self.text}]


def inbox_request(asked: Any) -> Mapping[str, Any] | None:
    """Return the request if *asked* is one of Agent Inbox's, else `None`."""
    one = asked[0] if isinstance(asked, list) and len(asked) == 1 else asked
    parts = ("action_request", "config")
    return one if isinstance(one, Mapping) and all(isinstance(one.get(part), Mapping) for part in parts) else None


def response_to(request: Mapping[str, Any], value: Any, what: str) -> Response:
    """
    Return what an answer says.

    Raises:
        DecisionInvalid: it is no list with one response, its type is not allowed, it names another action, or a value does not fit.
    """
    given = value[0] if isinstance(value, list) and len(value) == 1 else None
    kind = given.get("type") if isinstance(given, Mapping) else None
    allowed = [one for one, key in ALLOWED_BY.items() if request["config"].get(key) is True]
    if not isinstance(given, Mapping) or kind not in allowed:
        raise DecisionInvalid(
            f"{what} is a list with one {{'type', 'args'}}, and its type is {' or '.join(allowed) or 'none'}, not {kind!r}"
        )
    shown, args = request["action_request"], given.get("args")
    if isinstance(args, Mapping) and args.get("action") != shown.get("action"):
        raise DecisionInvalid(f"{what} is about {shown.get('action')!r} and not about {args.get('action')!r}")
    if kind == "response" and not isinstance(args, str):
        raise DecisionInvalid(f"{what}: a response has text as its 'args'")
    if kind in ("accept", "edit") and not isinstance(args, Mapping | None):
        raise DecisionInvalid(f"{what}: the 'args' of {kind} are the action and its arguments")
    text = args if isinstance(args, str) else None
    return Response(str(kind), str(shown.get("action")), _arguments(shown, str(kind), args, what), text, args is None)


def _arguments(shown: Mapping[str, Any], kind: str, args: Any, what: str) -> Any:
    if kind != "edit":
        return shown.get("args")
    if not isinstance(args, Mapping) or not isinstance(args.get("args"), Mapping):
        raise DecisionInvalid(f"{what}: an edit has the action and its arguments, {{'action', 'args'}}")
    if not isinstance(shown.get("args"), Mapping):
        raise DecisionInvalid(f"{what}: no arguments were shown, so there are none to be edited")
    return read_as(shown["args"], args["args"], f"the arguments in {what}")
