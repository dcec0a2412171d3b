"""
What a receiver does with an idempotency key, as data; it decides how doubt about a call is resolved.

A *receiver* is whatever executes an effect: a payment provider, a mail service, a ticket system. `Receiver` is its profile;
`next_move` reads the profile when a claim's owner is gone and nobody knows whether the call happened. `tools.receivers` has those we know.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

Move = Literal["call", "look_up_or_call", "look_up_or_person", "person"]
"""What to do with an effect in doubt: call again with the same key, look up first, or ask a person."""


@dataclass(frozen=True, slots=True)
class Receiver:
    """
    The profile of a receiver.

    Attributes:
        honours_keys: The receiver executes one call a key and answers a repeat with the first result.
        key_life: How long its key may be sent, counted from the first claim; `None`: for ever. Less than the receiver promises to remember
            it, because a call takes time to arrive: `tools.receivers` takes a twelfth off.
        repeatable: Executing twice does no harm (a model call, a read), so doubt is resolved by calling again.
        settle_delay: For a receiver without keys: how long after a call its look-up is sure to show the result.
        max_key_length: The longest key it takes, in characters.
        attempts: How often one claim may call it, counting the first call, before the effect is in doubt.
        backoff: The wait before the second attempt; each further wait is twice the one before.
    """

    honours_keys: bool = False
    key_life: timedelta | None = None
    repeatable: bool = False
    settle_delay: timedelta = timedelta(seconds=30)
    max_key_length: int = 255
    attempts: int = 3
    backoff: timedelta = timedelta(milliseconds=500)

    def __post_init__(self) -> None:
        """Refuse a profile that says nothing sensible."""
        if self.max_key_length < 35:
            raise ValueError(f"max_key_length is {self.max_key_length}: the short form of a key has 35 characters")
        if self.attempts < 1:
            raise ValueError(f"attempts is {self.attempts}: an effect is called at least once")


def next_move(receiver: Receiver, *, age: timedelta, has_lookup: bool) -> Move:
    """
    Answer what to do with a claim of this *age* whose owner is gone.

    The order is that of harm: a repeat that cannot hurt, a key the receiver still honours, a look-up, a person.
    """
    if receiver.repeatable:
        return "call"
    if receiver.honours_keys:
        if receiver.key_life is None or age < receiver.key_life:
            return "call"
        return "look_up_or_person" if has_lookup else "person"
    return "look_up_or_call" if has_lookup else "person"
