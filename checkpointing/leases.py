"""
One writer a thread: leases with a fence that only grows.

A lease is a row: a name, an owner, a fence and an expiry. Taking it raises the fence, so the fence names one holding of it, for ever.
Every durable write of a run checks the fence in its own transaction, under a lock on the row:

    holder A   take (fence 7) ── write ✓ ──────── stopped ───────────────── write ✗ LeaseLost
    taker  B                              expires ── take (fence 8) ── write ✓

The check locks the row (`for share`): without it, under read committed, A's write could read fence 7, B could take over, and A
commit after that. An expired lease that nobody took is still its owner's: expiry allows taking, it does not forbid writing.

The check compares the owner too. Where an older copy of the journal was restored the fences went back, and a worker that did not notice may hold
a number that somebody else was given since.
"""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from checkpointing.clock import duration_ms
from checkpointing.errors import LeaseLost, RunBusy, StoreUnreachable
from checkpointing.store import Row, Store, Tx

TAKE = """
insert into leases (name, owner, fence, expires_ms) values (:name, :owner, 1, :now + :lease_ms)
on conflict (name) do update set owner = excluded.owner, fence = leases.fence + 1, before_ms = leases.expires_ms,
    expires_ms = excluded.expires_ms
where leases.owner is null or leases.expires_ms <= :now
returning fence
"""
RENEW = """
update leases set expires_ms = :now + :lease_ms where name = :name and fence = :fence and owner = :owner
returning fence
"""
GIVE_BACK = "update leases set owner = null where name = :name and fence = :fence and owner = :owner returning fence"
HELD = "select fence from leases where name = :name and fence = :fence and owner = :owner for share"
FREE = """
insert into leases (name, owner, fence, expires_ms) values (:name, null, 0, 0) on conflict (name) do nothing
"""
HOLDER_LOCKED = "select owner, expires_ms - :now as left_ms from leases where name = :name for share"
HELD_TO_END = HELD.replace("for share", "for update")
HOLDER = "select owner, fence, expires_ms - :now as left_ms from leases where name = :name and owner is not null"


LONG_MS = 600_000
"""What is left of a lease is rarely more, in milliseconds; rather the clock is behind that of the host which took it."""


@dataclass(frozen=True, slots=True)
class Lease:
    """
    The right to write, as its holder has it.

    Attributes:
        name: `thread:` and the thread id, or `slot:` and the slot where a raw graph runs without a thread's lease.
        fence: Which holding this is; never used again, but after an older copy of the journal was restored.
        owner: Who holds it: host, process and a random part, which no other holding has.
    """

    name: str
    fence: int
    owner: str


def thread_lease(thread_id: str) -> str:
    """Return the name of a thread's lease."""
    return f"thread:{thread_id}"


