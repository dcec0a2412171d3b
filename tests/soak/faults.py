"""
What goes wrong meanwhile: faults of the receivers, drawn at random; and faults of our own, planted to see that the soak finds them.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from tools import perform
from tools.sandbox import SandboxControl

HELD_S = 2.5
"""Longer than a lease, so that the worker of a held call may die and another come by while the receiver still executes it."""

KINDS = (
    ("transfers", "drop_before"),
    ("transfers", "drop_after"),
    ("transfers", "error_500_after"),
    ("transfers", "rate_limit"),
    ("transfers", "hold_before"),
    ("transfers", "hold_after"),
    ("emails", "drop_after"),
    ("emails", "error_500"),
    ("emails", "hold_after"),
    ("claims", "drop_before"),
)
"""Not `error_500` of a transfer: the receiver answers it for as long as it knows the key, and only a person ends that."""


def misbehave(control: SandboxControl, chance: random.Random) -> str:
    """Order one fault, and return what it is."""
    at, kind = chance.choice(KINDS)
    control.fault(
        at,
        kind,
        times=chance.randint(1, 2),
        method="GET" if at == "claims" else None,
        seconds=HELD_S if kind.startswith("hold") else None,
    )
    return f"{at} {kind}"


@contextmanager
def planted(fault: str | None) -> Iterator[None]:
    """Have the fault of this name inside the block; `None` is no fault."""
    if fault is None:
        yield
        return
    with {"a_key_a_call": a_key_a_call}[fault]():
        yield


def a_key_a_call() -> Any:
    """Every call is sent under a key of its own, so that the receiver takes a repeat for another payment."""
    call = perform.Call

    def keyless(function: Any, arguments: dict[str, Any]) -> perform.Call:
        return call(function, {**arguments, "key": f"k-{uuid.uuid4().hex}"} if "key" in arguments else arguments)

    return patch.object(perform, "Call", keyless)
