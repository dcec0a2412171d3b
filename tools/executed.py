"""
What a receiver says it executed: one entry of its own list, for a comparison with the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Executed:
    """
    One execution, as the receiver lists it.

    Attributes:
        id: The receiver's own id of it; in its list once.
        at: When it was executed, by the receiver's clock.
        outcome: What the tool would have returned for it, as far as the list says; a name that it shares with the arguments means the same.
        key: The key it came with; `None` where the receiver does not say, or somebody else executed it.
        identity: What `once=` returns for it; `None` for an effect without one, and for what is not ours.
        taken_back: The receiver undid all of it later: a payment that was reversed.
    """

    id: str
    at: datetime
    outcome: Mapping[str, Any]
    key: str | None = None
    identity: str | None = None
    taken_back: bool = False
