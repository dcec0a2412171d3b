"""
LangGraph's own savers, with a fence in the transaction of every write.

Under a lease (in the config, below `LEASE`, which LangGraph does not store) a `put` is refused if the lease is lost, if its parent is not
the thread's head (`CheckpointSuperseded`), or if its id sorts below the head (`ClockBehind`: checkpoint ids are wall-clock time, so the new
checkpoint would never become the head and the step would run again for ever). Without a lease a thread is written only while nobody
holds one.

A crash inside a write leaves nothing of it. LangGraph waits for `put` at the end of a superstep and never for `put_writes`; nothing here
depends on the latter.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from checkpointing.bridge import Bridge
from checkpointing.budget import STOP, count_step
from checkpointing.errors import CheckpointSuperseded, ClockBehind
from checkpointing.leases import Lease, check_fence, check_free, thread_lease
from checkpointing.postgres import PostgresEngine
from checkpointing.sqlite import SqliteEngine
from checkpointing.store import Store, Tx

LEASE = "__counterfoil_lease"
"""Where the config carries the caller's lease. LangGraph stores no key that begins with two underscores."""

HEAD = "select max(checkpoint_id) as head from checkpoints where thread_id = :thread_id and checkpoint_ns = :namespace"
FORGET_ERROR = """
delete from {writes} where thread_id = :thread_id and checkpoint_ns = :namespace and checkpoint_id = :checkpoint_id
    and task_id = :task_id and channel = '__error__'
"""


class FencedSaver(BaseCheckpointSaver[str]):
    """The fence, and async by threads; stands in front of an official saver in the order of bases."""

    store: Store
    bridge: Bridge
    writes_table: str
    _writing: threading.local

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Write a checkpoint, under the fence; errors as this module says."""
        with self._fenced("checkpoint.put", config, checkpoint["id"], source=metadata.get("source", "")):
            return super().put(config, checkpoint, metadata, new_versions)

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """
        Write what a task wrote, under the fence; errors as this module says.

        A task that finished loses the error of its earlier attempt, which LangGraph 1.2 keeps beside the output: it is
        then the only task with both whose router raised, and that one is not finished: what follows it has yet to run.
        """
        finished = not any(channel in WRITES_IDX_MAP for channel, _ in writes)
        with self._fenced("checkpoint.put_writes", config, None, finished_task=task_id if finished else None):
            super().put_writes(config, writes, task_id, task_path)

    def delete_thread(self, thread_id: str) -> None:
        """Delete the thread's checkpoints and writes; only while nobody holds its lease."""
        with self._fenced("checkpoint.delete", {"configurable": {"thread_id": thread_id}}, None):
            super().delete_thread(thread_id)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As `get_tuple`."""
        return await self.bridge.run(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002  # LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """As `list`."""
        found = self.list(config, filter=filter, before=before, limit=limit)
        try:
            while (one := await self.bridge.run(next, found, None)) is not None:
                yield one
        finally:
            await self.bridge.run(cast("Generator[CheckpointTuple]", found).close)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """As `put`."""
        return await self.bridge.run(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """As `put_writes`."""
        await self.bridge.run(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """As `delete_thread`."""
        await self.bridge.run(self.delete_thread, thread_id)

    def head(self, thread_id: str) -> str:
        """Return the id of the thread's newest root checkpoint; empty if there is none."""
        with self.store.reading() as tx:
            row = tx.one(HEAD, thread_id=thread_id, namespace="")
        return str(row["head"]) if row and row["head"] else ""

    def check_clock(self, thread_id: str, head: str) -> None:
        """
        Make sure that a checkpoint written now would follow *head*, before any step runs whose checkpoint would be refused.

        Raises:
            ClockBehind: this host's clock is behind; nothing was changed.
        """
        if (now := str(uuid6())) < head:
            raise ClockBehind(_behind(thread_id, head, now))

    @contextmanager
    def _fenced(
        self,
        name: str,
        config: RunnableConfig,
        checkpoint_id: str | None,
        *,
        finished_task: str | None = None,
        source: str = "",
    ) -> Iterator[None]:
        """Make the official saver's next cursor in this thread a fenced transaction of the store."""
        self._writing.now = (name, config["configurable"], checkpoint_id, finished_task, source)
        try:
            yield
        finally:
            self._writing.now = None

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        """Begin what `_fenced` announced: check first, then hand out the cursor. A cap that lets no other superstep follow stops the run."""
        name, configurable, checkpoint_id, finished_task, source = self._writing.now
        cap = None
        with self.store.transaction(name) as tx:
            _check(tx, configurable, checkpoint_id)
            if checkpoint_id and configurable.get(LEASE):
                cap = count_step(tx, configurable, checkpoint_id, source)
            if finished_task:
                tx.all(
                    FORGET_ERROR.replace("{writes}", self.writes_table),
                    thread_id=str(configurable["thread_id"]),
                    namespace=str(configurable.get("checkpoint_ns", "")),
                    checkpoint_id=str(configurable["checkpoint_id"]),
                    task_id=finished_task,
                )
            yield tx.cursor
        if cap:
            configurable[STOP](cap.reason)

    def _is_writing(self) -> bool:
        return getattr(self._writing, "now", None) is not None