def new_owner() -> str:
    """Return a name for one holding: host, process id and a random part."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


class Leases:
    """The `leases` table and all its transitions."""

    def __init__(self, store: Store, *, lease: timedelta) -> None:
        """Use *store*; a lease that is not renewed may be taken after *lease*."""
        self.store = store
        self.lease = lease

    def take(self, name: str) -> Lease:
        """
        Take the lease called *name*.

        A crash after the commit leaves a lease nobody renews; it may be taken when it expires.

        Raises:
            RunBusy: somebody holds it. Try again later; the message says who and until when.
        """
        owner = new_owner()
        with self.store.transaction("lease.take") as tx:
            row = tx.one(TAKE, name=name, owner=owner, lease_ms=duration_ms(self.lease))
            if row:
                return Lease(name, int(row["fence"]), owner)
            holder = holder_of(tx, name)
        raise RunBusy(_busy(name, holder))

    def renew(self, lease: Lease) -> None:
        """
        Put the expiry off by a whole lease from now.

        Raises:
            LeaseLost: it was taken over or given back. Stop.
        """
        with self.store.transaction("lease.renew") as tx:
            if not tx.one(RENEW, **_this(lease), lease_ms=duration_ms(self.lease)):
                raise LeaseLost(_lost(lease))

    def give_back(self, lease: Lease) -> None:
        """Let the next one take it at once; nothing happens if it is not held any more."""
        with self.store.transaction("lease.give_back") as tx:
            give_back(tx, lease)

    def holder(self, name: str) -> str | None:
        """Return who holds the lease called *name* and has not let it expire, or `None`."""
        with self.store.reading() as tx:
            row = holder_of(tx, name)
        return str(row["owner"]) if row and row["left_ms"] > 0 else None


def give_back(tx: Tx, lease: Lease) -> None:
    """Give *lease* back as part of *tx*; nothing happens if it is not held any more."""
    tx.all(GIVE_BACK, **_this(lease))


def check_fence(tx: Tx, lease: Lease, *, to_end: bool = False) -> None:
    """
    Make sure that *lease* is held until *tx* ends; the first statement of every fenced transaction.

    A transaction that also gives the lease back says so with *to_end*: it takes the stronger lock at once, because raising a
    shared lock later can deadlock with a heartbeat that waits for it.

    Raises:
        LeaseLost: it was taken over or given back; nothing of *tx* may happen.
    """
    if not tx.one(HELD_TO_END if to_end else HELD, **_this(lease)):
        raise LeaseLost(_lost(lease))


def check_free(tx: Tx, name: str) -> None:
    """
    Make sure that nobody holds the lease called *name* until *tx* ends, for a writer that has none.

    Raises:
        RunBusy: somebody holds it.
    """
    tx.all(FREE, name=name)
    row = tx.one(HOLDER_LOCKED, name=name)
    if row and row["owner"] is not None and int(row["left_ms"]) > 0:
        raise RunBusy(f"{name} is held by {row['owner']}; what has no lease cannot write there now")


def holder_of(tx: Tx, name: str) -> Row | None:
    """Return the row of the lease called *name* with `left_ms`, zero or less once expired; `None` if nobody has it."""
    return tx.one(HOLDER, name=name)


def is_live(tx: Tx, *, name: str, fence: int) -> bool:
    """Tell whether that holding is still the current one and has not expired."""
    row = holder_of(tx, name)
    return row is not None and int(row["fence"]) == fence and int(row["left_ms"]) > 0


class Heartbeat:
    """
    Renews a lease in the background while its holder works.

    There are three beats to a lease, and a renewal that the store does not answer is tried again after a quarter of a beat. When the lease is lost
    the heartbeat ends: nothing needs to be told, because every write checks the fence.
    """

    def __init__(self, leases: Leases, lease: Lease, *, busy: Callable[[], bool] | None = None) -> None:
        """Renew *lease* from now until `stop`; a pause does not count while *busy* says that work goes on under it."""
        self.leases = leases
        self.lease = lease
        self._busy = busy or (lambda: False)
        self._poke = threading.Event()
        self._stopped = self._paused = self._missed = False
        self._thread = threading.Thread(target=self._beat, name=f"heartbeat {lease.name}", daemon=True)
        self._thread.start()

    def pause(self) -> None:
        """Stop renewing while somebody else decides when to go on (the consumer of a stream)."""
        self._paused = True

    def go_on(self) -> None:
        """Renew again, and at once if a beat fell into the pause; else many short pauses would lose the lease."""
        self._paused = False
        if self._missed:
            self._poke.set()

    def stop(self) -> None:
        """End the heartbeat and wait for its last beat."""
        self._stopped = True
        self._poke.set()
        self._thread.join()

    def _beat(self) -> None:
        failed = False
        while True:
            self._poke.wait(self.leases.lease.total_seconds() / (12 if failed else 3))
            self._poke.clear()
            failed = False
            if self._stopped:
                return
            self._missed = self._paused and not self._busy()
            if self._missed:
                continue
            try:
                self.leases.renew(self.lease)
            except LeaseLost:
                return
            except StoreUnreachable:
                failed = True


@contextmanager
def holding(leases: Leases, name: str) -> Iterator[Lease]:
    """
    Hold the lease called *name*, renewed in the background, for as long as the block runs.

    Raises:
        RunBusy: somebody holds it.
    """
    lease = leases.take(name)
    heartbeat = Heartbeat(leases, lease)
    try:
        yield lease
    finally:
        heartbeat.stop()
        with suppress(StoreUnreachable):  # what the block came to is not hidden by this; the lease expires
            leases.give_back(lease)


def slot_lease(slot_id: str) -> str:
    """Return the name of the lease under which one slot is executed where no thread's lease is held."""
    return f"slot:{slot_id}"


def _this(lease: Lease) -> dict[str, Any]:
    """Return what names this holding and no other, the journal's past before a restore included."""
    return {"name": lease.name, "fence": lease.fence, "owner": lease.owner}


def _busy(name: str, holder: Row | None) -> str:
    if holder is None:
        return f"{name} was held a moment ago; try again"
    left_ms = max(0, int(holder["left_ms"]))
    doubt = ", unless this host's clock is behind" if left_ms > LONG_MS else ""
    return f"{name} is held by {holder['owner']} for another {left_ms} ms{doubt}; it carries on, or try again then"


def _lost(lease: Lease) -> str:
    return f"{lease.name} is no longer held with fence {lease.fence} by {lease.owner}; its new holder carries on"
