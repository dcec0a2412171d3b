"""
What can be seen of a run from outside, at one moment: its rows, its checkpoints, and the traces it left at the receiver and in the folder.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from checkpointing import Approval, EffectRecord, Journal, Run
from checkpointing.audit import Entry
from checkpointing.store import Tx
from tests.properties.receiver import Call, lines_of

LEASES = "select name, owner, fence from leases"
CHECKPOINTS = """
select checkpoint_id as id, parent_checkpoint_id as parent from checkpoints
where thread_id = :thread_id and checkpoint_ns = ''
"""
ALL_CHECKPOINTS = "select count(*) as n from checkpoints where thread_id = :thread_id"
WRITES = "select count(*) as n from {writes} where thread_id = :thread_id"


@dataclass(frozen=True)
class Seen:
    """
    One look.

    Attributes:
        fences: The fence of every lease, by name; `owners` has who holds it.
        parents: The parent of every checkpoint of the root graph.
        wrote: How many checkpoints and writes there are, subgraphs counted.
        faults: What the audit finds wrong with itself.
        nodes: How often each computing node ran from each checkpoint.
        models: How often each model was asked.
    """

    run: Run | None
    approvals: dict[str, Approval]
    effects: dict[str, EffectRecord]
    fences: dict[str, int]
    owners: dict[str, str | None]
    parents: dict[str, str | None]
    wrote: tuple[int, int]
    entries: list[Entry]
    faults: list[str]
    calls: list[Call]
    nodes: Counter[tuple[str, str]]
    models: Counter[str]

    @property
    def head(self) -> str:
        """The newest checkpoint, empty if there is none."""
        return max(self.parents, default="")

    def line(self) -> set[str | None]:
        """Return the head and everything it descends from."""
        found: set[str | None] = set()
        current: str | None = self.head
        while current:
            found.add(current)
            current = self.parents.get(current)
        return found

    def executed(self) -> Counter[str]:
        """Return how often each operation was executed."""
        return Counter(call["claim_id"] for call in self.calls if call["executed"])


def look(journal: Journal, folder: Path, thread_id: str, calls: list[Call]) -> Seen:
    """Look at everything there is of the thread, while nobody is at work on it."""
    with journal.store.reading() as tx:
        leases = tx.all(LEASES)
        parents = {row["id"]: row["parent"] for row in tx.all(CHECKPOINTS, thread_id=thread_id)}
        wrote = (
            _count(tx, ALL_CHECKPOINTS, thread_id),
            _count(tx, WRITES.replace("{writes}", journal.saver.writes_table), thread_id),
        )
    return Seen(
        run=journal.runs.find(thread_id),
        approvals={one.id: one for one in journal.approvals.of_thread(thread_id)},
        effects={one.key: one for one in journal.effects.list(thread_id=thread_id)},
        fences={row["name"]: row["fence"] for row in leases},
        owners={row["name"]: row["owner"] for row in leases},
        parents=parents,
        wrote=wrote,
        entries=journal.audit.entries(thread_id),
        faults=list(journal.audit.verify()),
        calls=calls,
        nodes=Counter((line["node"], line["checkpoint"]) for line in lines_of(folder / "nodes")),
        models=Counter(lines_of(folder / "models")),
    )


def _count(tx: Tx, sql: str, thread_id: str) -> int:
    row: dict[str, Any] | None = tx.one(sql, thread_id=thread_id)
    assert row
    return int(row["n"])
