"""
How values are shown to people: money with its decimals, durations in two units, a state's values in a few words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from checkpointing import Approval, EffectRecord, Entry, Run
from checkpointing.budget import Caps, Taken
from checkpointing.clock import from_ms
from graph.timeline import StepView
from service.words import CHANNELS, currency_of, effect_state, times

LONGEST = 40
"""How many characters of a free text are shown; ids, amounts and what a receiver said are never cut."""

JOINERS = "\u200c\u200d"
"""What some scripts write between letters: it is not printable, and does no harm."""

MEND = {
    **dict.fromkeys(
        ("cap_supersteps", "cap_money", "cap_tokens", "cap_age"), "It took all that a cap allows. Raise the cap"
    ),
    "rejected": "The receiver took nothing. Mend the request, or what it is sent with",
    "router": "Mend the function that chooses the next step, and deploy it",
    "invalid_update_error": "Mend the node, and deploy it",
    "effect_conflict": "What was executed stands in `counterfoil show ID`. Mend the code that asks for something else",
    "effect_unsettled": "Find out whether the effect happened, and say so with `counterfoil effects resolve`",
}
"""What to do before a redrive, by the reason; anything else is `Mend the cause`."""

HOPELESS = {
    "effect_not_approved": (
        "A redrive finds the same approval again: give it up and submit the job under another thread's id, "
        "or redrive it where the code was at fault"
    ),
}
"""What a redrive alone does not help, by the reason."""


def money(amount: int, currency: str) -> str:
    """Return minor units as people write them; every currency of a claim has two decimals."""
    sign = "-" if amount < 0 else ""
    return f"{sign}{abs(amount) // 100}.{abs(amount) % 100:02} {currency}"


def taken(used: Taken, caps: Caps, currency: str) -> str:
    """Return what a run has taken, each with its cap if it has one: `9 of 100 supersteps, 12.00 EUR, 0 of 200,000 tokens`."""

    def of(amount: str, cap: str | None, what: str) -> str:
        return f"{amount}{'' if cap is None else f' of {cap}'} {what}".strip()

    paid = None if caps.money is None else money(caps.money, "").strip()
    tokens = None if caps.tokens is None else f"{caps.tokens:,}"
    steps = None if caps.supersteps is None else f"{caps.supersteps}"
    parts = (
        of(f"{used.supersteps}", steps, "supersteps"),
        of(money(used.money, "").strip(), paid, currency),
        of(f"{used.tokens:,}", tokens, "tokens"),
    )
    return ", ".join(parts)


def instant(at: datetime) -> str:
    """Return an instant to the second, in UTC."""
    return at.strftime("%Y-%m-%d %H:%M:%S")


def changes(step: StepView) -> list[str]:
    """Return what a step made of the state, a line a key: those whose value is another than before."""
    currency = currency_of({**step.before, **step.update})
    return [
        f"{key}: {value(key, new, currency)}"
        for key, new in step.update.items()
        if key not in CHANNELS and step.before.get(key) != new
    ]


def value(key: str, given: Any, currency: str) -> str:
    """Return one value of a claim's state in a few words, on one line; only a free text is cut."""
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
        case _ if key == "id" or key.endswith("_id"):
            said = str(given)
        case _:
            said = short(str(given))
    return line(said)


def line(text: str) -> str:
    """Return *text* on one line; what would steer a terminal, or turn its text round, is written as an escape."""
    return "".join(one if one.isprintable() or one in JOINERS else ascii(one)[1:-1] for one in " ".join(text.split()))


def short(text: str, longest: int = LONGEST) -> str:
    """Return *text* on one line, cut where it is too long."""
    whole = line(text)
    return whole if len(whole) <= longest else whole[: longest - 1] + "…"


def payload(shown: Any) -> list[str]:
    """Return what is to be approved, a line a fact, with an amount as money; nothing is cut, since all of it is approved."""
    if not isinstance(shown, Mapping):
        return [line(str(shown))]
    if calls := _tool_calls(shown):
        return [
            text for name, arguments in calls for text in (name, *(f"  {k}: {v}" for k, v in _facts(arguments).items()))
        ]
    return [f"{name}: {fact}" for name, fact in _facts(shown).items()]


def edited(shown: Any, made: Any) -> list[str]:
    """Return what an edit changed, a line a key, old and new."""
    if not isinstance(shown, Mapping) or not isinstance(made, Mapping):
        return [f"{line(str(shown))} → {line(str(made))}"]
    old, new = _facts(shown), _facts(made)
    return [
        f"{name}: {old.get(name, 'nothing')} → {new.get(name, 'nothing')}"
        for name in dict.fromkeys((*old, *new))
        if old.get(name) != new.get(name)
    ]


def where(run: Run) -> str:
    """Return where a dead letter stands: the step and the nodes that failed in it."""
    step = "before the first step" if run.dead_step is None else f"step {run.dead_step}"
    return f"{step}  {run.dead_nodes}" if run.dead_nodes else step


