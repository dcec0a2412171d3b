"""
How values are shown to people: money with its decimals, durations in two units, a state's values in a few words.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from checkpointing import Approval, EffectRecord
from graph.timeline import StepView

LONGEST = 40
"""How many characters of a value are shown."""
LONGEST_CHANGE = 48

CHANNELS = ("effects", "approvals", "turn")
"""What the record of a step says better than its channels do."""


def money(amount: int, currency: str) -> str:
    """Return minor units as people write them; every currency of a claim has two decimals."""
    sign = "-" if amount < 0 else ""
    return f"{sign}{abs(amount) // 100}.{abs(amount) % 100:02} {currency}"


def instant(at: datetime) -> str:
    """Return an instant to the second, in UTC."""
    return at.strftime("%Y-%m-%d %H:%M:%S")


def changes(step: StepView) -> list[str]:
    """Return what a step made of the state, a line a key: those whose value is another than before."""
    currency = currency_of({**step.before, **step.update})
    return [
        short(f"{key}: {value(key, new, currency)}", LONGEST_CHANGE)
        for key, new in step.update.items()
        if key not in CHANNELS and step.before.get(key) != new
    ]


def currency_of(state: Mapping[str, Any]) -> str:
    """Return the currency of the claim in *state*, empty before it was read."""
    claim = state.get("claim")
    return str(claim.get("currency", "")) if isinstance(claim, Mapping) else ""


def value(key: str, given: Any, currency: str) -> str:
    """Return one value of a claim's state in a few words."""
    match key, given:
        case ("payout", int()):
            said = money(given, currency)
        case (_, {"payout": int(payout), "currency": str(of)}):
            said = f"payable {money(payout, of)}"
        case (_, {"declined": reason}):
            said = f"declined: {reason}"
        case (_, {"amount": int(amount), "currency": str(of), **rest}):
            said = f"{money(amount, of)} {rest.get('id', '')}"
        case (_, {"id": identity, **rest}) | (_, {"number": identity, **rest}):
            said = f"{identity} {rest.get('status', '')}"
        case (_, dict() | list()):
            said = f"{len(given)} entries"
        case _:
            said = str(given)
    return short(said)


def short(text: str, longest: int = LONGEST) -> str:
    """Return *text* on one line, cut where it is too long."""
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def payload(shown: Any) -> list[str]:
    """Return what is to be approved, a line a fact, with an amount as money."""
    if not isinstance(shown, Mapping):
        return [short(str(shown))]
    facts = dict(shown)
    if isinstance(facts.get("amount"), int) and isinstance(facts.get("currency"), str):
        facts["amount"] = money(facts["amount"], facts.pop("currency"))
    return [f"{name}: {short(str(fact))}" for name, fact in sorted(facts.items(), key=lambda item: item[0] != "amount")]


def effect(record: EffectRecord) -> str:
    """Return what became of an effect, without its key."""
    said = f"{record.effect}: {record.state}"
    if record.declined is not None:
        said = f"{record.effect}: declined"
    said += f", {record.calls} {'call' if record.calls == 1 else 'calls'}"
    if record.replays:
        said += f", {record.replays} {'replay' if record.replays == 1 else 'replays'}"
    return said


def approval(one: Approval) -> str:
    """Return how an approval stands, and who decided what."""
    kind = one.decision["type"] if one.decision else ""
    match one.state:
        case "decided":
            return f"{one.name}: {kind} by {one.decided_by}"
        case "expired":
            return f"{one.name}: expired, which counts as {one.on_expiry}"
        case "superseded":
            was = f" after {kind} by {one.decided_by}" if kind else ""
            return f"{one.name}: superseded{was}, the payload changed"
        case _:
            return f"{one.name}: waits for a decision"
