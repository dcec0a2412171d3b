"""
How a thread's checkpoints descend from each other, asked of whichever checkpointer keeps them: the journal's, or a server's own.

A raw graph stores a superstep's checkpoint on the side, while the superstep runs already. Until it is there nobody can say what it descends from,
and a second operation would look like a fork of the first; so what is asked from there waits for it, outside every transaction.
"""

from __future__ import annotations

import json
import threading
import time

from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from checkpointing.slots import Ancestry
from checkpointing.store import Store, Tx

EXISTS = """
select 1 as found from checkpoints
where thread_id = :thread_id and checkpoint_ns = :namespace and checkpoint_id = :checkpoint_id
"""
PARENT = """
select parent_checkpoint_id as parent, metadata from checkpoints
where thread_id = :thread_id and checkpoint_ns = '' and checkpoint_id = :checkpoint_id
"""
ELSEWHERE = """
select 1 as found from effects where slot = :slot and root <> :root
union all
select 1 as found from approvals where thread_id = :thread_id and node = :node and root <> :root
"""
"""Whether this slot or this node's question was recorded from another root, so that it matters where this one comes from."""
PATIENCE_S = 5.0
"""How long a superstep waits for the checkpoint it began from, in seconds; one that was lost never comes."""
AGAIN_S = 0.01


def ancestry_in(saver: object, store: Store, thread_id: str) -> Ancestry | None:
    """
    Return how to ask where the thread's checkpoints come from; `None` where it cannot be asked.

    Args:
        saver: the checkpointer that the run writes to.
        store: the journal's.
        thread_id: the thread.
    """
    if getattr(saver, "store", None) is store:
        return own_ancestry(thread_id)
    if not isinstance(saver, BaseCheckpointSaver) or type(saver).get_tuple is BaseCheckpointSaver.get_tuple:
        return None  # no checkpointer at all, or one that only awaits
    return _foreign_ancestry(saver, thread_id)


def own_ancestry(thread_id: str) -> Ancestry:
    """Return how to ask the journal's own tables, in the transaction that asks."""

    def exists(tx: Tx, namespace: str, checkpoint_id: str) -> bool:
        return tx.one(EXISTS, thread_id=thread_id, namespace=namespace, checkpoint_id=checkpoint_id) is not None

    def parent_of(tx: Tx, checkpoint_id: str) -> tuple[str | None, str] | None:
        row = tx.one(PARENT, thread_id=thread_id, checkpoint_id=checkpoint_id)
        if row is None:
            return None
        metadata = row["metadata"] if isinstance(row["metadata"], dict) else json.loads(row["metadata"])
        return row["parent"], str(metadata.get("source"))

    return Ancestry(exists, parent_of)


def wait_stored(ancestry: Ancestry, store: Store, root: str, *, thread_id: str, slot: str = "", node: str = "") -> None:
    """Wait until the checkpoint *root* is stored, where what is recorded of the *slot*, or of the *node*'s questions, is of another one."""
    patience = time.monotonic() + PATIENCE_S
    asked = {"thread_id": thread_id, "slot": slot, "node": node, "root": root}
    with store.reading() as tx:
        if tx.one(f"{ELSEWHERE} limit 1", **asked) is None:
            return
    while time.monotonic() < patience:
        with store.reading() as tx:
            if ancestry.exists(tx, "", root):
                return
        threading.Event().wait(AGAIN_S)


def _foreign_ancestry(saver: BaseCheckpointSaver[str], thread_id: str) -> Ancestry:
    """Return how to ask another checkpointer. It is read inside a transaction of ours; nobody there waits for what we have locked."""

    def found(namespace: str, checkpoint_id: str) -> CheckpointTuple | None:
        at = {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}
        return saver.get_tuple({"configurable": at})

    def exists(_tx: Tx, namespace: str, checkpoint_id: str) -> bool:
        return found(namespace, checkpoint_id) is not None

    def parent_of(_tx: Tx, checkpoint_id: str) -> tuple[str | None, str] | None:
        if (child := found("", checkpoint_id)) is None:
            return None
        parent = child.parent_config["configurable"]["checkpoint_id"] if child.parent_config else None
        return parent, str(child.metadata.get("source"))

    return Ancestry(exists, parent_of)
