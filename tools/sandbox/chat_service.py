"""
How Slack speaks: who may call, and that a refusal is a 200 with `{"ok": false, "error": ...}`. The messages are in `chat_api`.

It takes no keys. Only too many calls get another status, 429, with `Retry-After`. Source: https://docs.slack.dev/apis/web-api.
"""

from __future__ import annotations

from tools.sandbox.calls import Answer, Call, Refusal, json_answer
from tools.sandbox.faults import At
from tools.sandbox.keys import StoredAnswer

RETRY_AFTER = "1"


class ChatService:
    """Slack's side of an exchange."""

    at: At = "chat"
    takes_keys = False
    stores_errors = False

    def admit(self, call: Call) -> None:
        """Take bearers of a bot's token, `xoxb-...`, only."""
        scheme, _, token = call.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            raise Refusal(error("not_authed"))
        if not token.startswith("xoxb-"):
            raise Refusal(error("invalid_auth"))

    def fingerprint(self, call: Call) -> str:
        """Return the call as it is; without keys nobody compares it."""
        return f"{call.method} {call.path} {call.text}"

    def mismatch(self, call: Call) -> Answer:
        """Refuse; without keys it never comes to that."""
        del call
        return error("invalid_arguments")

    def in_use(self, call: Call) -> Answer:
        """Refuse; without keys it never comes to that."""
        del call
        return error("invalid_arguments")

    def failed(self, call: Call) -> Answer:
        """Answer 500, as Slack does; part of the call may have been done."""
        del call
        return json_answer(500, {"ok": False, "error": "internal_error"})

    def rate_limited(self, call: Call) -> Answer:
        """Answer 429, and when to come again."""
        del call
        return json_answer(429, {"ok": False, "error": "ratelimited"}, headers={"Retry-After": RETRY_AFTER})

    def headers(self, call: Call, replayed: StoredAnswer | None) -> dict[str, str]:
        """Return the request's id."""
        del replayed
        return {"x-slack-req-id": call.request_id}


def error(code: str) -> Answer:
    """Return Slack's answer to what it refuses."""
    return json_answer(200, {"ok": False, "error": code})
