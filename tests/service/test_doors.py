"""The doors: who comes in by a token or a session, who does not, and how one logs in."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from starlette.datastructures import Headers

from checkpointing import Journal
from checkpointing.hashed import digest_of
from checkpointing.logins import FIRST, FREE
from checkpointing.principals import Person
from service.who import Doors, NotAuthenticated, TooManyLogins, Visitor, place_of
from tests.support.clock import MovingClock

ADA = Person("ada", frozenset({"motor"}), 50_000)
HERE = place_of("192.0.2.1")


def token_of(journal: Journal, person: Person = ADA, roles: tuple[str, ...] = ("approver",), **terms: Any) -> str:
    given = {"groups": person.groups, "limit": person.limit, "by": "root", **terms}
    return journal.tokens.add(principal=person.name, roles=roles, **given)[1]


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def test_a_bearer_token_lets_its_principal_in(journal: Journal) -> None:
    came = Doors(journal).visitor(bearer(token_of(journal)))

    assert came == Visitor(ADA, frozenset({"approver"}), "token")


def test_a_session_lets_in_whoever_logged_in(journal: Journal) -> None:
    secret = journal.sessions.begin(ADA, ["approver", "operator"])

    assert Doors(journal).visitor({}, session=secret) == Visitor(ADA, frozenset({"approver", "operator"}), "session")


def test_who_shows_nothing_is_nobody(journal: Journal) -> None:
    token_of(journal)

    assert Doors(journal).visitor({"X-Forwarded-User": "ada", "Remote-User": "ada", "Cookie": "x"}) is None


def test_a_session_that_is_over_is_as_good_as_none(journal: Journal) -> None:
    secret = journal.sessions.begin(ADA, ["approver"])
    journal.sessions.end(secret)
    doors = Doors(journal)

    assert doors.visitor({}, session=secret) is None
    assert doors.visitor(bearer(token_of(journal)), session=secret) is not None


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Bearer",
        "Bearer ",
        "Basic YWRhOnNlc2FtZQ==",
        "Bearer cft_nobodys",
        "Bearer tok_0000000000000000",
        "Bearer e30.e30.",
        "{secret}",
        "Token {secret}",
        "Bearer {digest}",
        "Bearer {secret} {secret}",
        "Bearer {secret},",
        "Bearer \ud800",
        "Bearer \0",
    ],
)
def test_a_bad_bearer_token_lets_nobody_in_and_is_not_repeated(journal: Journal, authorization: str) -> None:
    secret = token_of(journal)
    shown = authorization.format(secret=secret, digest=digest_of(secret))
    with pytest.raises(NotAuthenticated) as refused:
        Doors(journal).visitor({"authorization": shown}, session=journal.sessions.begin(ADA, ["approver"]))

    for word in ("cft_", digest_of(secret), "YWRh", "tok_", "e30"):
        assert word not in str(refused.value)


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
@pytest.mark.parametrize("name", ["Authorization", "authorization", "AUTHORIZATION"])
def test_the_header_and_the_scheme_are_written_in_any_case(journal: Journal, name: str, scheme: str) -> None:
    assert Doors(journal).visitor({name: f"{scheme} {token_of(journal)}"}) is not None


def test_a_token_that_is_revoked_or_expired_is_refused_at_once(
    opened: Callable[..., Journal], clock: MovingClock
) -> None:
    journal = opened(clock=clock)
    token, revoked = journal.tokens.add(principal="ada", roles=["approver"], by="root")
    expired = token_of(journal, expires_in=timedelta(hours=1))
    doors = Doors(journal)
    assert doors.visitor(bearer(revoked)) is not None
    assert doors.visitor(bearer(expired)) is not None
    journal.tokens.revoke(token.id, by="root")
    clock.move(timedelta(hours=1))

    for secret in (revoked, expired):
        with pytest.raises(NotAuthenticated, match="unknown, revoked or expired"):
            doors.visitor(bearer(secret))


def test_roles_that_are_none_here_open_nothing(journal: Journal) -> None:
    came = Doors(journal).visitor(bearer(token_of(journal, roles=("admin", "Approver", "root"))))

    assert came is not None
    assert came.roles == frozenset()
    assert not came.may("submitter", "approver", "operator", "auditor")


def test_two_people_in_one_request_are_refused(journal: Journal) -> None:
    grace = journal.sessions.begin(Person("grace"), ["operator"])
    with pytest.raises(NotAuthenticated, match="two different people, by token and by session"):
        Doors(journal).visitor(bearer(token_of(journal)), session=grace)


def test_the_token_counts_beside_a_session_of_the_same_person(journal: Journal) -> None:
    wide = journal.sessions.begin(Person("ada"), ["operator", "approver"])
    came = Doors(journal).visitor(bearer(token_of(journal)), session=wide)

    assert came == Visitor(ADA, frozenset({"approver"}), "token")


def test_a_header_that_stands_there_twice_is_refused(journal: Journal) -> None:
    mine, theirs = token_of(journal), token_of(journal, Person("grace"))
    twice = Headers(raw=[(b"authorization", f"Bearer {secret}".encode()) for secret in (mine, theirs)])

    with pytest.raises(NotAuthenticated, match="stands there twice"):
        Doors(journal).visitor(twice)


def test_a_visitor_and_the_doors_show_no_secret(journal: Journal) -> None:
    secret = token_of(journal)
    doors = Doors(journal)

    assert secret not in repr(doors) + repr(doors.visitor(bearer(secret)))


def test_a_login_begins_a_session_that_says_who_came_in(journal: Journal) -> None:
    doors = Doors(journal)
    came, cookie = doors.log_in(f" {token_of(journal)}\n", place=HERE)

    assert came == Visitor(ADA, frozenset({"approver"}), "token")
    assert doors.visitor({}, session=cookie) == Visitor(ADA, frozenset({"approver"}), "session")


def test_a_session_ends_by_a_logout_and_with_its_token(journal: Journal) -> None:
    doors = Doors(journal)
    token, secret = journal.tokens.add(principal="ada", roles=["approver"], by="root")
    cookies = [doors.log_in(secret, place=HERE)[1] for _ in range(2)]
    doors.log_out(cookies[0])
    doors.log_out(None)
    assert [doors.visitor({}, session=cookie) is None for cookie in cookies] == [True, False]
    journal.tokens.revoke(token.id, by="root")

    assert doors.visitor({}, session=cookies[1]) is None


def test_a_login_gives_a_new_cookie_and_ends_the_session_of_the_one_it_came_with(journal: Journal) -> None:
    """Whoever planted a cookie in somebody's browser is not logged in when they are."""
    doors, secret = Doors(journal), token_of(journal)
    _, planted = doors.log_in(secret, place=HERE)
    _, mine = doors.log_in(secret, place=HERE, session=planted)

    assert mine != planted
    assert doors.visitor({}, session=planted) is None
    assert doors.visitor({}, session=mine) is not None


