"""A worker killed while it tells of something, and a second one: one run a notice, and the consumer knows what it gets twice."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from checkpointing import Journal, open_journal
from checkpointing.clock import system_clock
from graph import thread
from service.notices.posting import KEPT, forget
from tests.support.consumer import Consumer, consumer
from tests.support.mailbox import Mailbox, mailbox
from tests.support.points import die_at
from tests.support.processes import finish, killed, start, until
from tests.support.small_claim import LEASE, THREAD, small_claim
from tests.support.telling import tells
from tests.support.workers import a_worker


def tell_in_two_lives(url: str, folder: Path, told: Consumer | Mailbox, point: str) -> list[str]:
    """Have a question asked and told of by a worker that dies at *point*, and by a second one; return the runs that told of it."""
    with open_journal(url, lease=LEASE) as journal:
        small_claim(journal, folder).submit({"claim_id": "0042"}, thread(THREAD))
        killed(start(tells, url, folder, told.url, point))
        with a_worker(tells, url, folder, told.url):
            return until(lambda: all_told(journal))


def all_told(journal: Journal) -> list[str] | None:
    """Return the runs that told, once nothing is left to tell."""
    runs = [one for one in journal.runs.list() if one.graph == "notices"]
    over = runs and all(one.state == "done" for one in runs) and not journal.notices.noted()
    return [one.thread_id for one in runs] if over else None


@pytest.mark.parametrize("point", ["before run.admit", "after run.admit", "before notice.told", "after notice.told"])
def test_killed_while_a_notice_was_posted(url: str, tmp_path: Path, point: str) -> None:
    with consumer() as told:
        runs = tell_in_two_lives(url, tmp_path, told, point)

        assert len(runs) == 1
        assert told.events == ["approval.open"]
        assert len(told.sent) == 1


@pytest.mark.parametrize(("point", "times"), [("before call webhook", 1), ("after call webhook", 2)])
def test_killed_around_a_call(url: str, tmp_path: Path, point: str, times: int) -> None:
    with consumer() as told:
        runs = tell_in_two_lives(url, tmp_path, told, point)

        assert len(runs) == 1
        assert told.events == ["approval.open"]
        assert told.ids == [told.ids[0]] * times


@pytest.mark.parametrize(("point", "times"), [("before call mail", 1), ("after call mail", 2)])
def test_killed_around_a_mail(url: str, tmp_path: Path, point: str, times: int) -> None:
    """Plain SMTP has no keys, so a second copy comes; it has the first one's id."""
    with mailbox() as told:
        runs = tell_in_two_lives(url, tmp_path, told, point)

        assert len(runs) == 1
        assert told.ids == [told.ids[0]] * times


def forgets(url: str, point: str | None = None) -> None:
    """Forget what is old, at a time when it is, and die at *point* if one is given."""
    if point:
        die_at(point)
    with open_journal(url, clock=lambda: system_clock() + KEPT + timedelta(minutes=1)) as journal:
        forget(journal)


@pytest.mark.parametrize("point", ["before notice.forget", "after notice.forget"])
def test_killed_while_old_notes_were_forgotten(url: str, journal: Journal, tmp_path: Path, point: str) -> None:
    small_claim(journal, tmp_path).invoke({"claim_id": "0042"}, thread(THREAD))
    forget(journal)
    assert [one.event for one in journal.notices.noted()] == ["approval.open"], "a young one is kept"

    killed(start(forgets, url, point))
    finish(start(forgets, url))

    assert journal.notices.noted() == []
