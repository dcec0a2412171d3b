"""Tokens: whom they let in, for how long, and what the audit has of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from checkpointing import Journal
from checkpointing.audit import ACCESS
from checkpointing.errors import InputRefused, NotAllowed, UnknownToken
from checkpointing.hashed import digest_of
from checkpointing.principals import Person
from graph import thread
from graph.asks import is_plain
from tests.support.clock import MovingClock

HOUR = timedelta(hours=1)
TABLES = ("tokens", "sessions", "audit", "login_failures")


def added(journal: Journal, **terms: Any) -> tuple[str, str]:
    """Add a token and return its id and its secret."""
    token, secret = journal.tokens.add(**{"principal": "ada", "roles": ["approver"], "by": "root", **terms})
    return token.id, secret


def test_a_token_lets_its_principal_in_with_what_was_given(journal: Journal) -> None:
    token, secret = journal.tokens.add(
        principal="ada", roles=["operator", "approver"], groups=["motor"], limit=50_000, note="for the phone", by="root"
    )

    assert journal.tokens.find(secret) == token
    assert token.person == Person("ada", frozenset({"motor"}), 50_000)
    assert (token.roles, token.created_by, token.note) == (("approver", "operator"), "root", "for the phone")
    assert (token.expires_at, token.revoked_at) == (None, None)


def test_only_the_digest_is_kept_and_the_secret_is_shown_once(journal: Journal) -> None:
    token_id, secret = added(journal)
    journal.sessions.begin(Person("ada"), ["approver"], token_digest=digest_of(secret))

    with journal.store.reading() as tx:
        stored = "".join(str(tx.all(f"select * from {table}")) for table in TABLES)  # noqa: S608  # our own names
    assert digest_of(secret) in stored
    for part in (secret, secret.removeprefix("cft_")):
        assert part not in stored + repr(journal.tokens.get(token_id))
    assert digest_of(secret) not in repr(journal.tokens.list()) + repr(journal.audit.entries(ACCESS))


def test_secrets_are_of_256_bits_and_never_the_same(journal: Journal) -> None:
    secrets = {added(journal)[1] for _ in range(20)}

    assert len(secrets) == 20
    assert {len(secret) for secret in secrets} == {len("cft_") + 43}


@pytest.mark.parametrize(
    "wrong", ["", "cft_", "nobody's", "tok_0000000000000000", "\0", "\ud800", pytest.param("x" * 100_000, id="long")]
)
def test_what_is_no_token_lets_nobody_in(journal: Journal, wrong: str) -> None:
    _, secret = added(journal)

    assert journal.tokens.find(wrong) is None
    assert journal.tokens.find(secret + wrong) is None or wrong == ""
    assert journal.tokens.find(digest_of(secret)) is None


def test_a_token_expires_by_the_clock_of_the_store(opened: Callable[..., Journal], clock: MovingClock) -> None:
    journal = opened(clock=clock)
    _, secret = added(journal, expires_in=HOUR)

    clock.move(HOUR - timedelta(milliseconds=1))
    assert journal.tokens.find(secret) is not None
    clock.move(timedelta(milliseconds=1))
    assert journal.tokens.find(secret) is None


def test_a_token_that_is_revoked_lets_nobody_in_and_the_first_stays_on_record(journal: Journal) -> None:
    token_id, secret = added(journal)
    first = journal.tokens.revoke(token_id, by="root")
    second = journal.tokens.revoke(token_id, by="grace")

    assert journal.tokens.find(secret) is None
    assert first == second == journal.tokens.get(token_id)
    assert (second.revoked_by, second.revoked_at is None) == ("root", False)
    assert [(one.event, one.actor, one.subject) for one in journal.audit.entries(ACCESS)] == [
        ("token.add", "root", token_id),
        ("token.revoke", "root", token_id),
    ]


def test_a_token_nobody_added_is_an_error(journal: Journal) -> None:
    for unknown in ("tok_0000000000000000", "", "\0", "\ud800"):
        with pytest.raises(UnknownToken, match="counterfoil token list"):
            journal.tokens.revoke(unknown, by="root")


@pytest.mark.parametrize(
    ("terms", "error"),
    [
        ({"roles": []}, InputRefused),
        ({"roles": [" "]}, InputRefused),
        ({"groups": ["motor\n"]}, InputRefused),
        ({"note": "two\nlines"}, InputRefused),
        ({"limit": -1}, InputRefused),
        ({"limit": 2**53}, InputRefused),
        ({"expires_in": timedelta()}, InputRefused),
        ({"expires_in": timedelta(days=40_000)}, InputRefused),
        ({"principal": ""}, NotAllowed),
        ({"principal": "group:motor"}, NotAllowed),
        ({"principal": "ada\0"}, NotAllowed),
        ({"principal": "ada\n"}, NotAllowed),
        ({"by": " "}, NotAllowed),
    ],
)
def test_what_cannot_be_kept_is_refused_and_leaves_nothing(
    journal: Journal, terms: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        added(journal, **terms)

    assert journal.tokens.list() == []
    assert journal.audit.entries(ACCESS) == []


def test_no_run_can_have_the_thread_id_under_which_the_audit_keeps_tokens() -> None:
    assert not is_plain(ACCESS)
    with pytest.raises(ValueError, match="thread id"):
        thread(ACCESS)


@pytest.mark.parametrize(
    ("tampering", "found"),
    [
        ("update tokens set roles = '[\"operator\"]'", "has another secret or other terms than were recorded: who may do what until when"),
        ("update tokens set principal = 'mallory'", "has another secret or other terms than were recorded: who may do what until when"),
        ("update tokens set digest = 'mine'", "has another secret or other terms than were recorded: who may do what until when"),
        ("update tokens set spend_limit = null", "has another secret or other terms than were recorded: who may do what until when"),
        ("update tokens set expires_ms = 9", "has another secret or other terms than were recorded: who may do what until when"),
        ("update tokens set revoked_ms = null, revoked_by = null", "was revoked, or is good again, otherwise than was recorded"),
        ("update tokens set revoked_ms = null", "was revoked, or is good again, otherwise than was recorded"),
        ("update tokens set id = 'tok_x'", "is in the audit and not among the tokens"),
        ("delete from tokens", "is in the audit and not among the tokens"),
        ("delete from audit where event = 'token.revoke'", "the chain ends at entry 1 and its head is 2"),
    ],
)  # fmt: skip
def test_a_token_that_was_changed_by_hand_is_found(journal: Journal, tampering: str, found: str) -> None:
    token_id, _ = added(journal, limit=5)
    journal.tokens.revoke(token_id, by="root")
    assert list(journal.audit.verify()) == []
    with journal.store.transaction("test.tamper") as tx:
        tx.all(tampering)

    assert any(fault.endswith(found) for fault in journal.audit.verify())


def test_a_token_that_was_added_by_hand_is_found(journal: Journal) -> None:
    """With no entry at all, when the audit knows of no token, and beside others that were added as they should."""
    insert = """
    insert into tokens (digest, id, principal, roles, groups, note, created_by, created_ms)
    values ('mine', 'tok_mine', 'mallory', '[]', '[]', '', 'root', 0)
    """
    with journal.store.transaction("test.tamper") as tx:
        tx.all(insert)
    assert list(journal.audit.verify()) == [f"thread {ACCESS!r}: token tok_mine is not in the audit"]

    added(journal)
    assert f"thread {ACCESS!r}: token 'tok_mine' was never recorded as added" in list(journal.audit.verify())