def dead_letter(run: Run) -> list[str]:
    """Return all there is to know about a dead letter, a line a fact."""
    return [
        f"reason      {run.reason}",
        f"error       {line(run.error or '')}",
        f"stands at   {where(run)}",
        f"checkpoint  {run.head or 'none'}",
        f"attempts    {run.attempts}",
        f"since       {instant(run.updated_at)} UTC",
        f"submitted   by {run.submitted_by or 'nobody in particular'} at {instant(run.created_at)} UTC",
    ]


def effect(record: EffectRecord) -> str:
    """Return what became of an effect, without its key."""
    return f"{record.effect}: {effect_state(record)}, {times(record)}"


def approval(one: Approval) -> str:
    """Return how an approval stands, and who decided what."""
    kind = one.decision["type"] if one.decision else ""
    match one.state:
        case "decided":
            return f"{one.name}: {kind} by {one.decided_by}"
        case "expired":
            return f"{one.name}: expired, which counts as {one.on_expiry}"
        case "withdrawn":
            was = f" after {kind} by {one.decided_by or 'nobody: its time was over'}" if kind else ""
            return f"{one.name}: withdrawn by {one.withdrawn_by}{was}"
        case "superseded":
            was = f" after {kind} by {one.decided_by or 'nobody: its time was over'}" if kind else ""
            return f"{one.name}: superseded{was}, the payload changed"
        case _:
            return f"{one.name}: waits for a decision{_of_whom(one)}"


def asked_of(one: Approval) -> str:
    """Return who is asked: the tier, and how many of them it takes; empty where it is anybody."""
    by_ladder = one.at_tier is not None and one.approvers == one.at_tier.approvers  # others, where it was reassigned
    tier = one.at_tier.name if one.at_tier and by_ladder else ", ".join(one.approvers or ())
    return f"{one.quorum} of {tier or 'them'}" if one.quorum > 1 else tier


def _of_whom(one: Approval) -> str:
    return f" of {asked_of(one)}" if asked_of(one) else ""


def decided(one: Approval) -> list[str]:
    """Return what a decision says beyond its kind, a line each: what an edit changed, and the reason."""
    decision = one.decision or {}
    changed = edited(one.payload, decision.get("payload")) if decision.get("type") == "edit" else []
    return [*changed, *([f"reason: {line(str(decision['reason']))}"] if decision.get("reason") else [])]


def _tool_calls(shown: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the tools that an agent asks about and their arguments, of either mode of LangChain's HumanInTheLoopMiddleware."""
    asked = [shown] if shown.get("type") == "tool_approval" else shown.get("action_requests")
    if not isinstance(asked, list):
        return []
    return [
        (str(one["name"]), one["args"])
        for one in asked
        if isinstance(one, Mapping) and "name" in one and isinstance(one.get("args"), Mapping)
    ]


def _facts(shown: Mapping[str, Any]) -> dict[str, str]:
    """Return a payload's facts as text, the amount in front and as money."""
    facts = dict(shown)
    if isinstance(facts.get("amount"), int) and isinstance(facts.get("currency"), str):
        facts["amount"] = money(facts["amount"], facts.pop("currency"))
    return {name: line(str(fact)) for name, fact in sorted(facts.items(), key=lambda item: item[0] != "amount")}


def effect_in_full(record: EffectRecord) -> list[str]:
    """Return all there is to know about an effect, a line a fact; amounts stand in minor units, as they were sent."""
    outcome = "none yet"
    if record.declined is not None:
        outcome = f"declined: {line(record.declined)}"
    elif record.state == "settled":
        outcome = json.dumps(record.outcome, ensure_ascii=False)
    return [
        f"{record.key} is {effect_state(record).replace('_', ' ')}",
        *([f"  reissued   as {record.reissued_as}"] if record.reissued_as else []),
        f"  effect     {record.effect}, of thread {record.thread_id}",
        f"  arguments  {json.dumps(record.arguments, ensure_ascii=False)}",
        f"  outcome    {outcome}",
        f"  approval   {record.approval_id or 'none'}",
        f"  calls      {record.calls}",
        f"  replays    {record.replays}",
        f"  claimed    {instant(record.claimed_at)} UTC",
        f"  settled    {f'{instant(record.settled_at)} UTC' if record.settled_at else 'not yet'}",
    ]


def entry(one: Entry) -> list[str]:
    """Return an entry of the audit: who did what when, and below it what it is about."""
    said = [] if one.subject == one.thread_id else [one.subject]
    said += [f"{name} {_digest(str(value))}" for name, value in one.body.items() if value not in (None, "")]
    head = f"{one.seq:>4}  {instant(from_ms(one.at_ms))}  {one.event:<18} {one.actor}".rstrip()
    return [head, f"      {', '.join(said)}"] if said else [head]


def _digest(text: str) -> str:
    """Return a SHA-256 by its first 16 digits, as keys have it, and any other text as it is."""
    return text[:16] if len(text) == 64 and not set(text) - set("0123456789abcdef") else line(text)
