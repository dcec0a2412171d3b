"""How the carrier's claims system speaks: everybody on the host may call, there are no keys, errors are `{"error": ...}`."""

from __future__ import annotations

from tools.sandbox.calls import Answer, Call, json_answer
from tools.sandbox.faults import At
from tools.sandbox.keys import StoredAnswer


class ClaimsService:
    """The claims system's side of an exchange. It is idempotent by what a call says, so it keeps no keys."""

    at: At = "claims"
    takes_keys = False
    stores_errors = False

    def admit(self, call: Call) -> None:
        """Take everybody."""

    def fingerprint(self, call: Call) -> str:
        """Return the call's method, path and body."""
        return f"{call.method} {call.path} {call.text}"

    def mismatch(self, call: Call) -> Answer:
        """Answer 409."""
        return json_answer(409, {"error": f"the key {call.key!r} was used with another request"})

    def in_use(self, call: Call) -> Answer:
        """Answer 409."""
        return json_answer(409, {"error": f"a request with the key {call.key!r} is in progress"})

    def failed(self, call: Call) -> Answer:
        """Answer 500."""
        return json_answer(500, {"error": f"{call.method} {call.path} broke on this side"})

    def rate_limited(self, call: Call) -> Answer:
        """Answer 429."""
        return json_answer(429, {"error": f"too many calls to {call.path}"})

    def headers(self, call: Call, replayed: StoredAnswer | None) -> dict[str, str]:
        """Return the request's id."""
        del replayed
        return {"x-request-id": call.request_id}
