"""
The effect `pay`: one transfer a claim, over the official Stripe SDK.

What the receiver says decides what becomes of the claim in the ledger:

    transfer made                                           the outcome
    402; a refusal of the account or the balance            Declined
    idempotency_error                                       KeyMismatch
    409 idempotency_key_in_use                              KeyInUse
    429, 5xx, no connection, no answer, no JSON             Unreachable
    any other 4xx                                           Rejected

Stripe stores a 500 under its key and answers it again for as long as it remembers the key, even where the transfer was made.
So after a 5xx the transfer is looked up; found, it is the outcome. The SDK's own retries are off: retrying is the ledger's.

Stripe lists transfers newest first. It does not list keys, so the key stands in the transfer's metadata; a transfer without one is somebody else's.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import stripe

from checkpointing.errors import Declined, KeyInUse, KeyMismatch, Rejected, ToolError, Unreachable
from tools.effect import Effect, effect
from tools.executed import Executed
from tools.receivers import STRIPE

PAGE = 100
"""How many transfers Stripe lists at a time, at most."""

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
    "currency", "payee", "claim_id"}` as the receiver has them, the currency in capitals. `once` is the claim.
    """
    client = _client(api_key, base_url, timeout_s)

    @effect(receiver=STRIPE, name="pay", once=lambda arguments: str(arguments["claim_id"]))
    def pay(*, claim_id: str, amount: int, currency: str, payee: str, key: str) -> dict[str, Any]:
        try:
            transfer = client.v1.transfers.create(
                {
                    "amount": amount,
                    "currency": currency.lower(),
                    "destination": payee,
                    "description": f"Claim {claim_id}",
                    "transfer_group": transfer_group(key),
                    "metadata": {"claim_id": claim_id, "counterfoil_key": key},
                },
                {"idempotency_key": key},
            )
        except stripe.StripeError as error:
            return _made_all_the_same(client, key, error)
        return _outcome(transfer.to_dict())

    @pay.lookup
    def find_payment(*, key: str, **_arguments: object) -> dict[str, Any] | None:
        try:
            return _found(client, key)
        except stripe.StripeError as error:
            # Never `Rejected`: a question that was refused says nothing about the payment.
            raise Unreachable(_said(error)) from error

    @pay.listing
    def transfers(*, since: datetime | None) -> Iterator[Executed]:
        return _listed(client, since)

    @pay.retrieval
    def transfer(*, executed_id: str) -> Executed | None:
        try:
            return _executed(client.v1.transfers.retrieve(executed_id).to_dict())
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
    transfers = client.v1.transfers.list({"transfer_group": transfer_group(key), "limit": 100})
    records = (transfer.to_dict() for transfer in transfers.auto_paging_iter())
    made = (record for record in records if record["metadata"].get("counterfoil_key") == key)
    return next(map(_outcome, made), None)


def _listed(client: stripe.StripeClient, since: datetime | None) -> Iterator[Executed]:
    """Yield the transfers made since then, newest first, holding one page of them. A question that was refused is doubt, too."""
    asked: dict[str, Any] = {"limit": PAGE}
    if since is not None:
        asked["created"] = {"gte": int(since.timestamp())}  # in whole seconds: rather one too many than one too few
    try:
        for transfer in client.v1.transfers.list(asked).auto_paging_iter():  # type: ignore[arg-type]  # built by hand
            yield _executed(transfer.to_dict())
    except stripe.StripeError as error:
        raise Unreachable(_said(error)) from error


def _executed(transfer: Mapping[str, Any]) -> Executed:
    metadata = transfer["metadata"]
    return Executed(
        id=transfer["id"],
        at=datetime.fromtimestamp(transfer["created"], UTC),
        outcome=_outcome(transfer),
        key=metadata.get("counterfoil_key"),
        identity=metadata.get("claim_id"),
        taken_back=bool(transfer.get("reversed")),
    )


def _made_all_the_same(client: stripe.StripeClient, key: str, error: stripe.StripeError) -> dict[str, Any]:
    """Return the payment that was made although the answer was a 5xx; else raise what *error* means."""
    found = None
    if _status(error) >= 500:
        with contextlib.suppress(stripe.StripeError):  # the first error stands: it says that nothing is known
            found = _found(client, key)
    if found is None:
        raise _meaning(error)(_said(error)) from error
    return found


def _outcome(transfer: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": transfer["id"],
        "amount": transfer["amount"],
        "currency": transfer["currency"].upper(),
        "payee": transfer["destination"],
        "claim_id": transfer["metadata"].get("claim_id"),
    }


def _meaning(error: stripe.StripeError) -> type[ToolError]:
    status = _status(error)
    if isinstance(error, stripe.IdempotencyError):
        return KeyMismatch
    if status == 409 and _code(error) == "idempotency_key_in_use":
        return KeyInUse
    if isinstance(error, stripe.CardError) or _code(error) in DECLINING_CODES:
        return Declined
    if isinstance(error, stripe.AuthenticationError) or (400 <= status < 500 and status not in {409, 429}):
        return Rejected
    return Unreachable


def _said(error: stripe.StripeError) -> str:
    return f"Stripe: {error.user_message} (status {error.http_status}, code {_code(error)}, request {error.request_id})"


def _status(error: stripe.StripeError) -> int:
    """Return the answer's status, 0 when there was no answer."""
    return error.http_status or 0


def _code(error: stripe.StripeError) -> str | None:
    """Return Stripe's code; the SDK leaves `error.code` empty on the statuses it has no class for (16.1, 409)."""
    return error.code or (error.error.code if error.error else None)
