"""
Patience with a place that lets calls wait in vain: for a while it is not called again, so that its messages hold no worker's place.

    called ──answers, or fails at once──▶ called
       └─────lets the call wait─────────▶ left alone for `RESPITE` ──▶ called

A message to a place that is left alone fails as if it had been called, and is tried again like any other. Each process has its own patience.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from checkpointing.clock import Clock
from checkpointing.errors import Unreachable
from tools.effect import Effect

RESPITE = timedelta(seconds=30)


def patient(effect: Effect, *, place_of: Callable[[dict[str, Any]], str], timeout_s: float, clock: Clock) -> Effect:
    """Return *effect* with patience: a place is what *place_of* says of the arguments, and a call that lasts half of *timeout_s* waited in vain."""
    alone_until: dict[str, datetime] = {}
    function = effect.function

    @functools.wraps(function)
    def call(**arguments: Any) -> Any:
        place, began = place_of(arguments), time.monotonic()
        if (until := alone_until.get(place)) and clock() < until:
            raise Unreachable(f"{place} let a call wait in vain a moment ago, and is left alone for a while")
        try:
            return function(**arguments)
        except Unreachable:
            if time.monotonic() - began >= timeout_s / 2:
                alone_until[place] = clock() + RESPITE
            raise

    return replace(effect, function=call)
