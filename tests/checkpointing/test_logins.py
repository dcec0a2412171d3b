"""Failed logins: who has to wait, how long, and when it is forgotten."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from checkpointing import Journal
from checkpointing.hashed import digest_of
from checkpointing.logins import DOUBLINGS, FIRST, FORGOTTEN_AFTER, FREE
from tests.support.clock import MovingClock

HERE, THERE = "address:192.0.2.1", "address:192.0.2.2"
NOW = timedelta()
LONG = "".join(digest_of(str(number)) for number in range(200))
"""Longer than an index takes, and not to be made shorter."""
TICK = timedelta(milliseconds=1)


@pytest.fixture
def journal(opened: Callable[..., Journal], clock: MovingClock) -> Journal:
    """An open journal whose clock the test moves."""
    return opened(clock=clock)


def failed(journal: Journal, times: int = FREE) -> None:
    for _ in range(times):
        assert journal.logins.attempt(HERE) == NOW


def test_some_slips_of_the_pen_cost_nothing(journal: Journal) -> None:
    failed(journal, FREE)

    assert journal.logins.attempt(HERE) == FIRST


def test_the_wait_doubles_with_each_failure_up_to_the_longest(journal: Journal, clock: MovingClock) -> None:
    failed(journal)
    waits = []
    for _ in range(DOUBLINGS + 3):
        waits.append(journal.logins.attempt(HERE))
        clock.move(waits[-1])
        failed(journal, 1)

    assert waits == [FIRST * 2 ** min(n, DOUBLINGS) for n in range(DOUBLINGS + 3)]


def test_asking_while_there_is_a_wait_neither_counts_nor_prolongs_it(journal: Journal, clock: MovingClock) -> None:
    failed(journal)
    clock.move(FIRST - TICK)
    for _ in range(10):
        assert journal.logins.attempt(HERE) == TICK
    clock.move(TICK)

    assert journal.logins.attempt(HERE) == NOW
    assert journal.logins.attempt(HERE) == 2 * FIRST


def test_one_place_does_not_wait_for_another(journal: Journal) -> None:
    failed(journal)

    assert journal.logins.attempt(THERE) == NOW


def test_a_success_forgets_what_failed_before(journal: Journal) -> None:
    failed(journal)
    journal.logins.succeeded(HERE)

    failed(journal)


def test_a_place_that_kept_quiet_is_as_good_as_new(journal: Journal, clock: MovingClock) -> None:
    failed(journal)
    clock.move(FIRST + FORGOTTEN_AFTER + TICK)

    failed(journal)


def test_other_connections_count_the_same(opened: Callable[..., Journal], journal: Journal, clock: MovingClock) -> None:
    failed(journal)

    assert opened(clock=clock).logins.attempt(HERE) == FIRST


@pytest.mark.parametrize("odd", ["", "\0", "\ud800", "'; drop table login_failures; --", pytest.param(LONG, id="long")])
def test_a_place_is_any_text(journal: Journal, odd: str) -> None:
    waits = [journal.logins.attempt(odd) for _ in range(FREE + 1)]

    assert waits == [*[NOW] * FREE, FIRST]


def test_a_success_clears_away_what_is_old(journal: Journal, clock: MovingClock) -> None:
    for number in range(3):
        journal.logins.attempt(f"address:192.0.2.{number}")
    clock.move(FORGOTTEN_AFTER + TICK)
    journal.logins.attempt(THERE)
    journal.logins.succeeded("address:192.0.2.9")

    with journal.store.reading() as tx:
        assert [row["place"] for row in tx.all("select place from login_failures")] == [THERE]
