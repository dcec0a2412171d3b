"""
One visit of a node: where in which graph it runs, under which lease, and which slot its effect has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig

from checkpointing import EffectRecord, Journal, Lease
from checkpointing.ancestry import ancestry_in, wait_stored
from checkpointing.budget import CAPS, Caps
from checkpointing.errors import EffectBusy, RunBusy
from checkpointing.leases import holder_of, holding, slot_lease
from checkpointing.savers import LEASE
from checkpointing.slots import Place

PUSH = "__pregel_push"
"""What LangGraph's task path begins with for a `Send`."""
CHECKPOINTER = "__pregel_checkpointer"
"""Where LangGraph 1.2 keeps the checkpointer of a run, for the graphs that a node invokes."""
DURABILITY = "__pregel_durability"
"""Where LangGraph 1.2 says when the run's checkpoints are stored; nothing where nobody asked for it, which is `async`."""


@dataclass(frozen=True, slots=True)
class Visit:
    """
    A node as it runs now.

    Attributes:
        node: Its path through the graphs around it, as in `pay` or `fraud/check`.
        task: The checkpoint namespace: names and task ids from the root graph down to this node.
        root: The root graph's checkpoint this superstep started from.
        checkpoint: The innermost graph's namespace and checkpoint, as `namespace@id`.
        send: The index of the `Send` that started it, or `None`.
        lease: The thread's lease, or `None` on a raw graph.
        caps: What the run may take, or `None` on a raw graph.
        checkpointer: What the run writes its checkpoints to: the journal's saver, or a server's own.
        aside: The root may not be stored yet, but will be: a raw graph does that beside the superstep.
    """

    thread_id: str
    node: str
    task: str
    root: str
    checkpoint: str
    send: int | None
    lease: Lease | None
    caps: Caps | None
    checkpointer: object
    aside: bool

    def place(self, journal: Journal, lease: Lease | None, slot_id: str = "") -> Place:
        """Return the place as the journal records it, written under *lease*, once its root can be told from a fork."""
        ancestry = ancestry_in(self.checkpointer, journal.store, self.thread_id)
        if ancestry and self.aside and self.root:
            node = "" if slot_id else self.node
            wait_stored(ancestry, journal.store, self.root, thread_id=self.thread_id, slot=slot_id, node=node)
        return Place(lease, self.root, self.task, self.checkpoint, ancestry, self.caps)

    def step(self, number: int) -> str:
        """Return the slot's step for this node's visit *number*, from 0."""
        return f"{self.node}.{number}" + ("" if self.send is None else f"[{self.send}]")


def visit(config: RunnableConfig) -> Visit:
    """Read this node's place from LangGraph's config."""
    configurable = config["configurable"]
    segments = str(configurable["checkpoint_ns"]).split("|")
    around = "|".join(segments[:-1])
    checkpoints: Mapping[str, str] = configurable.get("checkpoint_map", {})
    path: tuple[Any, ...] = config.get("metadata", {}).get("langgraph_path", ())
    return Visit(
        thread_id=str(configurable["thread_id"]),
        # A segment without a task id counts the graphs a function invoked; it is no part of the node's path.
        node="/".join(segment.partition(":")[0] for segment in segments if ":" in segment),
        task="|".join(segments),
        root=str(checkpoints.get("", "")),
        checkpoint=f"{around}@{checkpoints.get(around, '')}",
        send=int(path[1]) if path and path[0] == PUSH and isinstance(path[1], int) else None,
        lease=held if isinstance(held := configurable.get(LEASE), Lease) else None,
        caps=caps if isinstance(caps := configurable.get(CAPS), Caps) else None,
        checkpointer=configurable.get(CHECKPOINTER),
        aside=configurable.get(LEASE) is None and configurable.get(DURABILITY) in (None, "async"),
    )


def visits_before(receipts: Mapping[str, Mapping[str, Any]], node: str) -> int:
    """Return how often this node was visited before, by its receipts."""
    return sum(1 for receipt in receipts.values() if receipt["node"] == node)


@contextmanager
def place(journal: Journal, here: Visit, slot_id: str) -> Iterator[Place]:
    """
    Provide the lease an effect is claimed under: the thread's, or on a raw graph one for the slot alone.

    Raises:
        EffectBusy: another process executes this slot.
    """
    if here.lease:
        yield here.place(journal, here.lease, slot_id)
        return
    with ExitStack() as held:
        try:
            lease = held.enter_context(holding(journal.leases, slot_lease(slot_id)))
        except RunBusy as busy:
            raise EffectBusy(str(busy)) from busy
        yield here.place(journal, lease, slot_id)


def is_executed_apart(journal: Journal, record: EffectRecord) -> bool:
    """Tell whether a process executes this effect's slot under a lease of its own: a reissue, or a raw graph."""
    with journal.store.reading() as tx:
        row = holder_of(tx, slot_lease(record.slot))
    return row is not None and int(row["left_ms"]) > 0