def test_a_session_is_over_after_the_hours_that_are_set(opened: Callable[..., Journal], clock: MovingClock) -> None:
    journal = opened(clock=clock)
    doors = Doors(journal, lasting=timedelta(hours=2))
    _, cookie = doors.log_in(token_of(journal), place=HERE)
    clock.move(timedelta(hours=2, milliseconds=-1))
    assert doors.visitor({}, session=cookie) is not None
    clock.move(timedelta(milliseconds=1))

    assert doors.visitor({}, session=cookie) is None


def test_failed_logins_have_to_wait_and_a_good_one_among_them_too(
    opened: Callable[..., Journal], clock: MovingClock
) -> None:
    journal = opened(clock=clock)
    doors, secret = Doors(journal), token_of(journal)
    for _ in range(FREE):
        with pytest.raises(NotAuthenticated, match="unknown, revoked or expired"):
            doors.log_in("cft_wrong", place=HERE)
    with pytest.raises(TooManyLogins) as waits:
        doors.log_in(secret, place=HERE)
    assert (waits.value.wait, waits.value.wait_s) == (FIRST, 1)
    elsewhere, _ = doors.log_in(secret, place=place_of("192.0.2.2"))
    clock.move(FIRST)
    here, _ = doors.log_in(secret, place=HERE)

    assert elsewhere == here == Visitor(ADA, frozenset({"approver"}), "token")
    assert [journal.logins.attempt(HERE) for _ in range(FREE)] == [timedelta()] * FREE


def test_a_login_is_not_told_whether_a_token_was_ever_good(journal: Journal) -> None:
    doors = Doors(journal)
    token, revoked = journal.tokens.add(principal="ada", roles=["approver"], by="root")
    journal.tokens.revoke(token.id, by="root")
    said = set()
    for wrong in (revoked, "cft_unknown", "", token.id, "ada"):
        with pytest.raises(NotAuthenticated) as refused:
            doors.log_in(wrong, place=HERE)
        said.add(str(refused.value))
        journal.logins.succeeded(HERE)

    assert len(said) == 1


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("192.0.2.1", "address:192.0.2.1"),
        ("::ffff:192.0.2.1", "address:192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "address:2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "address:2001:db8:1:2::/64"),
        ("fe80::1%eth0", "address:fe80::/64"),
        (None, "address:unknown"),
        ("", "address:unknown"),
        ("testclient", "address:unknown"),
        ("192.0.2.1, 10.0.0.1", "address:unknown"),
    ],
)
def test_a_place_is_an_address_or_the_network_of_one(address: str | None, place: str) -> None:
    assert place_of(address) == place
