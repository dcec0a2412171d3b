"""
A server killed around what it writes for a request: the key it held is free again after a while, and an answer that was kept is the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from checkpointing import Journal, open_journal
from checkpointing.admissions import Admission
from checkpointing.errors import KeyBusy
from checkpointing.idempotency import PATIENCE, Answer, Begun
from tests.support.points import die_at
from tests.support.processes import killed, start

KEY = ("intake", "k-1", "f-1")
ANSWER = Answer(202, "{}", {"location": "/there"})
THREAD = "claim-0042"


def dying(url: str, point: str, do: Callable[[Journal], object]) -> None:
    """Do it in a process that dies at *point*."""
    die_at(point)
    with open_journal(url) as journal:
        do(journal)


def begin(journal: Journal) -> Begun:
    begun = journal.idempotency.begin(*KEY)
    assert isinstance(begun, Begun)
    return begun


def begin_and_finish(journal: Journal) -> None:
    journal.idempotency.finish(begin(journal), ANSWER)


def begin_and_forget(journal: Journal) -> None:
    journal.idempotency.forget(begin(journal))


def nudge(journal: Journal) -> None:
    journal.runs.nudge(THREAD, principal="op-1")


def later() -> datetime:
    return datetime.now(UTC) + PATIENCE


def stands_begun(url: str) -> bool:
    """Tell whether the key is held now, and see that it is not later."""
    with open_journal(url, clock=later) as journal:
        again = begin(journal).again
        journal.idempotency.forget(Begun(*KEY[:2], 0, again=True))
    return again


@pytest.mark.parametrize(("point", "held"), [("before key.begin", False), ("after key.begin", True)])
def test_killed_while_a_request_began(url: str, point: str, held: bool) -> None:
    open_journal(url).close()
    killed(start(dying, url, point, begin))

    if held:
        with open_journal(url) as journal, pytest.raises(KeyBusy):
            journal.idempotency.begin(*KEY)
    assert stands_begun(url) == held


@pytest.mark.parametrize(("point", "kept"), [("before key.finish", False), ("after key.finish", True)])
def test_killed_while_an_answer_was_kept(url: str, point: str, kept: bool) -> None:
    open_journal(url).close()
    killed(start(dying, url, point, begin_and_finish))

    with open_journal(url, clock=later) as journal:
        found = journal.idempotency.begin(*KEY)
    assert (found == ANSWER) == kept
    assert kept or (isinstance(found, Begun) and found.again)


@pytest.mark.parametrize(("point", "freed"), [("before key.forget", False), ("after key.forget", True)])
def test_killed_while_a_key_was_freed(url: str, point: str, freed: bool) -> None:
    open_journal(url).close()
    killed(start(dying, url, point, begin_and_forget))

    assert stands_begun(url) == (not freed)


@pytest.mark.parametrize(("point", "nudged"), [("before run.nudge", False), ("after run.nudge", True)])
def test_killed_while_a_run_was_nudged(url: str, point: str, nudged: bool) -> None:
    """The run was admitted by a caller who means to run it, so that workers leave it alone for a while."""
    with open_journal(url) as journal:
        journal.runs.admit(Admission(THREAD, "null", b"", "digest", "", "intake", "claims", takes_turns=False))
        assert journal.runs.due("claims", limit=9) == ()
    killed(start(dying, url, point, nudge))

    with open_journal(url) as journal:
        assert journal.runs.due("claims", limit=9) == ((THREAD,) if nudged else ())
        assert [one.event for one in journal.audit.entries(THREAD)] == ["run.admit", *(["run.nudge"] if nudged else [])]
        assert list(journal.audit.verify()) == []
