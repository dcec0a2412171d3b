"""
The effect `notify`: one e-mail a slot, over a mail service that speaks Resend's API.

Resend keeps a key for 24 hours and stores successes only, so a repeat after an error is tried anew. It has no business no:
what it takes it delivers or bounces later. It has a look-up by id only, not by key, so there is no `lookup` here.
"""

from __future__ import annotations

from typing import Any

from checkpointing.errors import KeyInUse, KeyMismatch, Rejected, Unreachable
from tools.effect import Effect, effect
from tools.receivers import RESEND
from tools.wire import Answer, call

RESEND_URL = "https://api.resend.com"


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

    return notify


def _message_id(answer: Answer) -> str:
    """Return the id in *answer*, or raise what the caller must do."""
    if 200 <= answer.status < 300:
        if not (message_id := answer.text("id")):
            raise Unreachable(f"the mail service answered {answer.status} without an id")
        return message_id
    said = f"the mail service answered {answer.status} {answer.text('name')}: {answer.text('message')}"
    if answer.text("name") == "invalid_idempotent_request":
        raise KeyMismatch(said)
    if answer.text("name") == "concurrent_idempotent_requests":
        raise KeyInUse(said)
    if 400 <= answer.status < 500:
        raise Rejected(said)
    raise Unreachable(said)
