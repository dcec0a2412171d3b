"""
Stripe's transfers as they are read: what counts as one, and a list of them to its end.

What cannot be read is doubt, as if there had been no answer: an answer that is no transfer or no list, a transfer without its facts, a list
that has more and does not go on. All of it is `Unreachable`, never "there is none": that would be taken for leave to pay again.

Answers are read as plain JSON. The SDK's own objects (16.1) fall over what is none of them, each in its own way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import quote

import stripe

from checkpointing.errors import Unreachable
from checkpointing.text import storable

TRANSFERS = "/v1/transfers"
PAGE = 100
"""How many transfers Stripe lists at a time, at most."""
KEY = "counterfoil_key"
"""Where the key stands in a transfer's metadata."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """
    A transfer, as Stripe has it.

    Attributes:
        amount: In minor units, as it was made.
        amount_reversed: How much of it was taken back since.
        currency: In capitals.
        payee: The account it went to; `None` where Stripe does not say.
        key: The key in its metadata; `None` for other people's.
    """

    id: str
    at: datetime
    amount: int
    amount_reversed: int
    currency: str
    payee: str | None
    key: str | None
    claim_id: str | None
    taken_back: bool

    def outcome(self) -> dict[str, Any]:
        """Return what `pay` answers for it."""
        return {
            "id": self.id,
            "amount": self.amount,
            "currency": self.currency,
            "payee": self.payee,
            "claim_id": self.claim_id,
        }


def made(client: stripe.StripeClient, key: str, asked: Mapping[str, Any]) -> Transfer:
    """
    Make the transfer of this *key*.

    Raises:
        stripe.StripeError: it was refused, or nobody knows.
        Unreachable: the answer cannot be read, so nobody knows.
    """
    return _transfer(_asked(client, "post", TRANSFERS, idempotency_key=key, **asked))


def retrieved(client: stripe.StripeClient, transfer_id: str) -> Transfer:
    """Return the transfer with this id; errors as `made`."""
    return _transfer(_asked(client, "get", f"{TRANSFERS}/{quote(transfer_id, safe='')}"))


def listed(client: stripe.StripeClient, **wanted: Any) -> Iterator[Transfer]:
    """Yield the transfers that Stripe lists, newest first, holding one page of them; errors as `made`."""
    after: dict[str, str] = {}
    seen: set[str] = set()
    while True:
        page, more = _page(_asked(client, "get", TRANSFERS, limit=PAGE, **wanted, **after))
        yield from page
        if not more:
            return
        if page[-1].id in seen:
            raise Unreachable("the list of transfers cannot be read: it has a page that is followed by itself")
        seen.add(page[-1].id)
        after = {"starting_after": page[-1].id}


def _asked(client: stripe.StripeClient, method: Literal["get", "post"], path: str, **params: Any) -> Any:
    try:
        return client.raw_request(method, path, **params).data
    except (AttributeError, TypeError) as error:  # an error whose body is none, as {"error": 5}
        raise Unreachable("Stripe answered an error that cannot be read") from error


def _page(answer: Any) -> tuple[list[Transfer], bool]:
    """Return the transfers of a page, and whether there are more."""
    page = answer if isinstance(answer, dict) else {}
    entries, more = page.get("data"), page.get("has_more")
    if not isinstance(entries, list) or not isinstance(more, bool):
        raise Unreachable("the list of transfers cannot be read: Stripe answered something else")
    if more and not entries:
        raise Unreachable("the list of transfers cannot be read: it has more, and does not go on")
    return [_transfer(entry) for entry in entries], more


def _transfer(answer: Any) -> Transfer:
    """Return the transfer that Stripe answered, its texts in a form that can be stored and shown."""
    if not isinstance(answer, dict):
        raise _unreadable("it is no object", answer)
    metadata = answer.get("metadata")
    if not isinstance(metadata, dict):
        raise _unreadable("it has no metadata", answer)
    amount, taken = _amount(answer, "amount"), _amount(answer, "amount_reversed", 0)
    return Transfer(
        id=_text(answer, "id"),
        at=_instant(answer),
        amount=amount,
        amount_reversed=taken,
        currency=_text(answer, "currency").upper(),
        payee=_text_or_none(answer, "destination"),
        key=_text_or_none(metadata, KEY),
        claim_id=_text_or_none(metadata, "claim_id"),
        taken_back=bool(answer.get("reversed")) or 0 < amount <= taken,
    )


def _amount(answer: Mapping[str, Any], field: str, default: object = None) -> int:
    amount = answer.get(field, default)
    if type(amount) is not int or not 0 <= amount < 2**53:
        raise _unreadable(f"its {field} is no amount", answer)
    return amount


def _instant(answer: Mapping[str, Any]) -> datetime:
    created = answer.get("created")
    try:
        if type(created) is int and created >= 0:
            return datetime.fromtimestamp(created, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    raise _unreadable("its created is no time", answer)


def _text(answer: Mapping[str, Any], field: str) -> str:
    if not (text := _text_or_none(answer, field)):
        raise _unreadable(f"it has no {field}", answer)
    return text


def _text_or_none(answer: Mapping[str, Any], field: str) -> str | None:
    text = answer.get(field)
    if text is not None and not isinstance(text, str):
        raise _unreadable(f"its {field} is no text", answer)
    return None if text is None else storable(text)


def _unreadable(why: str, answer: Any) -> Unreachable:
    named = f" {storable(str(answer['id']))[:80]!r}" if isinstance(answer, dict) and "id" in answer else ""
    return Unreachable(f"a transfer{named} cannot be read: {why}")
