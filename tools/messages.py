"""
The effect `notify`: one e-mail a slot, over a mail service that speaks Resend's API.

Resend keeps a key for 24 hours and stores successes only, so a repeat after an error is tried anew. It has no business no:
what it takes it delivers or bounces later. It has a look-up by id only, not by key, so there is no `lookup` here.

Its list is newest first and has no keys: a message in it is known by its id alone. So a comparison finds a message that is recorded here and
was never taken there; one that was sent twice, or by nobody here, looks like other people's.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

from checkpointing.errors import KeyInUse, KeyMismatch, Rejected, Unreachable
from checkpointing.text import storable
from tools.effect import Effect, effect
from tools.executed import Executed
from tools.receivers import RESEND
from tools.wire import Answer, call

RESEND_URL = "https://api.resend.com"
PAGE = 100
"""How many messages Resend lists at a time, at most."""


def notify_effect(*, api_key: str, sender: str, base_url: str = RESEND_URL, timeout_s: float = 10.0) -> Effect:
    """
    Return the effect `notify`, which writes as *sender* ("Claims <claims@carrier.example>").

    Its keywords are `claim_id`, `to`, `subject`, `text` and `key`; it answers `{"id": ...}`, the service's id of the message.
    """

    @effect(receiver=RESEND, name="notify")
    def notify(*, claim_id: str, to: str, subject: str, text: str, key: str) -> dict[str, Any]:
        tags = [{"name": "claim_id", "value": claim_id}]
        answer = call(
            "POST",
            f"{base_url}/emails",
            body={"from": sender, "to": [to], "subject": subject, "text": text, "tags": tags},
            headers={"Authorization": f"Bearer {api_key}", "Idempotency-Key": key},
            timeout_s=timeout_s,
        )
        return {"id": _message_id(answer)}

    def asked(path: str) -> Answer:
        return call("GET", f"{base_url}{path}", headers={"Authorization": f"Bearer {api_key}"}, timeout_s=timeout_s)

    @notify.listing
    def messages(*, since: datetime | None) -> Iterator[Executed]:
        after: dict[str, str] = {}
        seen: set[str] = set()
        while True:
            page, more = _page(asked(f"/emails?{urlencode({'limit': PAGE, **after})}"))
            for executed in page:
                if since is not None and executed.at < since:
                    return
                yield executed
            if not more:
                return
            if page[-1].id in seen:
                raise Unreachable("the list of messages cannot be read: it has a page that is followed by itself")
            seen.add(page[-1].id)
            after = {"after": page[-1].id}

    @notify.retrieval
    def message(*, executed_id: str) -> Executed | None:
        answer = asked(f"/emails/{quote(executed_id, safe='')}")
        # An id that is none at all is refused as malformed: there is no such message either.
        return None if answer.status in {404, 422} else _executed(_told(answer))

    return notify


def _told(answer: Answer) -> dict[str, Any]:
    """Return what a question was answered with. One that was refused says nothing about what was sent."""
    if answer.status == 200 and not isinstance(answer.body, dict):
        raise Unreachable("the mail service answered something that cannot be read")
    if answer.status != 200:
        raise Unreachable(f"the mail service answered {answer.status} {answer.text('name')}: {answer.text('message')}")
    body: dict[str, Any] = answer.body
    return body


def _page(answer: Answer) -> tuple[list[Executed], bool]:
    """Return the messages of a page, and whether there are more."""
    page = _told(answer)
    messages, more = page.get("data"), page.get("has_more")
    if not isinstance(messages, list) or not isinstance(more, bool):
        raise Unreachable("the list of messages cannot be read: the mail service answered something else")
    if more and not messages:
        raise Unreachable("the list of messages cannot be read: it has more, and does not go on")
    return [_executed(message) for message in messages], more


def _executed(message: Any) -> Executed:
    try:
        message_id, at = message["id"], datetime.fromisoformat(message["created_at"])
        at = at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise Unreachable(f"a message cannot be read, it has no id or no time: {error}") from error
    if not isinstance(message_id, str) or not message_id:
        raise Unreachable("a message cannot be read: its id is no text")
    return Executed(id=storable(message_id), at=at, outcome={"id": storable(message_id)})


def _message_id(answer: Answer) -> str:
    """Return the id in *answer*, or raise what the caller must do."""
    if 200 <= answer.status < 300:
        if not (message_id := answer.text("id")):
            raise Unreachable(f"the mail service answered {answer.status} without an id")
        return storable(message_id)
    said = f"the mail service answered {answer.status} {answer.text('name')}: {answer.text('message')}"
    if answer.text("name") == "invalid_idempotent_request":
        raise KeyMismatch(said)
    if answer.text("name") == "concurrent_idempotent_requests":
        raise KeyInUse(said)
    if 400 <= answer.status < 500:
        raise Rejected(said)
    raise Unreachable(said)
