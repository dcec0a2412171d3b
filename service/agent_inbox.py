"""
Agent Inbox: our approvals shown in its form, and its answers made into decisions on our own record.

    accept      approve exactly what was shown, by its hash; an edit is what the form made of it, in the kinds of the values shown
    response    respond
    ignore      reject

Its form sends every value back as text, and sends the arguments back with an accept too. Nothing of that is acted on: the record that was shown
says what is approved, and what an edit's text stands for. An answer that names another action, or that could be read in more than one way, is
refused. Questions of a graph's own are mapped where they are about one tool call, of either form of LangChain's `HumanInTheLoopMiddleware`, or are
asked in Agent Inbox's form themselves.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from langgraph.types import Command

from checkpointing import Approval
from checkpointing.errors import DecisionInvalid
from graph.answers import accepted_by, is_batch, is_call, kinds_in
from graph.inbox_format import ALLOWED_BY, Response, inbox_request, response_to

KIND_OF = {"accept": "approve", "edit": "edit", "response": "respond", "ignore": "reject"}
MARKUP = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~&:/])")
"""What Agent Inbox, which shows a description as Markdown, would take for a link, an image or a heading."""


def as_agent_inbox(approval: Approval) -> dict[str, Any] | None:
    """
    Return an approval's question as Agent Inbox shows it; `None` where its form has no place for it.

    Keys: `action_request` (`action`, `args`), `config` (`allow_accept`, `allow_edit`, `allow_respond`, `allow_ignore`), `description`.
    """
    if approval.interrupt_id is None:
        return _own(approval)
    asked = approval.payload
    if is_call(asked):
        return _call(asked, kinds_in(approval.edits))
    if is_batch(asked) and len(asked["action_requests"]) == 1 == len(asked["review_configs"]):
        return _call(asked["action_requests"][0], asked["review_configs"][0]["allowed_decisions"])
    request = inbox_request(asked)
    return None if request is None else dict(request)


def decision_of(approval: Approval, answer: Any) -> dict[str, Any]:
    """
    Return what `journal.approvals.decide(approval.id, ...)` is to record of Agent Inbox's *answer* to *approval*, as it was shown.

    Raises:
        DecisionInvalid: the answer is malformed, of a type that is not taken, about another action, or an edit's value does not fit.
    """
    what = f"the answer to approval {approval.id!r}"
    shown = as_agent_inbox(approval)
    if shown is None:
        raise DecisionInvalid(f"{what} cannot come from Agent Inbox: its form has no place for what is asked")
    response = response_to(shown, answer, what)
    if approval.interrupt_id is None:
        return {**_ours(response), "payload_hash": approval.payload_hash}
    value = response.as_sent() if inbox_request(approval.payload) is not None else _langchains(response)
    if is_batch(approval.payload):
        value = {"decisions": [value]}
    return {"type": "respond", "value": accepted_by(approval, value)}


def command_of(approval: Approval, answer: Any) -> Command[Any]:
    """As `decision_of`, as the command that a durable graph takes."""
    decision = decision_of(approval, answer)
    if approval.interrupt_id is None:
        return Command(resume={"approval": approval.id, **decision})
    return Command(resume={approval.interrupt_id: decision["value"]})


def _own(approval: Approval) -> dict[str, Any]:
    payload, about = approval.payload, approval.about or {}
    is_form = isinstance(payload, dict)
    allowed = [kind for kind in approval.allowed if kind != "edit" or is_form]
    said = [plain(str(about[key])) for key in ("title", "why") if about.get(key)]
    until = f"Until {approval.expires_at:%Y-%m-%d %H:%M} UTC" if approval.expires_at else ""
    args = payload if is_form else {"payload": payload}
    return _request(approval.name, args, allowed, "\n\n".join(filter(None, [*said, plain(until)])))


def _call(request: Mapping[str, Any], allowed: Collection[str]) -> dict[str, Any]:
    return _request(request["name"], request["args"], allowed, plain(str(request.get("description") or "")))


def _request(action: str, args: Mapping[str, Any], allowed: Collection[str], description: str) -> dict[str, Any]:
    return {
        "action_request": {"action": action, "args": dict(args)},
        "config": {key: KIND_OF[kind] in allowed for kind, key in ALLOWED_BY.items()},
        "description": description,
    }


def _ours(response: Response) -> dict[str, Any]:
    match response.kind:
        case "edit":
            return {"type": "edit", "payload": response.args}
        case "response":
            return {"type": "respond", "value": response.text}
        case _:
            reason = {} if response.text is None else {"reason": response.text}
            return {"type": KIND_OF[response.kind], **reason}


def _langchains(response: Response) -> dict[str, Any]:
    match response.kind:
        case "edit":
            return {"type": "edit", "edited_action": {"name": response.action, "args": response.args}}
        case _:
            message = {} if response.text is None else {"message": response.text}
            return {"type": KIND_OF[response.kind], **message}


def plain(text: str) -> str:
    """Return *text* as Markdown that shows it and nothing else."""
    return MARKUP.sub(r"\\\1", text)
