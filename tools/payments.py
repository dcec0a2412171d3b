"""
The effect `pay`: one transfer a claim, over the official Stripe SDK.

What the receiver says decides what becomes of the claim in the ledger:

    transfer made                                           the outcome
    402; a refusal of the account or the balance            Declined
    idempotency_error                                       KeyMismatch
    409 idempotency_key_in_use                              KeyInUse
    408, 429, 5xx, no connection, no answer, none to read   Unreachable
    any other 4xx                                           Rejected

Stripe stores a 500 under its key and answers it again for as long as it remembers the key, even where the transfer was made.
So after a 5xx the transfer is looked up; found, it is the outcome. The SDK's own retries are off: retrying is the ledger's.

Stripe lists transfers newest first. It does not list keys, so the key stands in the transfer's metadata; a transfer without one is somebody else's.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import stripe

from checkpointing.errors import Declined, KeyInUse, KeyMismatch, Rejected, ToolError, Unreachable
from checkpointing.text import storable
from tools import transfers
from tools.effect import Effect, effect
from tools.executed import Executed
from tools.receivers import STRIPE
from tools.transfers import Transfer

LONGEST = 300
"""How much of a message is kept: of an answer that is no JSON the SDK's message repeats all of it."""

DECLINING_CODES = frozenset({
    "account_closed",
    "account_invalid",
    "balance_insufficient",
    "insufficient_capabilities_for_transfer",
    "payouts_not_allowed",
    "transfers_not_allowed",
})  # fmt: skip
"""Stripe's codes for a 400 that says no to the business, not to the request; https://docs.stripe.com/error-codes."""


def pay_effect(*, api_key: str, base_url: str | None = None, timeout_s: float = 10.0) -> Effect:
    """
    Return the effect `pay`, bound to the account of *api_key*; *base_url* is Stripe's own when `None`.

    Its keywords are `claim_id`, `amount` in minor units, `currency`, `payee` (`acct_...`) and `key`; it answers `{"id", "amount",
    "currency", "payee", "claim_id"}` as the receiver has them, the currency in capitals. `once` is the claim, and its cost the amount.
    """
    client = _client(api_key, base_url, timeout_s)

    @effect(
        receiver=STRIPE,
        name="pay",
        once=lambda arguments: str(arguments["claim_id"]),
        cost=lambda arguments: arguments["amount"],
    )
    def pay(*, claim_id: str, amount: int, currency: str, payee: str, key: str) -> dict[str, Any]:
        try:
            return transfers.made(
                client,
                key,
                {
                    "amount": amount,
                    "currency": currency.lower(),
                    "destination": payee,
                    "description": f"Claim {claim_id}",
                    "transfer_group": transfer_group(key),
                    "metadata": {"claim_id": claim_id, transfers.KEY: key},
                },
            ).outcome()
        except stripe.StripeError as error:
            return _made_all_the_same(client, key, error)

    @pay.lookup
    def find_payment(*, key: str, **_arguments: object) -> dict[str, Any] | None:
        try:
            return _found(client, key)
        except stripe.StripeError as error:
            # Never `Rejected`: a question that was refused says nothing about the payment.
            raise Unreachable(_said(error)) from error

    @pay.listing
    def payments(*, since: datetime | None) -> Iterator[Executed]:
        return _listed(client, since)

    @pay.retrieval
    def payment(*, executed_id: str) -> Executed | None:
        try:
            return _executed(transfers.retrieved(client, executed_id))
        except stripe.StripeError as error:
            if _code(error) == "resource_missing":
                return None
            raise Unreachable(_said(error)) from error

    return pay


def transfer_group(key: str) -> str:
    """Return the transfer group of the payment with this *key*: short, and the same for ever, so that it can be looked up."""
    return f"cf_{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def _client(api_key: str, base_url: str | None, timeout_s: float) -> stripe.StripeClient:
    return stripe.StripeClient(
        api_key,
        base_addresses={"api": base_url.rstrip("/")} if base_url else {},
        max_network_retries=0,
        http_client=stripe.RequestsClient(timeout=timeout_s),
    )


def _found(client: stripe.StripeClient, key: str) -> dict[str, Any] | None:
    """Return the payment made with *key*, or `None`. The whole key decides: a group is a digest, and anybody may use one."""
    made = (one for one in transfers.listed(client, transfer_group=transfer_group(key)) if one.key == key)
    return next((one.outcome() for one in made), None)


def _listed(client: stripe.StripeClient, since: datetime | None) -> Iterator[Executed]:
    """Yield the transfers made since then, newest first. A question that was refused is doubt, too."""
    # In whole seconds: rather one too many than one too few.
    wanted = {} if since is None else {"created": {"gte": int(since.timestamp())}}
    try:
        yield from map(_executed, transfers.listed(client, **wanted))
    except stripe.StripeError as error:
        raise Unreachable(_said(error)) from error


def _executed(transfer: Transfer) -> Executed:
    """Return a transfer for a comparison: of one that was taken back in part, what is left of it."""
    outcome = transfer.outcome()
    if not transfer.taken_back:
        outcome["amount"] -= transfer.amount_reversed
    return Executed(
        id=transfer.id,
        at=transfer.at,
        outcome=outcome,
        key=transfer.key,
        identity=transfer.claim_id,
        taken_back=transfer.taken_back,
    )


def _made_all_the_same(client: stripe.StripeClient, key: str, error: stripe.StripeError) -> dict[str, Any]:
    """Return the payment that was made although the answer was a 5xx; else raise what *error* means."""
    found = None
    if _status(error) >= 500:
        with contextlib.suppress(
            stripe.StripeError, Unreachable
        ):  # the first error stands: it says that nothing is known
            found = _found(client, key)
    if found is None:
        raise _meaning(error)(_said(error)) from error
    return found


def _meaning(error: stripe.StripeError) -> type[ToolError]:
    status = _status(error)
    if isinstance(error, stripe.IdempotencyError):
        return KeyMismatch
    if status == 409 and _code(error) == "idempotency_key_in_use":
        return KeyInUse
    if isinstance(error, stripe.CardError) or _code(error) in DECLINING_CODES:
        return Declined
    if isinstance(error, stripe.AuthenticationError) or (400 <= status < 500 and status not in {408, 409, 429}):
        return Rejected
    return Unreachable


def _said(error: stripe.StripeError) -> str:
    """Return the error on one line; where nobody answered the SDK's own words are a page about the network."""
    if isinstance(error, stripe.APIConnectionError):
        return "Stripe gave no answer; is it running, and is its URL the right one? Start a sandbox with counterfoil sandbox"
    return storable(
        f"Stripe: {str(error.user_message)[:LONGEST]} (status {error.http_status}, code {_code(error)}, request {error.request_id})"
    )


def _status(error: stripe.StripeError) -> int:
    """Return the answer's status, 0 when there was no answer."""
    return error.http_status or 0


def _code(error: stripe.StripeError) -> str | None:
    """Return Stripe's code; the SDK leaves `error.code` empty on the statuses it has no class for (16.1, 409)."""
    code = error.code or (error.error.code if error.error else None)
    return code if isinstance(code, str) else None
