"""
Killed before and after every durable write, by SIGKILL, on both engines: one execution at the receiver, a defined end, no completed step twice.

The process dies in one of the stories. Afterwards fresh processes do what an operator or a worker would do, and the traces outside are counted.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from checkpointing import Journal
from tests.crash.points import WRITES, cases
from tests.crash.stories import DOCUMENT, STORIES, dies, do, run_to_the_end, tell
from tests.support.bank import Bank
from tests.support.processes import finish, start
from tests.support.small_claim import THREAD, one_process, small_claim

LATER = [("after checkpoint.put", 2), ("after checkpoint.put", 3), ("after checkpoint.put_writes", 2), ("before effect.claim", 2),
         ("after effect.claim", 2), ("after effect.settle", 2), ("before checkpoint.put", 4)]  # fmt: skip
APPROVING = [("executed", 1), *[(point, nth) for _, point, nth in cases("approving")], *LATER]
REST = cases(*sorted(STORIES.keys() - {"submitting", "approving"}))


def check_once(journal: Journal, folder: Path) -> None:
    """One execution of every effect, one answer to the question, a whole record, and nobody who holds anything."""
    assert len(Bank(folder / "bank").executed) == 1
    assert len(Bank(folder / "post").executed) == 1
    assert {record.state for record in journal.effects.list(thread_id=THREAD)} == {"settled"}
    assert len(journal.effects.list(thread_id=THREAD)) == 3
    answered = [one for one in journal.approvals.of_thread(THREAD) if one.state in ("decided", "expired")]
    assert len(answered) == 1
    assert list(journal.audit.verify()) == []
    with journal.store.reading() as tx:
        assert tx.all("select name from leases where owner is not null and expires_ms > :now") == []


def check_done(journal: Journal, folder: Path) -> None:
    run = journal.runs.get(THREAD)
    assert (run.state, run.error) == ("done", None)
    check_once(journal, folder)


def lines(folder: Path, file: str) -> int:
    return len((folder / file).read_text().splitlines())


@pytest.mark.parametrize(("point", "nth"), [(point, nth) for _, point, nth in cases("submitting")])
def test_killed_while_submitting(url: str, tmp_path: Path, point: str, nth: int) -> None:
    tell("submitting", url, tmp_path, point, nth)

    with run_to_the_end("submitting", url, tmp_path) as journal:
        check_done(journal, tmp_path)
    # Only a model that was asked and whose answer was not recorded is asked again.
    assert lines(tmp_path, "model") == (2 if point == "before effect.settle" else 1)


@pytest.mark.parametrize(("point", "nth"), APPROVING)
def test_killed_while_approving(url: str, tmp_path: Path, point: str, nth: int) -> None:
    tell("approving", url, tmp_path, point, nth)

    with run_to_the_end("approving", url, tmp_path) as journal:
        check_done(journal, tmp_path)
    assert lines(tmp_path, "model") == 1
    assert (tmp_path / "nodes").read_text().splitlines()[0] == "load"
    assert (tmp_path / "nodes").read_text().splitlines().count("load") == 1


@pytest.mark.parametrize(("story", "point", "nth"), REST)
def test_killed_in_any_other_story(empty_url: str, tmp_path: Path, story: str, point: str, nth: int) -> None:
    url = empty_url
    tell(story, url, tmp_path, point, nth)

    with run_to_the_end(story, url, tmp_path) as journal:
        check_once(journal, tmp_path)
        if not STORIES[story].raw:
            check_done(journal, tmp_path)
        if story == "found out":  # this bank does not know a key when it sees it again
            assert lines(tmp_path, "bank") == 1
        if story == "keeping a document":
            stored = journal.artefacts.put(DOCUMENT, name="van.jpg", media_type="image/jpeg")
            assert journal.artefacts.get(stored.sha256) == DOCUMENT
        if story == "forgetting":
            do(small_claim(journal, tmp_path), tmp_path, "forget")
            assert journal.saver.head(THREAD) == ""
    assert lines(tmp_path, "model") == 1


def test_killed_again_and_again(url: str, tmp_path: Path) -> None:
    """Every process that takes the claim up dies after the receiver executed, before anything is recorded."""
    finish(start(one_process, url, tmp_path, "submit"))
    for action in ("approve", "resume", "resume", "resume"):
        dies(url, tmp_path, "approving", action, "executed")

    assert len(Bank(tmp_path / "bank").calls) == 4
    with run_to_the_end("approving", url, tmp_path) as journal:
        assert journal.runs.get(THREAD).resumes == 4
        check_done(journal, tmp_path)


def test_every_story_is_told() -> None:
    assert set(STORIES) == {story for passing in WRITES.values() for story in passing}
