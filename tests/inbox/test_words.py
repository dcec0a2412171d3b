"""How the pages say things."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from service.inbox import words
from service.inbox.differences import between
from tests.support.approvals import approval_of

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("time", "said"),
    [
        (timedelta(seconds=59), "less than a minute"),
        (timedelta(minutes=1), "1 minute"),
        (timedelta(hours=1, minutes=1, seconds=9), "1 hour 1 minute"),
        (timedelta(days=2, hours=3, minutes=4), "2 days 3 hours"),
        (timedelta(days=2, minutes=4), "2 days"),
        (timedelta(days=-1), "less than a minute"),
    ],
)
def test_durations_have_two_units_at_most(time: timedelta, said: str) -> None:
    assert words.duration(time) == said


@pytest.mark.parametrize(
    ("hours", "how"),
    [(None, "later"), (-1, "over"), (0, "over"), (4, "soon"), (5, "today"), (24, "today"), (25, "later")],
)
def test_an_end_is_near_in_steps(hours: int | None, how: str) -> None:
    until = None if hours is None else NOW + timedelta(hours=hours)
    assert words.urgency(until, NOW) == how


@pytest.mark.parametrize(
    ("amount", "currency", "said"),
    [(184_000, "EUR", "1,840.00 EUR"), (5, "EUR", "0.05 EUR"), (1_234_567, "JPY", "1,234,567 JPY"), (-250, "CHF", "-2.50 CHF"), (100, "", "1.00")],
)  # fmt: skip
def test_money_is_said_with_its_currency(amount: int, currency: str, said: str) -> None:
    assert words.money(amount, currency) == said


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (None, "anybody who approves, except whoever submitted it"),
        ((), "nobody"),
        (("ada",), "ada"),
        (("ada", "group:seniors"), "ada or the group seniors"),
        (("a", "b", "c"), "a, b or c"),
    ],
)
def test_who_may_decide_is_said_in_words(names: tuple[str, ...] | None, said: str) -> None:
    assert words.approvers(names) == said


def test_a_question_that_says_nothing_of_itself_has_a_title_all_the_same() -> None:
    assert words.title(approval_of({})) == "Payout for claim-0042"
    assert words.title(approval_of({}, about={"title": "Claim 0042"})) == "Claim 0042"
    assert words.title(approval_of({}, about={"title": ["no text"]})) == "Payout for claim-0042"
    assert words.title(approval_of({}, name="interrupt:ab", interrupt_id="ab")) == "Question for claim-0042"


def test_facts_have_the_amount_in_front() -> None:
    assert words.facts({"payee": "acct_1", "amount": 100, "currency": "EUR", "ok": True}) == [
        ("Amount", "1.00 EUR"),
        ("Payee", "acct_1"),
        ("Ok", "yes"),
    ]
    assert words.facts(["x"]) == [("Asked", '[\n "x"\n]')]


def test_what_changed_is_said_with_by_how_much() -> None:
    before = {"amount": 100, "currency": "EUR", "payee": "a", "gone": 1}
    after = {"amount": 250, "currency": "EUR", "payee": "b", "new": None}
    assert [(one.label, one.before, one.after, one.moved) for one in between(before, after)] == [
        ("Amount", "1.00 EUR", "2.50 EUR", "+1.50"),
        ("Payee", "a", "b", ""),
        ("Gone", "1", "nothing", ""),
    ]
    assert between(after, {**after, "amount": 200})[0].moved == "\N{MINUS SIGN}0.50"
    assert between([1], [1]) == []
