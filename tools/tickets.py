"""
The effect `open_ticket`: one ticket a slot, at a ticket desk that speaks Zendesk's API and is not counted on to honour keys.

It is done by check and act: the ticket carries the key as its `external_id`, and is looked for by it right before it is opened.

    201                                                     the outcome
    422 because the requester is suspended                  Declined
    408, 409, 429, 5xx, no connection, no answer, no JSON   Unreachable
    any other 4xx                                           Rejected

An `external_id` is not unique at the desk, so the check is what keeps a second ticket out, and nothing keeps out two that check at
the same time: a worker that stands still between its check and its call, for longer than its lease and the settle delay, opens a
second ticket when it goes on. Both then have the same `external_id`, and the first is the outcome. A ticket that somebody deleted
is not found again.

Zendesk does take an `Idempotency-Key`, for two hours. A claim may be in doubt for days, so this effect does not lean on it.
"""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any
from urllib.parse import urlencode

from checkpointing.errors import Declined, Rejected, ToolError, Unreachable
from tools.effect import Effect, effect
from tools.receiver import Receiver
from tools.receivers import ZENDESK_TICKETS
from tools.wire import Answer, call

CHECKED = ZENDESK_TICKETS.without_keys
"""A ticket desk without keys, whose tickets are found by `external_id`."""

PLAIN = re.compile(r"[!-+\--~]{1,255}")
"""What is an external id as it stands: printable, no space, no comma, because the list takes several between commas."""


def ticket_effect(
    *, api_key: str, base_url: str, email: str | None = None, timeout_s: float = 10.0, receiver: Receiver = CHECKED
) -> Effect:
    """
    Return the effect `open_ticket` at the desk at *base_url* (`https://SUBDOMAIN.zendesk.com`).

    Its keywords are `subject`, `text`, `requester` (`{"name", "email"}`, or `None` for the owner of the API key) and `key`; it answers
    `{"id", "external_id", "subject"}`, the id a number.

    Args:
        api_key: an OAuth access token; with *email*, that agent's API token.
        email: the agent an API token belongs to.
        base_url: where the desk is, without a path.
        timeout_s: how long a call waits for its answer.
        receiver: another profile, for a desk that takes longer to show a new ticket.
    """
    desk = _Desk(base_url.rstrip("/"), _authorization(api_key, email), timeout_s)

    @effect(receiver=receiver, name="open_ticket")
    def open_ticket(*, subject: str, text: str, key: str, requester: dict[str, str] | None = None) -> dict[str, Any]:
        return desk.found(key) or desk.open(key, subject, text, requester)

    @open_ticket.lookup
    def find_ticket(*, key: str, **_arguments: object) -> dict[str, Any] | None:
        try:
            return desk.found(key)
        except (Declined, Rejected) as refused:
            # Never `Rejected`: a question that was refused says nothing about the ticket.
            raise Unreachable(str(refused)) from refused

    return open_ticket


def external_id(key: str) -> str:
    """Return the external id of the ticket with this *key*: the key itself where it can be listed by, else `cf_` and 32 hex digits."""
    if PLAIN.fullmatch(key):
        return key
    return f"cf_{hashlib.sha256(key.encode()).hexdigest()[:32]}"


class _Desk:
    """One account at the desk."""

    def __init__(self, base_url: str, authorization: str, timeout_s: float) -> None:
        self._url = f"{base_url}/api/v2/tickets.json"
        self._headers = {"Authorization": authorization, "Accept": "application/json"}
        self._timeout_s = timeout_s

    def open(self, key: str, subject: str, text: str, requester: dict[str, str] | None) -> dict[str, Any]:
        """Open the ticket of *key*."""
        ticket: dict[str, Any] = {"subject": subject, "comment": {"body": text}, "external_id": external_id(key)}
        if requester:
            ticket["requester"] = requester
        answer = self._call("POST", self._url, {"ticket": ticket})
        return _outcome(answer.body.get("ticket") if isinstance(answer.body, dict) else None)

    def found(self, key: str) -> dict[str, Any] | None:
        """Return the ticket of *key*, the first opened if there are several, or `None`."""
        wanted = external_id(key)
        after, seen = None, set[str]()
        while True:
            tickets, after = self._page(wanted, after)
            # Compared here too: a desk that does not know the filter lists everybody's tickets.
            ours = [ticket for ticket in tickets if isinstance(ticket, dict) and ticket.get("external_id") == wanted]
            if ours:
                return min(map(_outcome, ours), key=lambda ticket: int(ticket["id"]))
            if after is None:
                return None
            if after in seen:
                raise Unreachable("the ticket desk answered a page that is followed by itself")
            seen.add(after)

    def _page(self, wanted: str, after: str | None) -> tuple[list[Any], str | None]:
        """Return the tickets of a page, and the cursor of the next, `None` on the last."""
        query = {"external_id": wanted, "page[size]": "100", "sort": "id"} | ({"page[after]": after} if after else {})
        body = self._call("GET", f"{self._url}?{urlencode(query)}").body
        tickets = body.get("tickets") if isinstance(body, dict) else None
        meta = body.get("meta") or {} if isinstance(body, dict) else {}
        if not isinstance(tickets, list) or not isinstance(meta, dict):
            raise Unreachable("the ticket desk answered something that is no list of tickets")
        following = meta.get("after_cursor") if meta.get("has_more") else None
        # More of them without a cursor is not the end: ours may be there. A desk that counts its pages has another form.
        if (meta.get("has_more") and not (isinstance(following, str) and following)) or (body or {}).get("next_page"):
            raise Unreachable("the ticket desk has more tickets, and does not say how to ask for them")
        return tickets, following

    def _call(self, method: str, url: str, body: object = None) -> Answer:
        answer = call(method, url, body=body, headers=self._headers, timeout_s=self._timeout_s)
        if not 200 <= answer.status < 300:
            raise _meaning(answer)(_said(answer))
        return answer


def _authorization(api_key: str, email: str | None) -> str:
    if email is None:
        return f"Bearer {api_key}".strip()
    return f"Basic {base64.b64encode(f'{email}/token:{api_key}'.encode()).decode()}"


def _outcome(ticket: Any) -> dict[str, Any]:
    if not isinstance(ticket, dict) or type(ticket.get("id")) is not int:
        raise Unreachable("the ticket desk answered a ticket without an id")
    return {name: ticket.get(name) for name in ("id", "external_id", "subject")}


def _meaning(answer: Answer) -> type[ToolError]:
    if answer.status == 422 and _is_suspended(answer):
        return Declined
    if 400 <= answer.status < 500 and answer.status != 409:
        return Rejected
    return Unreachable


def _is_suspended(answer: Answer) -> bool:
    """Tell whether the desk takes no tickets from this requester: its own decision, not a mistake in the request."""
    details = answer.body.get("details") if isinstance(answer.body, dict) else None
    reasons = details.get("requester") if isinstance(details, dict) else None
    return isinstance(reasons, list) and any("suspended" in str(reason).lower() for reason in reasons)


def _said(answer: Answer) -> str:
    body = answer.body if isinstance(answer.body, dict) else {}
    details = body.get("details")
    first = next(iter(details.values()), None) if isinstance(details, dict) else None
    reason = first[0].get("description") if isinstance(first, list) and first and isinstance(first[0], dict) else None
    said = reason or answer.text("description") or answer.text("error")
    return f"the ticket desk answered {answer.status}: {said}"
