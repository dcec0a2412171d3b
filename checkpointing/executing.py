"""
What this process is executing: which slots' tools run here, and under which lease, though their caller may be gone.

A lease keeps other processes out. In this one a node that timed out may still have its tool running in a thread when the node runs again, and
a call that was cancelled leaves its sync tool running, because a thread cannot be cancelled. Nothing of this survives the process: what it was
executing is then in doubt, as its lease ends.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from checkpointing.errors import EffectBusy
from checkpointing.leases import Lease
from checkpointing.slots import Place, Slot, ambiguous


class Executing:
    """The slots under execution in this process."""

    def __init__(self) -> None:
        """Execute nothing yet."""
        self._places: dict[str, Place] = {}
        self._changed = threading.Condition()

    @contextmanager
    def hold(self, slot: Slot, place: Place) -> Iterator[None]:
        """
        Hold *slot* while its tool runs.

        Raises:
            EffectBusy: it is being executed here; come back when that call is over.
            SlotAmbiguous: another task of this very superstep is executing it.
        """
        with self._changed:
            if (other := self._places.get(slot.id)) is not None:
                if other.task != place.task and slot.identity is None:
                    raise ambiguous(slot, "the first is being executed")
                raise EffectBusy(f"effect {slot.step!r} of thread {slot.thread_id!r} is being executed by this process")
            self._places[slot.id] = place
        try:
            yield
        finally:
            with self._changed:
                self._places.pop(slot.id, None)
                self._changed.notify_all()

    def under(self, lease: Lease) -> bool:
        """Tell whether a tool claimed under *lease* still runs."""
        return any(place.lease == lease for place in list(self._places.values()))

    def wait_idle(self, lease: Lease) -> None:
        """Wait until no tool claimed under *lease* runs."""
        with self._changed:
            self._changed.wait_for(lambda: not self.under(lease))
