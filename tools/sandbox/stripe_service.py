"""
How Stripe speaks: who may call, what a key means, and the error objects. The transfers themselves are in `stripe_api`.

Stripe stores every answer under its key once it began to execute, errors and 500s too; not what it refused before: a wrong API
key, a wrong parameter, a key in use. Source: https://docs.stripe.com/api/idempotent_requests and the SDK's error classes.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from urllib.parse import parse_qsl

from tools.sandbox.calls import Answer, Call, Refusal, json_answer
from tools.sandbox.faults import At
from tools.sandbox.keys import StoredAnswer

API_VERSION = "2025-03-31.basil"
MAX_KEY_LENGTH = 255
RETRY = "Stripe-Should-Retry"


class StripeService:
    """Stripe's side of an exchange."""

    at: At = "transfers"
    takes_keys = True
    stores_errors = True

    def admit(self, call: Call) -> None:
        """Take test keys only, as bearer or as the user of basic authentication."""
        api_key = _api_key(call.headers.get("authorization", ""))
        if not api_key.startswith("sk_test_"):
            said = (
                "The API key is not one of this account."
                if api_key
                else "There is no API key in the Authorization header."
            )
            raise Refusal(error(call, 401, said, headers={"WWW-Authenticate": 'Bearer realm="Stripe"'}))
        if call.key and len(call.key) > MAX_KEY_LENGTH:
            said = f"An idempotency key has at most {MAX_KEY_LENGTH} characters; this one has {len(call.key)}."
            raise Refusal(error(call, 400, said))

    def fingerprint(self, call: Call) -> str:
        """Return the path and the parameters; their order does not matter."""
        return json.dumps([call.path, sorted(parse_qsl(call.text, keep_blank_values=True))])

    def mismatch(self, call: Call) -> Answer:
        """Answer 400 with the type `idempotency_error`, which has no code."""
        said = (
            f"The idempotency key {call.key!r} was first used with other parameters. Another request needs another key."
        )
        return error(call, 400, said, kind="idempotency_error", headers={RETRY: "false"})

    def in_use(self, call: Call) -> Answer:
        """Answer 409 with the code `idempotency_key_in_use`, and invite to come again."""
        said = f"Another request with the idempotency key {call.key!r} is still being executed."
        return error(
            call,
            409,
            said,
            kind="idempotency_error",
            code="idempotency_key_in_use",
            headers={RETRY: "true"},
        )

    def failed(self, call: Call) -> Answer:
        """Answer 500. With a key a retry is no use: it gets the same."""
        retry = {RETRY: "false"} if call.key else None
        return error(call, 500, "Something broke on this side.", kind="api_error", headers=retry)

    def rate_limited(self, call: Call) -> Answer:
        """Answer 429."""
        return error(call, 429, "Too many requests at once.", code="rate_limit")

    def headers(self, call: Call, replayed: StoredAnswer | None) -> dict[str, str]:
        """Return the request's id, the version, and what is said about the key."""
        said = {
            "Request-Id": call.request_id,
            "Stripe-Version": call.headers.get("stripe-version", API_VERSION),
        }
        if call.key:
            said |= {
                "Idempotency-Key": call.key,
                "Original-Request": replayed.request_id if replayed else call.request_id,
            }
        if replayed:
            said["Idempotent-Replayed"] = "true"
        if replayed and replayed.status >= 500:
            said[RETRY] = "false"
        return said


def error(
    call: Call,
    status: int,
    message: str,
    *,
    kind: str = "invalid_request_error",
    code: str | None = None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Return Stripe's error object; *kind* is its `type`."""
    body: dict[str, str] = {"message": message, "type": kind}
    if code:
        body |= {
            "code": code,
            "doc_url": f"https://docs.stripe.com/error-codes/{code.replace('_', '-')}",
        }
    if param:
        body["param"] = param
    body["request_log_url"] = f"https://dashboard.stripe.com/test/logs/{call.request_id}"
    return json_answer(status, {"error": body}, headers=headers)


def _api_key(authorization: str) -> str:
    scheme, _, credentials = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return credentials.strip()
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(credentials, validate=True).decode().partition(":")[0]
    except (binascii.Error, UnicodeDecodeError):
        return ""
