"""
The parameters of Stripe's transfers, checked as Stripe checks them: before anything is executed, one error naming one parameter.

Nested names come as `metadata[claim_id]`, form-encoded; every value is text until it is checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from tools.sandbox.calls import Answer, Call, Refusal
from tools.sandbox.stripe_service import error

TEXTS = {"destination", "transfer_group", "description", "source_transaction", "source_type"}
CURRENCIES = frozenset({"chf", "eur", "gbp", "usd"})
MAX_AMOUNT = 99_999_999
METADATA = re.compile(r"metadata\[([^\[\]]{1,40})\]")


@dataclass(frozen=True, slots=True)
class Order:
    """The parameters of a transfer, checked."""

    amount: int
    currency: str
    texts: Mapping[str, str]
    metadata: Mapping[str, str]


def transfer_order(call: Call) -> Order:
    """Return the parameters of a new transfer; refuse the first that is wrong."""
    given = dict(parse_qsl(call.text, keep_blank_values=True))
    metadata = {found[1]: value for name, value in given.items() if (found := METADATA.fullmatch(name))}
    texts = {name: value for name, value in given.items() if name in TEXTS}
    for name in given:
        if name not in TEXTS | {"amount", "currency"} and not METADATA.fullmatch(name):
            raise Refusal(error(call, 400, f"Unknown parameter: {name}", code="parameter_unknown", param=name))
    for name in ("currency", "destination", "amount"):
        if not given.get(name):
            said = f"The parameter {name} is required."
            raise Refusal(error(call, 400, said, code="parameter_missing", param=name))
    if len(metadata) > 50 or any(len(value) > 500 for value in metadata.values()):
        raise Refusal(
            error(
                call,
                400,
                "Metadata has at most 50 keys, and values of 500 characters.",
                param="metadata",
            )
        )
    if given["currency"].lower() not in CURRENCIES:
        raise Refusal(error(call, 400, f"Invalid currency: {given['currency']}", param="currency"))
    if not texts["destination"].startswith("acct_"):
        raise Refusal(no_such(call, 400, "destination", texts["destination"], "destination"))
    amount = whole(call, given, "amount", least=1, most=MAX_AMOUNT, absent=0)
    return Order(amount, given["currency"].lower(), texts, metadata)


def whole(call: Call, given: Mapping[str, str], name: str, *, least: int, most: int, absent: int) -> int:
    """Return the integer parameter *name*, *absent* without it; refuse what is none or out of bounds."""
    text = given.get(name)
    if text is None:
        return absent
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise Refusal(
            error(
                call,
                400,
                f"Invalid integer: {text[:40]}",
                code="parameter_invalid_integer",
                param=name,
            )
        )
    if not least <= int(text) <= most:
        code = "amount_too_large" if name == "amount" and int(text) > most else "parameter_invalid_integer"
        raise Refusal(error(call, 400, f"{name} must be between {least} and {most}.", code=code, param=name))
    return int(text)


def bound(call: Call, name: str) -> int | None:
    """Return a bound on a time in seconds, `None` if it is not given."""
    return whole(call, call.query, name, least=0, most=2**53, absent=0) if name in call.query else None


def no_such(call: Call, status: int, what: str, name: str, param: str) -> Answer:
    """Return Stripe's answer to a name that stands for nothing."""
    return error(call, status, f"No such {what}: {name!r}", code="resource_missing", param=param)
