"""The list of what waits for a decision."""

from __future__ import annotations

from pathlib import Path

from checkpointing import Journal
from tests.support.short_claim import claim, expiring_claim, submit, thread_of


def test_what_expires_first_is_listed_first_and_what_never_does_last(journal: Journal, tmp_path: Path) -> None:
    for number, asks in enumerate((claim, expiring_claim, claim, expiring_claim)):
        submit(asks(journal, tmp_path), number)

    listed = [one.thread_id for one in journal.approvals.pending()]

    assert listed == [thread_of(number) for number in (1, 3, 0, 2)]
    assert [one.thread_id for one in journal.approvals.pending(limit=1)] == [thread_of(1)]
