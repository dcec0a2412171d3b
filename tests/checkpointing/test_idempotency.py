"""Idempotency keys: one request under one key is carried out once and answered the same, and a server that dies locks no key for ever."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from multiprocessing.synchronize import Barrier
from typing import Any

import pytest

from checkpointing import Journal, open_journal
from checkpointing.errors import KeyBusy, KeyReused
from checkpointing.idempotency import LIFE, PATIENCE, Answer, Begun
from tests.support.clock import MovingClock
from tests.support.processes import context, finish, start

ANSWER = Answer(202, '{"thread_id": "claim-0042"}', {"location": "/api/v1/runs/claim-0042"})
MOMENT = timedelta(milliseconds=1)


def begun(journal: Journal, *, by: str = "intake", key: str = "k-1", fingerprint: str = "f-1") -> Begun:
    found = journal.idempotency.begin(by, key, fingerprint)
    assert isinstance(found, Begun)
    return found


def test_the_same_request_again_gets_the_same_answer(journal: Journal) -> None:
    journal.idempotency.finish(begun(journal), ANSWER)

    assert journal.idempotency.begin("intake", "k-1", "f-1") == ANSWER


def test_another_request_under_the_key_is_refused_before_and_after_the_answer(journal: Journal) -> None:
    first = begun(journal)
    with pytest.raises(KeyReused):
        journal.idempotency.begin("intake", "k-1", "f-2")
    journal.idempotency.finish(first, ANSWER)
    with pytest.raises(KeyReused):
        journal.idempotency.begin("intake", "k-1", "f-2")


def test_somebody_elses_key_is_another_key(journal: Journal) -> None:
    journal.idempotency.finish(begun(journal), ANSWER)

    assert not begun(journal, by="ada", fingerprint="f-2").again


def test_a_request_under_way_keeps_its_key_for_a_while_and_not_for_ever(
    opened: Callable[..., Journal], clock: MovingClock
) -> None:
    journal = opened(clock=clock)
    begun(journal)
    clock.move(PATIENCE - MOMENT)
    with pytest.raises(KeyBusy):
        journal.idempotency.begin("intake", "k-1", "f-1")
    clock.move(MOMENT)

    assert begun(journal).again


def test_who_was_taken_over_from_neither_answers_nor_frees_the_key(
    opened: Callable[..., Journal], clock: MovingClock
) -> None:
    journal = opened(clock=clock)
    first = begun(journal)
    clock.move(PATIENCE)
    second = begun(journal)

    journal.idempotency.finish(first, Answer(500, "{}"))
    journal.idempotency.forget(first)
    with pytest.raises(KeyBusy):
        journal.idempotency.begin("intake", "k-1", "f-1")
    journal.idempotency.finish(second, ANSWER)

    assert journal.idempotency.begin("intake", "k-1", "f-1") == ANSWER


def test_a_key_that_was_freed_is_begun_anew(journal: Journal) -> None:
    journal.idempotency.forget(begun(journal))

    assert not begun(journal, fingerprint="f-2").again


def test_an_answer_is_forgotten_when_its_life_is_over(opened: Callable[..., Journal], clock: MovingClock) -> None:
    journal = opened(clock=clock)
    journal.idempotency.finish(begun(journal), ANSWER)
    clock.move(LIFE)
    assert journal.idempotency.begin("intake", "k-1", "f-1") == ANSWER
    clock.move(MOMENT)

    assert not begun(journal, fingerprint="f-2").again


def test_of_two_processes_at_once_one_begins(url: str) -> None:
    open_journal(url).close()
    both, found = context().Barrier(2), context().Queue()
    processes = [start(begin_once, url, both, found) for _ in range(2)]
    for process in processes:
        finish(process)

    assert sorted(found.get(timeout=10) for _ in processes) == ["begun", "busy"]


def begin_once(url: str, both: Barrier, found: Any) -> None:
    """Begin at the same moment as the other one."""
    with open_journal(url) as journal:
        both.wait(30)
        try:
            journal.idempotency.begin("intake", "k-1", "f-1")
        except KeyBusy:
            found.put("busy")
        else:
            found.put("begun")
