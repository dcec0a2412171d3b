"""
A worker has just parked a run, and before it looks away somebody decides: the run is to be carried on at once, not left alone for a while.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from checkpointing import Journal
from checkpointing.store import Store
from graph import thread
from service.worker.advancing import advance
from service.worker.draining import Draining
from tests.support.points import at_point
from tests.support.small_claim import THREAD, small_claim


def test_a_run_decided_right_after_it_parked_is_due_at_once(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = small_claim(journal, tmp_path)
    graph.submit({"claim_id": "0042"}, thread(THREAD, principal="intake"))
    monkeypatch.setattr(Store, "transaction", Store.transaction)  # put back at the end

    def decide() -> None:
        [pending] = journal.approvals.pending(thread_id=THREAD)
        journal.approvals.decide(pending.id, {"type": "approve"}, principal="adjuster-17")

    at_point("after run.park", decide)

    came_to = advance({"": graph}, journal, THREAD, Draining())

    assert came_to.outcome == "admitted"
    assert journal.runs.due("", limit=1) == (THREAD,)
