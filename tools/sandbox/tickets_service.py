"""
How Zendesk speaks: who may call, and its error objects. The tickets themselves are in `tickets_api`.

It takes no keys here. The real one does, for two hours; the effect that opens tickets does not count on them, so they would only hide
its mistakes. Sources: https://developer.zendesk.com/api-reference/introduction/requests and .../introduction/security-and-auth.
"""

from __future__ import annotations

import base64
import binascii

from tools.sandbox.calls import Answer, Call, Refusal, json_answer
from tools.sandbox.faults import At
from tools.sandbox.keys import StoredAnswer

RETRY_AFTER = "1"


class TicketService:
    """Zendesk's side of an exchange."""

    at: At = "tickets"
    takes_keys = False
    stores_errors = False

    def admit(self, call: Call) -> None:
        """Take every bearer's token, and basic authentication as `EMAIL/token:TOKEN`; none that begins with `revoked`."""
        token = _token(call.headers.get("authorization", ""))
        if not token or token.startswith("revoked"):
            raise Refusal(json_answer(401, {"error": "Couldn't authenticate you"}))

    def fingerprint(self, call: Call) -> str:
        """Return the call as it is; without keys nobody compares it."""
        return f"{call.method} {call.path} {call.text}"

    def mismatch(self, call: Call) -> Answer:
        """Answer 400 `IdempotentRequestError`; without keys it never comes to that."""
        del call
        said = "Request parameters don't match the given idempotency key"
        return json_answer(400, {"error": "IdempotentRequestError", "description": said})

    def in_use(self, call: Call) -> Answer:
        """Answer 409; without keys it never comes to that."""
        del call
        return json_answer(409, {"error": "DatabaseConflict", "description": "Database collision"})

    def failed(self, call: Call) -> Answer:
        """Answer 500."""
        del call
        return json_answer(500, {"error": "InternalServerError", "description": "Something broke on this side"})

    def rate_limited(self, call: Call) -> Answer:
        """Answer 429, and when to come again."""
        del call
        said = "Number of allowed API requests per minute exceeded"
        return json_answer(
            429, {"error": "APIRateLimitExceeded", "description": said}, headers={"Retry-After": RETRY_AFTER}
        )

    def headers(self, call: Call, replayed: StoredAnswer | None) -> dict[str, str]:
        """Return the request's id."""
        del replayed
        return {"X-Zendesk-Request-Id": call.request_id}


def record_invalid(field: str, description: str, error: str) -> Answer:
    """Return Zendesk's answer to a record that cannot be: which *field*, why for people, and why for programs."""
    details = {field: [{"description": description, "error": error}]}
    body = {"error": "RecordInvalid", "description": "Record validation errors", "details": details}
    return json_answer(422, body)


def _token(authorization: str) -> str:
    scheme, _, credentials = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return credentials.strip()
    if scheme.lower() != "basic":
        return ""
    try:
        user, _, token = base64.b64decode(credentials, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return token if user.endswith("/token") else ""