class SqliteJournalSaver(FencedSaver, SqliteSaver):
    """The official SQLite saver over the journal's file."""

    writes_table = "writes"

    def __init__(self, store: Store, bridge: Bridge, engine: SqliteEngine) -> None:
        """Use *store* for writing and a connection of its own for reading."""
        SqliteSaver.__init__(self, engine.connect())
        self.store, self.bridge, self.engine = store, bridge, engine
        self._writing = threading.local()

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[Any]:  # LangGraph's signature
        """
        Hand out a cursor: in a fenced transaction for a write, on a connection of its own and free of any lock for a read.

        The official one holds a lock while a caller walks through `list`, so that a `get_tuple` inside the loop waits for ever; and
        a caller that leaves such a walk half done pins what its connection sees.
        """
        if transaction and self._is_writing():
            with self._transaction() as cursor:
                yield cursor
            return
        with self.engine.reading() as cursor:
            yield cursor


class PostgresJournalSaver(FencedSaver, PostgresSaver):
    """The official Postgres saver over the journal's pool, one connection a call."""

    writes_table = "checkpoint_writes"

    def __init__(self, store: Store, bridge: Bridge, engine: PostgresEngine) -> None:
        """Use *store* for writing and the pool for reading."""
        PostgresSaver.__init__(self, engine.pool)
        self.store, self.bridge, self.engine = store, bridge, engine
        self._writing = threading.local()

    @contextmanager
    def _cursor(self, *, pipeline: bool = False) -> Iterator[Any]:  # noqa: ARG002  # LangGraph's signature
        """Hand out a cursor: in a fenced transaction for a write, on a connection of its own for a read."""
        if self._is_writing():
            with self._transaction() as cursor:
                yield cursor
            return
        with self.engine.reading() as cursor:
            yield cursor


def newest_tables(*, dispatches: bool) -> int:
    """Return how far LangGraph's saver brings its tables, by its own numbers; on SQLite it has none, and 0 is that they are there."""
    return len(PostgresSaver.MIGRATIONS) - 1 if dispatches else 0


def make_saver(store: Store, bridge: Bridge) -> SqliteJournalSaver | PostgresJournalSaver:
    """Return the saver for the store's engine; its tables are made by `setup`."""
    if isinstance(store.engine, PostgresEngine):
        return PostgresJournalSaver(store, bridge, store.engine)
    return SqliteJournalSaver(store, bridge, cast("SqliteEngine", store.engine))


def _check(tx: Tx, configurable: dict[str, Any], checkpoint_id: str | None) -> None:
    thread_id = str(configurable["thread_id"])
    lease: Lease | None = configurable.get(LEASE)
    if lease is None:
        check_free(tx, thread_lease(thread_id))
        return
    check_fence(tx, lease)
    if checkpoint_id is not None:
        namespace = str(configurable.get("checkpoint_ns", ""))
        _check_head(
            tx,
            thread_id,
            namespace,
            parent=configurable.get("checkpoint_id"),
            checkpoint_id=checkpoint_id,
        )


def _check_head(tx: Tx, thread_id: str, namespace: str, *, parent: str | None, checkpoint_id: str) -> None:
    row = tx.one(HEAD, thread_id=thread_id, namespace=namespace)
    head = row["head"] if row else None
    if head is None or head == checkpoint_id:
        return
    if head != parent:
        raise CheckpointSuperseded(
            f"thread {thread_id!r}: checkpoint {checkpoint_id} follows {parent}, and the head is {head}; its writer carries on"
        )
    if checkpoint_id < head:
        raise ClockBehind(_behind(thread_id, head, checkpoint_id))


def _behind(thread_id: str, head: str, checkpoint_id: str) -> str:
    return (
        f"thread {thread_id!r}: this host's clock is behind the head {head}; a checkpoint {checkpoint_id} written now would be lost. "
        "Set the clock, or let a host whose clock is right carry on"
    )
