"""What Stripe answers and nobody can read: it is doubt, and never a raw error, an end of a list, or "there is none"."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from checkpointing.errors import KeyMismatch, Rejected, ToolError, Unreachable
from tests.support.canned import Canned, canned
from tools.effect import Effect
from tools.payments import pay_effect

TRANSFER: dict[str, Any] = {
    "id": "tr_1",
    "created": 1_764_500_000,
    "amount": 1840_00,
    "amount_reversed": 0,
    "currency": "eur",
    "destination": "acct_mara",
    "metadata": {"claim_id": "0042", "counterfoil_key": "k-1"},
    "reversed": False,
}
ARGUMENTS = {"claim_id": "0042", "amount": 1840_00, "currency": "EUR", "payee": "acct_mara", "key": "k-1"}
NO_LIST: list[object] = [
    [],
    None,
    {},
    "text",
    5,
    b"<html>",
    {"data": None, "has_more": False},
    {"data": [], "has_more": True},
    {"data": [TRANSFER]},
    {"data": [TRANSFER], "has_more": "no"},
    {"data": [1], "has_more": False},
]
NO_TRANSFER: list[dict[str, Any]] = [
    {"metadata": None},
    {"metadata": []},
    {"metadata": {"counterfoil_key": 5}},
    {"metadata": {"claim_id": 6}},
    {"created": "2026"},
    {"created": None},
    {"created": True},
    {"created": 10**18},
    {"created": -(10**12)},
    {"currency": None},
    {"currency": ""},
    {"amount": None},
    {"amount": "184000"},
    {"amount": 184000.0},
    {"amount": True},
    {"amount": 2**53},
    {"amount_reversed": "1"},
    {"destination": 7},
    {"id": 5},
    {"id": ""},
]


@pytest.fixture
def stripe_says() -> Iterator[Canned]:
    with canned() as told:
        yield told


@pytest.fixture
def pay(stripe_says: Canned) -> Effect:
    return pay_effect(api_key="sk_test_1", base_url=stripe_says.url)


def page(*transfers: dict[str, Any], more: bool = False) -> dict[str, Any]:
    return {"object": "list", "url": "/v1/transfers", "data": list(transfers), "has_more": more}


def everything(effect: Effect) -> list[Any]:
    assert effect.executed
    return list(effect.executed(since=None))


def looked_up(effect: Effect) -> Any:
    assert effect.find
    return effect.find(**ARGUMENTS)


def retrieved(effect: Effect) -> Any:
    assert effect.retrieve
    return effect.retrieve(executed_id="tr_1")


@pytest.mark.parametrize("ask", [everything, looked_up])
@pytest.mark.parametrize("answer", NO_LIST)
def test_an_answer_that_is_no_list_is_doubt(pay: Effect, stripe_says: Canned, answer: object, ask: Any) -> None:
    stripe_says.says(answer)

    with pytest.raises(Unreachable):
        ask(pay)


@pytest.mark.parametrize("odd", NO_TRANSFER)
def test_a_listed_transfer_that_cannot_be_read_is_doubt(pay: Effect, stripe_says: Canned, odd: dict[str, Any]) -> None:
    for _ in range(2):
        stripe_says.says(page({**TRANSFER, **odd}))
    stripe_says.says({**TRANSFER, **odd})

    for ask in (everything, looked_up, retrieved):
        with pytest.raises(Unreachable, match="cannot be read"):
            ask(pay)


@pytest.mark.parametrize("absent", ["id", "created", "amount", "currency", "metadata"])
def test_a_transfer_without_its_facts_is_doubt(pay: Effect, stripe_says: Canned, absent: str) -> None:
    stripe_says.says(page({name: value for name, value in TRANSFER.items() if name != absent}))

    with pytest.raises(Unreachable, match="cannot be read"):
        everything(pay)


@pytest.mark.parametrize("answer", [[], None, {}, 5, {**TRANSFER, "id": None}, b"<html>"])
def test_a_payment_whose_answer_cannot_be_read_is_doubt(pay: Effect, stripe_says: Canned, answer: object) -> None:
    stripe_says.says(answer)

    with pytest.raises(Unreachable):
        pay.function(**ARGUMENTS)
    assert stripe_says.asked == ["POST /v1/transfers"]


@pytest.mark.parametrize(
    ("status", "body", "meaning"),
    [
        (408, {"error": {"message": "timeout"}}, Unreachable),
        (400, {"error": 5}, Unreachable),
        (400, {"error": {"message": "no", "code": []}}, Rejected),
        (400, {"error": {"message": "\ud800", "type": "idempotency_error"}}, KeyMismatch),
    ],
)
def test_an_odd_error_is_told_like_any_other(
    pay: Effect, stripe_says: Canned, status: int, body: object, meaning: type[ToolError]
) -> None:
    stripe_says.says(body, status)

    with pytest.raises(ToolError) as raised:
        pay.function(**ARGUMENTS)
    assert type(raised.value) is meaning
    assert str(raised.value).encode()


def test_an_answer_that_is_no_json_is_not_repeated_at_length(pay: Effect, stripe_says: Canned) -> None:
    """What an error says stands in the audit, and a list broken off in the middle is long."""
    stripe_says.says(b"x" * 10_000)

    with pytest.raises(Unreachable) as raised:
        everything(pay)
    assert len(str(raised.value)) < 500


def test_a_text_that_cannot_be_stored_is_written_as_an_escape(pay: Effect, stripe_says: Canned) -> None:
    metadata = {"counterfoil_key": "k\0", "claim_id": "\udfff"}
    stripe_says.says(page({**TRANSFER, "destination": "\ud800", "metadata": metadata}))

    [found] = everything(pay)

    assert (found.outcome["payee"], found.key, found.identity) == ("\\ud800", "k\\0", "\\udfff")


def test_a_transfer_to_nobody_is_other_peoples(pay: Effect, stripe_says: Canned) -> None:
    stripe_says.says(page({**TRANSFER, "destination": None, "metadata": {}}))

    [found] = everything(pay)

    assert (found.outcome["payee"], found.key, found.identity) == (None, None, None)
    assert found.at == datetime.fromtimestamp(TRANSFER["created"], UTC)


@pytest.mark.parametrize("ids", [("tr_1", "tr_1"), ("tr_1", "tr_2", "tr_1")])
@pytest.mark.parametrize("ask", [everything, looked_up])
def test_a_page_that_is_followed_by_itself_is_not_read_for_ever(
    pay: Effect, stripe_says: Canned, ids: tuple[str, ...], ask: Any
) -> None:
    for one in ids:
        stripe_says.says(page({**TRANSFER, "id": one, "metadata": {}}, more=True))

    with pytest.raises(Unreachable, match="followed by itself"):
        ask(pay)
    assert "starting_after=tr_1" in stripe_says.asked[1]


@pytest.mark.parametrize(
    ("facts", "amount", "taken_back"),
    [
        ({"amount_reversed": 1839_99}, 1, False),
        ({"amount_reversed": 1840_00}, 1840_00, True),
        ({"reversed": True}, 1840_00, True),
    ],
)
def test_of_a_transfer_taken_back_in_part_the_rest_is_compared(
    *, pay: Effect, stripe_says: Canned, facts: dict[str, Any], amount: int, taken_back: bool
) -> None:
    stripe_says.says(page({**TRANSFER, **facts}))

    [found] = everything(pay)

    assert (found.outcome["amount"], found.taken_back) == (amount, taken_back)
