"""
Which effect this is, and whether a recorded one may answer for it.

A *slot* names one logical operation, the same on every replay: `(thread, node path, n-th visit, index of the Send)`, or with `once=` the
effect's business identity, global to the journal. The *key* sent to the receiver is made of the slot's step and the arguments' digest.

A *place* is where in the thread's history the effect is asked from. A receipt that was lost (a graph invoked inside a function, a `Send`
to a subgraph) makes two operations count the same visit; it must never look like a replay. So a recorded slot answers

    the same root checkpoint and the same task           a re-run
    a root reached from the recorded one only through    time travel that edited the state
    `update` or `fork` checkpoints
    a root that does not descend from the recorded one   a fork, or a start whose first checkpoint was lost

and anything else is `SlotAmbiguous`. A crash can lose a subgraph's own first checkpoint, which gives its re-run another task id; that
is told from a second operation by the recorded checkpoint not being there, and by the fence: one holding runs a task once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from checkpointing.budget import Caps
from checkpointing.errors import SlotAmbiguous
from checkpointing.leases import Lease
from checkpointing.store import Row, Tx

MAX_KEY_LENGTH = 255


@dataclass(frozen=True, slots=True)
class Slot:
    """
    One logical operation.

    Attributes:
        thread_id: The thread that asks.
        step: Node path, visit and, for a `Send`, its index: `pay.0`, `sub/pay.2`, `pay.1[3]`.
        identity: What `once=` returned, or `None`.
        effect: The effect's name.
    """

    thread_id: str
    step: str
    effect: str
    identity: str | None = None

    @property
    def id(self) -> str:
        """The slot as the ledger's primary key."""
        if self.identity is not None:
            return f"once|{self.effect}|{self.identity}"
        return f"thread|{self.thread_id}|{self.step}"


@dataclass(frozen=True, slots=True)
class Ancestry:
    """
    How a root checkpoint came to be, newest first.

    Attributes:
        exists: Whether a checkpoint `(namespace, id)` is in the store.
        parent_of: The parent's id and the source (`input`, `loop`, `update`, `fork`) of a root checkpoint; `None` if there is none.
    """

    exists: Callable[[Tx, str, str], bool]
    parent_of: Callable[[Tx, str], tuple[str | None, str] | None]


@dataclass(frozen=True, slots=True)
class Place:
    """
    Where an effect is asked from.

    Attributes:
        lease: Under which the caller may write; an approval on a raw graph has none.
        root: The root graph's checkpoint the superstep started from.
        task: LangGraph's task, with the tasks of the graphs around it: the whole checkpoint namespace.
        checkpoint: The innermost graph's namespace and checkpoint, as `namespace@id`.
        ancestry: How to ask about other checkpoints of the thread; `None` where the checkpointer cannot be asked.
        caps: What the run may take; `None` on a raw graph, and for what a person asks for beside the run.
    """

    lease: Lease | None
    root: str
    task: str
    checkpoint: str
    ancestry: Ancestry | None = field(default=None, compare=False)
    caps: Caps | None = field(default=None, compare=False)

    @property
    def held(self) -> Lease:
        """The lease, of a place that must have one: an effect's."""
        assert self.lease is not None
        return self.lease

    def columns(self) -> dict[str, Any]:
        """Return the place as the ledger stores it."""
        return {
            "lease": self.lease.name if self.lease else None,
            "fence": self.lease.fence if self.lease else None,
            "owner": self.lease.owner if self.lease else None,
            "root": self.root,
            "task": self.task,
            "checkpoint": self.checkpoint,
        }

    def answers(self, tx: Tx, row: Row) -> bool:
        """Tell whether what was recorded at the place in *row* may answer for what is asked from here."""
        if row["root"] == self.root:
            return self._is_same_task(tx, row)
        return self._is_other_branch(tx, str(row["root"]))

    def _is_same_task(self, tx: Tx, row: Row) -> bool:
        if row["task"] == self.task:
            return True
        under_this_lease = self.lease and (row["lease"], row["fence"]) == (self.lease.name, self.lease.fence)
        if self.ancestry is None or self.lease is None or under_this_lease:
            return False
        if str(row["task"]).split("|")[0] != self.task.split("|")[0]:
            return False
        namespace, _, recorded = str(row["checkpoint"]).rpartition("@")
        return not self.ancestry.exists(tx, namespace, recorded)

    def _is_other_branch(self, tx: Tx, recorded: str) -> bool:
        """Walk from here towards the recorded root: not met is a fork; met, only edits may lie between."""
        if self.ancestry is None:
            return True
        current, only_edits = self.root, True
        while found := self.ancestry.parent_of(tx, current):
            parent, source = found
            only_edits = only_edits and source in ("update", "fork")
            if parent == recorded:
                return only_edits
            if parent is None:
                return True
            current = parent
        return True


def ambiguous(slot: Slot, why: str) -> SlotAmbiguous:
    """Return the error that says which slot two operations share, and how to tell them apart."""
    return SlotAmbiguous(
        f"two operations of thread {slot.thread_id!r} count as {slot.step!r}, and {why}; nothing was called for "
        "the second. Add the graph as a node whose state has `effects`, or give the effect an identity with once="
    )


def slot_of(row: Row) -> Slot:
    """Return the slot that a row of the ledger records."""
    before, found, identity = str(row["slot"]).partition(f"once|{row['effect']}|")
    return Slot(row["thread_id"], row["step"], row["effect"], identity if found and not before else None)


def make_key(slot: Slot, digest: str, *, max_length: int, generation: int = 1) -> str:
    """
    Return the key for a slot's call: `{thread_id}:{step}:{effect}:{digest}`, and from the second *generation* on its number after a dot.

    It is printable ASCII and at most *max_length* long, whatever the thread is called; else it is the short form, `cf_` and 32 hex digits of
    the whole key's SHA-256.
    """
    whole = f"{slot.thread_id}:{slot.step}:{slot.effect}:{digest}" + (f".{generation}" if generation > 1 else "")
    fits = len(whole) <= min(max_length, MAX_KEY_LENGTH)
    if fits and all("!" <= character <= "~" for character in whole):
        return whole
    return "cf_" + hashlib.sha256(whole.encode()).hexdigest()[:32]
