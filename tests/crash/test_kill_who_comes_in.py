"""
Killed while somebody was let in, shut out or counted: either it is so, with its entry in the audit, or it never was.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from checkpointing import Journal, open_journal
from checkpointing.audit import ACCESS
from checkpointing.logins import FREE
from checkpointing.principals import Person
from tests.support.points import die_at
from tests.support.processes import killed, start

ADA = Person("ada", frozenset({"motor"}), 50_000)
HERE = "address:192.0.2.1"
Do = Callable[[Journal, str], object]


def dying(url: str, point: str, do: Do, about: str) -> None:
    """Do it in a process that dies at *point*; *about* is an id, a secret or a place."""
    die_at(point)
    with open_journal(url) as journal:
        do(journal, about)


def add(journal: Journal, _: str) -> object:
    return journal.tokens.add(principal="ada", roles=["approver"], by="root")


def revoke(journal: Journal, token_id: str) -> object:
    return journal.tokens.revoke(token_id, by="root")


def begin(journal: Journal, _: str) -> object:
    return journal.sessions.begin(ADA, ["approver"])


def end(journal: Journal, secret: str) -> object:
    return journal.sessions.end(secret)


def attempt(journal: Journal, place: str) -> object:
    return journal.logins.attempt(place)


def succeed(journal: Journal, place: str) -> object:
    return journal.logins.succeeded(place)


@pytest.mark.parametrize(("point", "tokens"), [("before token.add", 0), ("after token.add", 1)])
def test_killed_while_a_token_was_added(url: str, point: str, tokens: int) -> None:
    open_journal(url).close()
    killed(start(dying, url, point, add, ""))

    with open_journal(url) as journal:
        assert len(journal.tokens.list()) == len(journal.audit.entries(ACCESS)) == tokens
        assert list(journal.audit.verify()) == []


@pytest.mark.parametrize(("point", "good"), [("before token.revoke", True), ("after token.revoke", False)])
def test_killed_while_a_token_was_revoked(url: str, point: str, good: bool) -> None:
    with open_journal(url) as journal:
        token, secret = journal.tokens.add(principal="ada", roles=["approver"], by="root")
    killed(start(dying, url, point, revoke, token.id))

    with open_journal(url) as journal:
        assert (journal.tokens.find(secret) is not None) == good
        assert len(journal.audit.entries(ACCESS)) == (1 if good else 2)
        assert list(journal.audit.verify()) == []


@pytest.mark.parametrize(("point", "begun"), [("before session.begin", 0), ("after session.begin", 1)])
def test_killed_while_a_session_began(url: str, point: str, begun: int) -> None:
    open_journal(url).close()
    killed(start(dying, url, point, begin, ""))

    with open_journal(url) as journal, journal.store.reading() as tx:
        assert len(tx.all("select * from sessions")) == begun


@pytest.mark.parametrize(("point", "good"), [("before session.end", True), ("after session.end", False)])
def test_killed_while_a_session_ended(url: str, point: str, good: bool) -> None:
    with open_journal(url) as journal:
        secret = journal.sessions.begin(ADA, ["approver"])
    killed(start(dying, url, point, end, secret))

    with open_journal(url) as journal:
        assert (journal.sessions.find(secret) is not None) == good


@pytest.mark.parametrize(("point", "left"), [("before login.attempt", 1), ("after login.attempt", 0)])
def test_killed_while_an_attempt_was_counted(url: str, point: str, left: int) -> None:
    """What was counted stays counted though its process died before it looked at the secret."""
    with open_journal(url) as journal:
        for _ in range(FREE - 1):
            journal.logins.attempt(HERE)
    killed(start(dying, url, point, attempt, HERE))

    with open_journal(url) as journal:
        assert [journal.logins.attempt(HERE) == timedelta() for _ in range(2)] == [left == 1, False]


@pytest.mark.parametrize(("point", "forgotten"), [("before login.succeed", False), ("after login.succeed", True)])
def test_killed_while_failures_were_forgotten(url: str, point: str, forgotten: bool) -> None:
    with open_journal(url) as journal:
        for _ in range(FREE):
            journal.logins.attempt(HERE)
    killed(start(dying, url, point, succeed, HERE))

    with open_journal(url) as journal, journal.store.reading() as tx:
        assert (tx.all("select * from login_failures") == []) == forgotten
