"""
Words that the command line and the pages share: why a run died, how an effect stands, which currency a claim is in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from checkpointing import EffectRecord, Run

WHY_DEAD = {
    "rejected": "the receiver refused the request",
    "attempts": "its attempts are used up",
    "router": "choosing the next step failed",
    "recursion_limit": "the caller allowed no more supersteps",
    "cap_supersteps": "it took all the supersteps that its cap allows",
    "cap_money": "its next payment would go beyond its cap on money",
    "cap_tokens": "its model would go beyond its cap on tokens",
    "cap_age": "it is older than its cap allows",
    "not_retryable": "a step said that another attempt would only fail again",
    "invalid_update_error": "a step returned what its graph cannot take",
    "effect_conflict": "an effect was asked for in other words than are recorded",
    "effect_not_approved": "nothing may be done under its approval",
    "effect_unsettled": "it ended without the outcome of an effect",
}
"""Words that nobody takes for what an adjuster decided."""

CHANNELS = ("effects", "approvals", "turn")
"""What the record of a step says better than its channels do."""


def currency_of(state: Mapping[str, Any]) -> str:
    """Return the currency of the claim in *state*, empty before it was read."""
    claim = state.get("claim")
    return str(claim.get("currency", "")) if isinstance(claim, Mapping) else ""


def effect_state(record: EffectRecord) -> str:
    """Return how an effect stands; one that its receiver declined is settled too, and says so."""
    return "declined" if record.declined is not None else record.state


def times(record: EffectRecord) -> str:
    """Return how often an effect was called, and how often it was answered from the record."""
    said = f"{record.calls} {'call' if record.calls == 1 else 'calls'}"
    if record.replays:
        said += f", {record.replays} {'replay' if record.replays == 1 else 'replays'}"
    return said


def why(run: Run) -> str:
    """Return why a run is dead or parked, in words; empty where nothing is to be said."""
    if run.state == "dead" and run.reason:
        said = WHY_DEAD.get(run.reason, run.reason.replace("_", " "))
        return f"{said}; discarded by {run.discarded_by}" if run.discarded_by else said
    return run.reason or ""
