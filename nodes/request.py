"""
What is asked of the ledger for one call of an effect: its identity, its digest and its key, wherever the effect stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from checkpointing.budget import amount
from checkpointing.digest import sha256
from checkpointing.effects import Request
from checkpointing.errors import ArgumentsNotJson
from checkpointing.slots import Place, Slot
from tools.effect import Effect

DIGEST_LENGTH = 16


def slot_of(effect: Effect, values: dict[str, Any], *, thread_id: str, step: str) -> Slot:
    """
    Return the slot of *effect* with the arguments *values*, asked at *step* of the thread.

    Raises:
        ArgumentsNotJson: `once=` made no identity of the arguments.
    """
    if effect.once is None:
        return Slot(thread_id, step, effect.name)
    identity = effect.once(values)
    if not str(identity) or type(identity) not in (str, int):  # a lambda may return anything, whatever its type says
        raise ArgumentsNotJson(
            f"once= of effect {effect.name!r} returned {identity!r}; a business identity is text or a whole number"
        )
    return Slot(thread_id, step, effect.name, str(identity))


def request(
    effect: Effect, slot: Slot, at: Place, values: dict[str, Any], *, approved: Mapping[str, Any] | None = None
) -> Request:
    """
    Return what to ask of the ledger, under the decided approval *approved* where there is one.

    Raises:
        ArgumentsNotJson: the arguments have no digest; the message names the place.
        CostUnknown: what it takes cannot be told.
    """
    digest = digest_of(effect, values)
    return Request(
        slot=slot,
        place=at,
        effect=effect.name,
        arguments=values,
        digest=digest,
        approved_hash=sha256(values, what="arguments"),
        approval_id=approved["id"] if approved else None,
        cost=amount(effect.cost, values, what=f"cost= of effect {effect.name!r}"),
        max_key_length=effect.receiver.max_key_length,
        tokens=amount(effect.tokens, values, what=f"tokens= of effect {effect.name!r}"),
        repeatable=effect.receiver.repeatable,
    )


def digest_of(effect: Effect, values: Mapping[str, Any]) -> str:
    """Return the digest that binds the arguments, volatile ones left out; errors as `request`."""
    lasting = {name: value for name, value in values.items() if name not in effect.volatile}
    return sha256(lasting, what="arguments")[:DIGEST_LENGTH]
