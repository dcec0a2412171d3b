"""
Faults that the tests of this test plant into the code, to see that the machine finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from checkpointing import EffectRecord, approvals, leases
from checkpointing.effects import Claim, Request
from checkpointing.ledger import Ledger
from tools import perform


@contextmanager
def planted(fault: str | None) -> Iterator[None]:
    """Have the fault of this name inside the block; `None` is no fault."""
    if fault is None:
        yield
        return
    with FAULTS[fault]():
        yield


def no_fence() -> Any:
    """The fence is not checked: whoever had a lease once may write."""
    anyone = "select fence from leases where name = :name"
    return patch.multiple(leases, HELD=anyone, HELD_TO_END=anyone)


def last_decision_wins() -> Any:
    """A decision is recorded whatever the approval's state is."""
    return patch.object(approvals, "DECIDE", approvals.DECIDE.replace("and state = 'pending'", ""))


def settled_is_called_again() -> Any:
    """A slot that has its outcome is called once more instead of being answered."""
    claim: Callable[..., Claim | EffectRecord] = Ledger.claim

    def again(self: Ledger, asked: Request, **options: Any) -> Claim | EffectRecord:
        found = claim(self, asked, **options)
        if isinstance(found, Claim):
            return found
        nothing = found.claimed_at - found.claimed_at
        return Claim(found, asked.place.held, doubtful=False, age=nothing, since_call=nothing)

    return patch.object(Ledger, "claim", again)


def keys_live_for_ever() -> Any:
    """A key is sent again however old it is."""
    return patch.object(perform, "next_move", lambda *_, **__: "call")


FAULTS: dict[str, Callable[[], Any]] = {
    one.__name__: one for one in (no_fence, last_decision_wins, settled_is_called_again, keys_live_for_ever)
}
