"""
Two processes at one token, one session, or one place that logins fail from: one revokes it, nobody comes in afterwards, and no more is tried than alone.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from functools import partial
from pathlib import Path

from checkpointing import Journal, open_journal
from checkpointing.audit import ACCESS
from checkpointing.logins import FREE
from checkpointing.tokens import Token
from graph import DurableGraph
from service.who import Doors, NotAuthenticated
from tests.support.races import FEW, Side, race
from tests.support.short_claim import claim

HERE = "address:192.0.2.1"


def whose(number: int) -> str:
    return f"adjuster-{number}"


def token(journal: Journal, number: int) -> Token:
    [found] = [one for one in journal.tokens.list() if one.principal == whose(number)]
    return found


def add(folder: Path, graph: DurableGraph, number: int) -> str:
    """Add a token for one round, and log in with it."""
    _, secret = graph.journal.tokens.add(principal=whose(number), roles=["approver"], by="root")
    _, cookie = Doors(graph.journal).log_in(secret, place=f"place-{number}")
    (folder / f"secret-{number}").write_text(f"{secret} {cookie}")
    return "added"


def revoke(by: str, graph: DurableGraph, number: int) -> str:
    """Revoke a round's token, and say who is on record for it."""
    return str(graph.journal.tokens.revoke(token(graph.journal, number).id, by=by).revoked_by)


def shut_out(folder: Path, graph: DurableGraph, number: int) -> str:
    """Revoke a round's token, and say whether anybody comes in by it afterwards."""
    revoke("root", graph, number)
    return come_in(folder, graph, number)


def come_in(folder: Path, graph: DurableGraph, number: int) -> str:
    secret, cookie = (folder / f"secret-{number}").read_text().split()
    doors = Doors(graph.journal)
    try:
        by_token = doors.visitor({"Authorization": f"Bearer {secret}"}) is not None
    except NotAuthenticated:
        by_token = False
    by_cookie = doors.visitor({}, session=cookie) is not None
    return f"{'in' if by_token else 'out'} {'in' if by_cookie else 'out'}"


def log_in(folder: Path, graph: DurableGraph, number: int) -> str:
    """Log in while the token is revoked; what began is told to the other side by a file."""
    secret, _ = (folder / f"secret-{number}").read_text().split()
    try:
        _, cookie = Doors(graph.journal).log_in(secret, place=f"place-{number}")
    except NotAuthenticated:
        return "refused"
    (folder / f"begun-{number}").write_text(cookie)
    return "begun"


def try_as_often_as_it_goes(graph: DurableGraph, number: int) -> str:
    """Attempt it `FREE` times at one place, and say how often something would have been looked at."""
    return str(sum(graph.journal.logins.attempt(f"{HERE}-{number}") == timedelta() for _ in range(FREE)))


def test_two_who_revoke_one_token_are_one_on_record(url: str, tmp_path: Path) -> None:
    prepare = partial(add, tmp_path)
    left = Side(partial(revoke, "ann"), meets="token.revoke", prepare=prepare)
    right = Side(partial(revoke, "bob"), meets="token.revoke", prepare=prepare)
    said = race(url, tmp_path, claim, left, right, FEW)

    assert set(said) == {("ann", "ann"), ("bob", "bob")}
    with open_journal(url) as journal:
        revoked = Counter(one.subject for one in journal.audit.entries(ACCESS) if one.event == "token.revoke")
        assert revoked == dict.fromkeys((one.id for one in journal.tokens.list()), 1)
        assert list(journal.audit.verify()) == []


def test_nobody_comes_in_once_a_revocation_has_returned(url: str, tmp_path: Path) -> None:
    prepare = partial(add, tmp_path)
    left = Side(partial(shut_out, tmp_path), meets="token.revoke", prepare=prepare)
    said = race(url, tmp_path, claim, left, Side(partial(come_in, tmp_path), prepare=prepare), FEW)

    assert {after for after, _ in said} == {"out out"}
    assert {"in in", "out out"} <= {meanwhile for _, meanwhile in said}
    assert "out in" not in {meanwhile for _, meanwhile in said}, "the cookie outlived the token it was looked up after"


def test_a_login_that_a_revocation_overtakes_begins_nothing_that_is_good(url: str, tmp_path: Path) -> None:
    prepare = partial(add, tmp_path)
    left = Side(partial(shut_out, tmp_path), meets="token.revoke", prepare=prepare)
    right = Side(partial(log_in, tmp_path), meets="session.begin", prepare=prepare)
    said = race(url, tmp_path, claim, left, right, FEW)

    assert set(said) == {("out out", "begun")}
    with open_journal(url) as journal:
        for number in range(FEW):
            assert Doors(journal).visitor({}, session=(tmp_path / f"begun-{number}").read_text()) is None


def test_two_processes_try_no_more_between_them_than_one_may(url: str, tmp_path: Path) -> None:
    still = timedelta()  # their clocks stand, so that nobody's wait ends
    side = Side(try_as_often_as_it_goes, meets="login.attempt", later=still)
    said = race(url, tmp_path, claim, side, side, FEW)

    assert {int(left) + int(right) for left, right in said} == {FREE}
    assert len(set(said)) > 1, "one always came first: this was no race"
