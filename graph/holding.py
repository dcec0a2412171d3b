"""
A thread's lease while one call works under it: renewed by a heartbeat, and ended when no tool runs under it any more.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from checkpointing import Journal
from checkpointing.errors import Stop, StoreUnreachable
from checkpointing.leases import Heartbeat, thread_lease

AGAIN_S = 0.2
"""How long after a write that storage did not take it is tried again, in seconds."""


class Holding:
    """
    The right to advance one thread.

    Attributes:
        lease: The lease, whose fence goes into every write.
        heartbeat: What renews it.
    """

    def __init__(self, journal: Journal, thread_id: str) -> None:
        """
        Take the thread's lease.

        Raises:
            RunBusy: somebody holds it.
        """
        self.journal = journal
        self.lease = journal.leases.take(thread_lease(thread_id))
        self.executing = journal.effects.executing
        self.heartbeat = Heartbeat(journal.leases, self.lease, busy=lambda: self.executing.under(self.lease))
        self._over = False

    def end(self, write: Callable[[], None]) -> None:
        """
        Write down how it ended, once no tool runs under the lease; only the first of several ends counts.

        A sync tool cannot be cancelled: given back earlier, the lease would let another worker take its effect for one whose owner is
        gone. A caller that was cancelled does not wait for that. While the row cannot be written it is tried again behind the caller's back,
        until the journal is closed; the lease expires meanwhile, and the next call starts where this one did.
        """
        if self._over:
            return
        self._over = True
        if self.executing.under(self.lease):
            self.journal.in_background(lambda: self._ended(write), name=f"ending {self.lease.name}")
        else:
            self._ended(write)

    def give_back(self) -> None:
        """End it with nothing more to write; nothing happens if it has ended or was given back with the run's row."""
        self.end(lambda: self.journal.leases.give_back(self.lease))

    def stop(self) -> None:
        """End the heartbeat of a lease that was given back with the run's row."""
        self._over = True
        self.heartbeat.stop()

    def _ended(self, write: Callable[[], None]) -> None:
        if not self._is_written(write):
            self.journal.in_background(lambda: self._written_later(write), name=f"ending {self.lease.name}")

    def _written_later(self, write: Callable[[], None]) -> None:
        """Write the end down when the storage is there again: it gives the attempt back, because storage that is away costs none."""
        while not self.journal.closing.wait(AGAIN_S):
            if self._is_written(write):
                return
        self.heartbeat.stop()

    def _is_written(self, write: Callable[[], None]) -> bool:
        """Write the end down and stop the heartbeat; `False` if the storage did not take it."""
        try:
            self.executing.wait_idle(self.lease)
            with suppress(Stop):
                write()
        except StoreUnreachable:
            return False
        except BaseException:
            self.heartbeat.stop()  # a lease that is renewed for ever keeps everybody out
            raise
        self.heartbeat.stop()
        return True
