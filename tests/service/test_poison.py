"""One claim that always fails, among others, with workers in processes of their own."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

from checkpointing import Journal
from graph import thread
from tests.support.bank import Bank
from tests.support.plain import Trace
from tests.support.poison import ATTEMPTS, BACKOFF, CLAIMS, POISON, claims, worker
from tests.support.processes import start, until


def test_a_poison_claim_ends_as_a_dead_letter_while_all_others_go_on(
    journal: Journal, url: str, tmp_path: Path
) -> None:
    graph = claims(journal, tmp_path)
    names = [f"claim-{number}" for number in range(CLAIMS)]
    for name in names:
        graph.submit({"claim_id": name, "amount": 5}, thread(name))
    workers = [start(worker, url, tmp_path) for _ in range(2)]
    try:
        until(lambda: all(run.state in ("done", "dead") for run in journal.runs.list()) or None, 120)
    finally:
        for one in workers:
            one.kill()
            one.join()

    assert [run.thread_id for run in journal.runs.list(state="done")] == sorted(set(names) - {POISON})
    [dead] = journal.runs.dead()
    assert (dead.thread_id, dead.reason, dead.error) == (POISON, "attempts", "ValueError: poison")
    assert (dead.attempts, dead.dead_step, dead.dead_nodes) == (ATTEMPTS, 1, "close")
    assert Counter(call["claim_id"] for call in Bank(tmp_path / "bank").calls) == dict.fromkeys(names, 1)
    tried = [float(name) for name in Trace(tmp_path / "tried").names]
    waits = [later - earlier for earlier, later in pairwise(tried)]
    least = [BACKOFF.first.total_seconds() / 2 * 2**doublings for doublings in range(ATTEMPTS - 1)]
    assert len(tried) == ATTEMPTS
    assert all(wait >= shortest for wait, shortest in zip(waits, least, strict=True)), f"{waits} against {least}"
