"""
The receivers we know, as data: what each one's own documentation says, and the profile that follows from it.

`Known` is what a receiver promises; its `profile` is what `next_move` decides by. The profile is more careful than the promise:

    the key's life      a twelfth less, so that a key sent at the last moment still arrives within it
    a changed payload   never tried: the ledger refuses it before anything is sent, because some receivers answer the old result
    a stored error      asked about by look-up where there is one; the key would get the same error for as long as it lives

A receiver without keys is checked and then acted upon: nobody is called again before its look-up has had the time to show the first
call. Between the look and the call another worker can be faster, so two may act where a worker stood still (`docs/guarantees.md`, G1).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from tools.receiver import Receiver

MARGIN = 12
"""
A twelfth of a key's life is not used: 2 hours of Stripe's 24, 10 minutes of Zendesk's 2, 2.5 minutes of Qonto's 30 minutes.

The age is read right before the call, from the first claim on. What may pass until the receiver looks its key up is the call's own way
(a timeout, 10 seconds unless told otherwise) and what a clock that is set gains or loses; each of the three is longer by far.
"""

ChangedPayload = Literal["refused", "answered with the old result"]


@dataclass(frozen=True, slots=True)
class Known:
    """
    A receiver as its documentation describes it.

    Attributes:
        name: The service and, where it matters, the version of its API.
        key_in: The header that carries the key; `None`: it takes none.
        longest_key: In characters; `None` without keys, and where nothing is said.
        key_life: How long it promises to remember a key; `None` without keys.
        changed_payload: What another payload gets under a key it knows; `None` without keys.
        stores_errors: Whether an error is answered again for the same key; `None` without keys, and where nothing is said.
        look_up: By what a call is found again without its answer; `None`: by nothing.
        shows_after: How long after a call the look-up is sure to show its result: what the receiver says of its delay, and time for a call
            that it still executes when the caller has gone.
        source: Where this is from.
    """

    name: str
    source: str
    key_in: str | None = None
    longest_key: int | None = None
    key_life: timedelta | None = None
    changed_payload: ChangedPayload | None = None
    stores_errors: bool | None = None
    look_up: str | None = None
    shows_after: timedelta = timedelta(seconds=60)

    @property
    def profile(self) -> Receiver:
        """The profile of this receiver, with its key where it takes one."""
        if self.key_in is None or self.key_life is None:
            return self.without_keys
        return Receiver(
            honours_keys=True,
            key_life=self.key_life - self.key_life / MARGIN,
            max_key_length=self.longest_key or 255,
            settle_delay=self.shows_after,
        )

    @property
    def without_keys(self) -> Receiver:
        """
        The profile of this receiver for a call that sends no key: check, then act.

        Two attempts: the second begins with the look-up. More would hold a worker for a settle delay each.
        """
        return Receiver(settle_delay=self.shows_after, attempts=2)


STRIPE_V1 = Known(
    name="Stripe v1",
    key_in="Idempotency-Key",
    longest_key=255,
    key_life=timedelta(hours=24),
    changed_payload="refused",
    stores_errors=True,
    look_up="metadata",
    source="https://docs.stripe.com/api/idempotent_requests",
)
RESEND_MAIL = Known(
    name="Resend",
    key_in="Idempotency-Key",
    longest_key=256,
    key_life=timedelta(hours=24),
    changed_payload="refused",
    stores_errors=False,
    source="https://resend.com/docs/dashboard/emails/idempotency-keys",
)
ZENDESK_TICKETS = Known(
    name="Zendesk",
    key_in="Idempotency-Key",
    longest_key=255,
    key_life=timedelta(hours=2),
    changed_payload="refused",
    look_up="external_id",
    source="https://developer.zendesk.com/api-reference/ticketing/introduction/#idempotency",
)
SLACK_CHAT = Known(
    name="Slack",
    look_up="message metadata",
    source="https://docs.slack.dev/messaging/message-metadata",
)
JIRA_CLOUD = Known(
    name="Jira Cloud",
    look_up="label or entity property",
    # A search shows a new issue after "a few seconds to minutes".
    shows_after=timedelta(minutes=10),
    source="https://developer.atlassian.com/cloud/jira/platform/search-and-reconcile",
)
PLAIN_SMTP = Known(
    name="SMTP",
    source="https://www.rfc-editor.org/rfc/rfc1047",
)
QONTO = Known(
    name="Qonto",
    key_in="X-Qonto-Idempotency-Key",
    key_life=timedelta(minutes=30),
    changed_payload="answered with the old result",
    stores_errors=False,
    source="https://docs.qonto.com/get-started/general/idempotent-requests",
)
WORLDLINE_DIRECT = Known(
    name="Worldline Direct",
    key_in="X-GCS-Idempotence-Key",
    longest_key=40,
    key_life=timedelta(hours=24),
    changed_payload="answered with the old result",
    source="https://docs.direct.worldline-solutions.com/integration/api-developer-guide/idempotent-requests",
)
STANDARD_WEBHOOKS = Known(
    name="Standard Webhooks",
    key_in="webhook-id",
    # The standard leaves it to the consumer for how long it knows an id again; a day is what its senders keep trying for.
    key_life=timedelta(hours=24),
    changed_payload="answered with the old result",
    stores_errors=False,
    source="https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md",
)
KNOWN = (
    STRIPE_V1,
    RESEND_MAIL,
    ZENDESK_TICKETS,
    SLACK_CHAT,
    JIRA_CLOUD,
    PLAIN_SMTP,
    STANDARD_WEBHOOKS,
    QONTO,
    WORLDLINE_DIRECT,
)
"""All of them, the ones with an effect in this package first."""

STRIPE = STRIPE_V1.profile
RESEND = RESEND_MAIL.profile
ZENDESK = ZENDESK_TICKETS.profile
SLACK = SLACK_CHAT.profile
JIRA = JIRA_CLOUD.profile
SMTP = PLAIN_SMTP.profile
WEBHOOKS = STANDARD_WEBHOOKS.profile
