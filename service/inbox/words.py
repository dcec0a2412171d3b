"""
How the pages say things to somebody who is no programmer: money, times, durations, the names of things.

Nothing here escapes anything: the templates do, always.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from checkpointing import Approval, Run
from checkpointing.clock import from_ms
from checkpointing.principals import GROUP

DECIMALS = {
    **dict.fromkeys(("BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "VND", "VUV"), 0),
    **dict.fromkeys(("XAF", "XOF", "XPF"), 0),
    **dict.fromkeys(("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"), 3),
}
"""How many decimals a currency has, where it is not two (ISO 4217)."""

STATES = {"admitted": "ready", "running": "running", "parked": "waiting", "done": "done", "dead": "dead letter"}
UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60))
LONGEST = 2_000
"""How many characters of a free text are shown at once."""

KINDS = {"approve": "approved", "edit": "changed and approved", "reject": "rejected", "respond": "answered", "hand_over": "handed over"}  # fmt: skip
"""What a decision of each kind has done."""
WANTED = {"approve": "approve it", "edit": "approve it as changed", "reject": "reject it", "respond": "answer it"}
"""What somebody wanted whose answer was not taken."""


def decimals(currency: str) -> int:
    """Return how many decimals the currency has."""
    return DECIMALS.get(currency.upper(), 2)


def number(amount: int, currency: str) -> str:
    """Return minor units as people write them, without the currency: `1,840.00`."""
    places = decimals(currency)
    sign, whole = ("-" if amount < 0 else ""), abs(amount)
    if not places:
        return f"{sign}{whole:,}"
    return f"{sign}{whole // 10**places:,}.{whole % 10**places:0{places}}"


def money(amount: int, currency: str) -> str:
    """Return minor units with their currency: `1,840.00 EUR`."""
    return f"{number(amount, currency)} {currency}".strip()


def currency_of(payload: Any) -> str:
    """Return the currency that a payload names; empty where it names none."""
    found = payload.get("currency") if isinstance(payload, Mapping) else None
    return found if isinstance(found, str) and len(found) == 3 and found.isascii() and found.isalpha() else ""


def is_amount(key: str, value: object, payload: Any, amount_in: str | None) -> bool:
    """Tell whether a payload's whole number is money in minor units: the approval says so, or its name does beside a currency."""
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    return key == amount_in or (bool(currency_of(payload)) and (key == "amount" or key.endswith("_amount")))


def amount_of(approval: Approval) -> str:
    """Return what an approval asks about in money; empty where it does not say."""
    payload = approval.payload if isinstance(approval.payload, Mapping) else {}
    found = approval.amount if approval.amount is not None else payload.get("amount")
    key = approval.amount_in or "amount"
    if not isinstance(found, int) or not is_amount(key, found, payload, approval.amount_in):
        return ""
    return money(found, currency_of(payload))


def label(key: str) -> str:
    """Return a key as a label: `claim_id` is `Claim id`."""
    said = key.replace("_", " ").replace("-", " ").strip()
    return said[:1].upper() + said[1:] if said else key


def title(approval: Approval) -> str:
    """Return what an approval is called on the pages: what its graph says, or its name and thread."""
    said = (approval.about or {}).get("title")
    if isinstance(said, str) and said.strip():
        return said
    name = "Question" if approval.interrupt_id else label(approval.name)
    return f"{name} for {approval.thread_id}"


def value(given: Any) -> str:
    """Return any JSON value as text."""
    match given:
        case None:
            return "nothing"
        case bool():
            return "yes" if given else "no"
        case str():
            return given
        case int() | float():
            return str(given)
        case _:
            return json.dumps(given, ensure_ascii=False, indent=1)


def facts(payload: Any, amount_in: str | None = None) -> list[tuple[str, str]]:
    """Return a payload's facts as labels and texts, amounts as money and in front; the currency stands in the amounts."""
    if not isinstance(payload, Mapping):
        return [("Asked", value(payload))]
    currency = currency_of(payload)
    amounts = [key for key, one in payload.items() if is_amount(key, one, payload, amount_in)]
    rest = [key for key in payload if key not in amounts and not (key == "currency" and currency and amounts)]
    return [(label(key), money(payload[key], currency)) for key in amounts] + [
        (label(key), value(payload[key])) for key in rest
    ]


def duration(time: timedelta) -> str:
    """Return a duration in words, in its two largest units: `2 days 3 hours`, `4 minutes`, `less than a minute`."""
    left = max(0, int(time.total_seconds()))
    if left < 60:
        return "less than a minute"
    parts: list[str] = []
    for name, size in UNITS:
        count, left = divmod(left, size)
        if count or parts:
            parts.append(f"{count} {name}{'' if count == 1 else 's'}" if count else "")
    return " ".join(filter(None, parts[:2]))


def left(until: datetime | None, now: datetime) -> str:
    """Return how much time is left."""
    if until is None:
        return "no time limit"
    return f"{duration(until - now)} left" if until > now else "time is over"


def ago(at: datetime, now: datetime) -> str:
    """Return how long ago something was."""
    return "just now" if now - at < timedelta(minutes=1) else f"{duration(now - at)} ago"


def moment(at: datetime) -> str:
    """Return an instant for people, in UTC; `inbox.js` puts it into their own time."""
    at = at.astimezone(UTC)
    return f"{at:%a} {at.day} {at:%b} {at.year}, {at:%H:%M} UTC"


def urgency(until: datetime | None, now: datetime) -> str:
    """Return how soon an end is: `over`, `soon` within four hours, `today` within a day, or `later`."""
    if until is None:
        return "later"
    rest = until - now
    if rest <= timedelta():
        return "over"
    return "soon" if rest <= timedelta(hours=4) else "today" if rest <= timedelta(days=1) else "later"


def approvers(names: Iterable[str] | None) -> str:
    """Return who may decide, in words."""
    if names is None:
        return "anybody who approves, except whoever submitted it"
    said = [f"the group {name.removeprefix(GROUP)}" if name.startswith(GROUP) else name for name in names]
    if not said:
        return "nobody"
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} or {said[-1]}"


def outcome(kind: str | None) -> str:
    """Return what a decision of this kind has done, as a past participle."""
    return KINDS.get(kind or "", kind or "decided")


def cut(text: str, longest: int = LONGEST) -> str:
    """Return *text*, cut where it is too long."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def state(run: Run) -> str:
    """Return how a run stands, in a word or two."""
    return "given up" if run.discarded_by else STATES[run.state]


def at(at_ms: int) -> datetime:
    """Return a stored instant."""
    return from_ms(at_ms)


def question(approval: Approval) -> str:
    """Return how an approval stands, and who decided what."""
    name, kind = label(approval.name), outcome(approval.decision["type"] if approval.decision else None)
    match approval.state:
        case "decided":
            return f"{name}: {kind} by {approval.decided_by}"
        case "expired":
            return f"{name}: nobody answered in time, so it is {outcome(approval.on_expiry)}"
        case "withdrawn":
            return f"{name}: withdrawn by {approval.withdrawn_by}"
        case "superseded":
            return f"{name}: the facts changed, so it was asked anew"
        case _:
            return f"{name}: waits for a decision"
