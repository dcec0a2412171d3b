"""What happens to a question is noted with it, once for each time it happens."""

from __future__ import annotations

from pathlib import Path

from checkpointing import Journal
from graph import thread
from tests.support.small_claim import THREAD, small_claim


def test_people_who_are_asked_again_are_told_again(journal: Journal, tmp_path: Path) -> None:
    """Until the same moment and at the same tier, with others asked in between."""
    small_claim(journal, tmp_path).invoke({"claim_id": "0042"}, thread(THREAD))
    [asked] = journal.approvals.pending()
    ids = []
    for one in ("ann", "bob", "ann", "bob"):
        journal.approvals.reassign(asked.id, [one], principal="operator-3", operator=True)
        noted = [notice for notice in journal.notices.noted() if notice.event == "approval.reassign"]
        ids += [notice.id for notice in noted]
        assert [notice.body["approvers"] for notice in noted] == [[one]]
        for notice in noted:
            journal.notices.told(notice.id)

    assert len(set(ids)) == 4
