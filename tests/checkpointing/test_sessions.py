"""Sessions: who is logged in, until when, and what ends it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from checkpointing import Journal
from checkpointing.hashed import digest_of
from checkpointing.principals import Person
from checkpointing.sessions import LASTING
from tests.support.clock import MovingClock

ADA = Person("ada", frozenset({"motor", "home"}), 50_000)
HOUR = timedelta(hours=1)


@pytest.fixture
def journal(opened: Callable[..., Journal], clock: MovingClock) -> Journal:
    """An open journal whose clock the test moves."""
    return opened(clock=clock)


def test_a_session_says_who_logged_in(journal: Journal, clock: MovingClock) -> None:
    found = journal.sessions.find(journal.sessions.begin(ADA, ["operator", "approver"]))

    assert found is not None
    assert (found.person, found.roles) == (ADA, ("approver", "operator"))
    assert (found.began_at, found.expires_at) == (clock.now, clock.now + LASTING)


def test_somebody_without_a_limit_has_none_in_their_session_either(journal: Journal) -> None:
    found = journal.sessions.find(journal.sessions.begin(Person("ada"), []))

    assert found is not None
    assert (found.person, found.roles) == (Person("ada"), ())


def test_every_login_begins_a_session_of_its_own(journal: Journal) -> None:
    first, second = journal.sessions.begin(ADA, []), journal.sessions.begin(ADA, [])
    assert first != second
    journal.sessions.end(first)

    assert journal.sessions.find(first) is None
    assert journal.sessions.find(second) is not None


def test_a_session_is_over_after_its_time_whatever_was_done_in_it(journal: Journal, clock: MovingClock) -> None:
    secret = journal.sessions.begin(ADA, [], lasting=2 * HOUR)
    for _ in range(119):
        clock.move(timedelta(minutes=1))
        assert journal.sessions.find(secret) is not None
    clock.move(timedelta(minutes=1))

    assert journal.sessions.find(secret) is None


def test_a_session_ends_when_its_token_is_revoked(journal: Journal) -> None:
    token, secret = journal.tokens.add(principal="ada", roles=["approver"], by="root")
    _, others = journal.tokens.add(principal="ada", roles=["approver"], by="root")
    mine = journal.sessions.begin(token.person, token.roles, token_digest=digest_of(secret))
    other = journal.sessions.begin(token.person, token.roles, token_digest=digest_of(others))
    journal.tokens.revoke(token.id, by="root")

    assert journal.sessions.find(mine) is None
    assert journal.sessions.find(other) is not None


def test_a_session_lasts_no_longer_than_its_token(journal: Journal, clock: MovingClock) -> None:
    token, secret = journal.tokens.add(principal="ada", roles=["approver"], expires_in=HOUR, by="root")
    mine = journal.sessions.begin(token.person, token.roles, token_digest=digest_of(secret))
    clock.move(HOUR)

    assert journal.sessions.find(mine) is None


def test_a_session_of_a_token_that_is_gone_is_void(journal: Journal) -> None:
    secret = journal.sessions.begin(ADA, [], token_digest=digest_of("nobody's"))

    assert journal.sessions.find(secret) is None


@pytest.mark.parametrize("wrong", ["", "nobody's", "\0", "\ud800", pytest.param("x" * 100_000, id="long")])
def test_what_is_no_session_is_nobody_and_ends_nothing(journal: Journal, wrong: str) -> None:
    secret = journal.sessions.begin(ADA, [])
    journal.sessions.end(wrong)

    assert journal.sessions.find(wrong) is None
    assert journal.sessions.find(digest_of(secret)) is None
    assert journal.sessions.find(secret) is not None


def test_a_login_clears_away_what_is_overdue(journal: Journal, clock: MovingClock) -> None:
    for _ in range(3):
        journal.sessions.begin(ADA, [], lasting=HOUR)
    clock.move(HOUR)
    secret = journal.sessions.begin(ADA, [])

    with journal.store.reading() as tx:
        assert [row["digest"] for row in tx.all("select digest from sessions")] == [digest_of(secret)]
