"""What happens to an approval is told of once, by a run of its own for each place, however many workers look and whenever one of them dies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from checkpointing import Journal, Run
from graph import thread
from tests.support.consumer import Consumer, consumer
from tests.support.processes import until
from tests.support.small_claim import THREAD, small_claim
from tests.support.telling import tells
from tests.support.workers import a_worker


@pytest.fixture
def hook() -> Iterator[Consumer]:
    with consumer() as told:
        yield told


def told_of(journal: Journal, hook: Consumer, count: int) -> list[str]:
    """Wait until so many messages have arrived and nothing is left to tell, and return what they tell of."""
    until(lambda: len({one.id for one in hook.sent}) >= count or None)
    until(lambda: not journal.notices.noted() or None)
    until(lambda: all(one.state == "done" for one in runs_of(journal)) or None)
    return hook.events


def runs_of(journal: Journal) -> list[Run]:
    """Return the runs that tell of something."""
    return [one for one in journal.runs.list() if one.graph == "notices"]


def test_a_worker_tells_of_a_question_and_of_its_decision(
    url: str, journal: Journal, tmp_path: Path, hook: Consumer
) -> None:
    small_claim(journal, tmp_path).submit({"claim_id": "0042"}, thread(THREAD))
    with a_worker(tells, url, tmp_path, hook.url):
        assert told_of(journal, hook, 1) == ["approval.open"]
        [pending] = journal.approvals.pending(thread_id=THREAD)
        journal.approvals.decide(pending.id, {"type": "approve"}, principal="adjuster-17")
        assert told_of(journal, hook, 2) == ["approval.open", "approval.decide"]

    said = hook.sent[0].verified()
    assert said["data"] == {
        "notice": said["data"]["notice"],
        "approval": pending.id,
        "name": "payout",
        "thread": THREAD,
        "tier": None,
        "expires_at": None,
        "decision": None,
        "url": f"https://inbox.example/approvals/{pending.id}",
    }
    assert "adjuster-17" not in repr(hook.sent)
