"""
A mail service in Resend's shape: taking a message, reading one, listing them. Nothing is sent to anybody.

Resend stores successes only: a repeat after an error is tried anew. A listed message has neither its text nor its tags.
Sources: https://resend.com/docs/api-reference/emails and https://resend.com/docs/api-reference/pagination.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.routing import Route

from tools.sandbox.calls import Answer, Call, Refusal, json_answer
from tools.sandbox.exchange import Exchange, Execution
from tools.sandbox.faults import At
from tools.sandbox.keys import StoredAnswer

MAX_KEY_LENGTH = 256
LISTED = ("id", "to", "from", "created_at", "subject", "bcc", "cc", "reply_to", "last_event", "scheduled_at")
Address = Annotated[str, Field(pattern=r"^[^@]*[^@\s]@[^@\s]+\.[^@\s]+$", max_length=320)]


class Tag(BaseModel):
    """A word of the sender's own on a message."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,256}$")]
    value: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,256}$")]


class Email(BaseModel):
    """A message as it is handed in."""

    model_config = ConfigDict(extra="forbid", strict=True)

    sender: Annotated[Address, Field(alias="from")]
    to: Address | Annotated[list[Address], Field(min_length=1, max_length=50)]
    subject: Annotated[str, Field(min_length=1, max_length=998)]
    text: Annotated[str, Field(min_length=1)]
    tags: list[Tag] = []


class MessageService:
    """Resend's side of an exchange."""

    at: At = "emails"
    takes_keys = True
    stores_errors = False

    def admit(self, call: Call) -> None:
        """Take bearers of `re_...` only."""
        scheme, _, api_key = call.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            raise Refusal(_error(401, "missing_api_key", "There is no API key in the Authorization header."))
        if not api_key.startswith("re_"):
            raise Refusal(_error(403, "invalid_api_key", "The API key is not valid."))
        if call.key and len(call.key) > MAX_KEY_LENGTH:
            raise Refusal(_error(400, "invalid_idempotency_key", f"A key has 1 to {MAX_KEY_LENGTH} characters."))

    def fingerprint(self, call: Call) -> str:
        """Return the payload; spaces and the order of keys do not matter."""
        try:
            return json.dumps([call.path, json.loads(call.text)], sort_keys=True)
        except ValueError:
            return json.dumps([call.path, call.text])

    def mismatch(self, call: Call) -> Answer:
        """Answer 409 `invalid_idempotent_request`."""
        return _error(
            409,
            "invalid_idempotent_request",
            f"The key {call.key!r} was used with another payload.",
        )

    def in_use(self, call: Call) -> Answer:
        """Answer 409 `concurrent_idempotent_requests`."""
        return _error(
            409,
            "concurrent_idempotent_requests",
            f"A request with the key {call.key!r} is in progress.",
        )

    def failed(self, call: Call) -> Answer:
        """Answer 500."""
        del call
        return _error(500, "internal_server_error", "Something broke on this side.")

    def rate_limited(self, call: Call) -> Answer:
        """Answer 429."""
        del call
        return _error(429, "rate_limit_exceeded", "Too many requests.")

    def headers(self, call: Call, replayed: StoredAnswer | None) -> dict[str, str]:
        """Return the request's id; Resend does not say that an answer is a replay."""
        del replayed
        return {"x-request-id": call.request_id}


@dataclass(frozen=True, slots=True)
class MessagesApi:
    """The calls of the mail service."""

    exchange: Exchange
    service: MessageService

    def routes(self) -> list[Route]:
        """Return the routes."""
        endpoint = self.exchange.endpoint
        return [
            Route("/emails", endpoint(self.service, self.send), methods=["POST"]),
            Route("/emails", endpoint(self.service, self.page), methods=["GET"]),
            Route("/emails/{id}", endpoint(self.service, self.retrieve), methods=["GET"]),
        ]

    INSERT = "insert into emails (id, claim_id, key, body) values (:id, :claim_id, :key, :body)"

    def send(self, call: Call) -> Execution:
        """Prepare to take a message."""
        email = _email(call)

        def execute() -> Answer:
            record = _record(email)
            claim_id = next((tag.value for tag in email.tags if tag.name == "claim_id"), None)
            self.exchange.store.rows(
                self.INSERT,
                id=record["id"],
                claim_id=claim_id,
                key=call.key,
                body=json.dumps(record),
            )
            return json_answer(200, {"id": record["id"]}, executed=True)

        return execute

    ONE = "select body from emails where id = :id"

    def retrieve(self, call: Call) -> Execution:
        """Prepare to read a message."""
        row = self.exchange.store.row(self.ONE, id=call.path.rpartition("/")[2])
        if row is None:
            raise Refusal(_error(404, "not_found", "There is no such email."))
        return lambda: Answer(200, row["body"].encode())

    # Of what is newer than `before` the oldest come first, so that a page ends right before it.
    OLDER = """
        select number, body from emails
        where :after is null or number < (select number from emails where id = :after)
        order by number desc limit :limit
    """
    NEWER = """
        select number, body from emails where number > (select number from emails where id = :before)
        order by number limit :limit
    """

    def page(self, call: Call) -> Execution:
        """Prepare to list messages, newest first, from the one after `after` or up to the one before `before`."""
        limit, after, before = _page_asked(call)
        for name, cursor in (("after", after), ("before", before)):
            if cursor is not None and self.exchange.store.row(self.ONE, id=cursor) is None:
                raise Refusal(_error(422, "validation_error", f"The `{name}` is not the id of an email."))
        if before is None:
            rows = self.exchange.store.rows(self.OLDER, after=after, limit=limit + 1)
        else:
            rows = self.exchange.store.rows(self.NEWER, before=before, limit=limit + 1)
        shown = sorted(rows[:limit], key=lambda row: int(row["number"]), reverse=True)
        messages = [json.loads(row["body"]) for row in shown]
        return lambda: json_answer(
            200,
            {
                "object": "list",
                "has_more": len(rows) > limit,
                "data": [{name: message[name] for name in LISTED} for message in messages],
            },
        )


def _page_asked(call: Call) -> tuple[int, str | None, str | None]:
    """Return the page's length and the cursors after and before which it is."""
    limit = call.query.get("limit", "20")
    if not limit.isdecimal() or not 1 <= int(limit) <= 100:
        raise Refusal(_error(422, "validation_error", "The `limit` is a number from 1 to 100."))
    after, before = call.query.get("after"), call.query.get("before")
    if after is not None and before is not None:
        raise Refusal(_error(422, "validation_error", "Only one of `after` and `before` can be given."))
    return int(limit), after, before


def _email(call: Call) -> Email:
    try:
        return Email.model_validate_json(call.body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = "missing_required_field" if first["type"] == "missing" else "validation_error"
        field = ".".join(map(str, first["loc"]))
        raise Refusal(_error(422, name, f"The field `{field}`: {first['msg']}")) from error


def _record(email: Email) -> dict[str, Any]:
    """Return a message in the shape in which Resend answers it."""
    return {
        "object": "email",
        "id": str(uuid.uuid4()),
        "to": [email.to] if isinstance(email.to, str) else email.to,
        "from": email.sender,
        "created_at": datetime.now(UTC).isoformat(sep=" ", timespec="milliseconds"),
        "subject": email.subject,
        "html": None,
        "text": email.text,
        "bcc": [],
        "cc": [],
        "reply_to": [],
        "last_event": "delivered",
        "scheduled_at": None,
        "tags": [tag.model_dump() for tag in email.tags],
    }


def _error(status: int, name: str, message: str) -> Answer:
    return json_answer(status, {"statusCode": status, "name": name, "message": message})
