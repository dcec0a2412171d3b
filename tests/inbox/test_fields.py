"""The edit form: fields from a payload and its schema, and what was typed read back into the payload's kinds."""

from __future__ import annotations

from typing import Any

import pytest

from checkpointing import Approval
from service.inbox.forms import Field, fields, read
from tests.inbox.pages import Pages
from tests.support.approvals import approval_of


def form(payload: Any, edits: dict[str, Any] | None = None, *, amount_in: str | None = None) -> list[Field]:
    return fields(approval_of(payload, edits=edits, amount_in=amount_in))


def typed(payload: Any, *given: str, edits: dict[str, Any] | None = None) -> tuple[Any, str]:
    """Return what becomes of the payload with these texts in its fields, and the first error."""
    approval: Approval = approval_of(payload, edits=edits)
    made, back = read(approval, {f"field.{place}": text for place, text in enumerate(given)})
    return made, next((field.error for field in back if field.error), "")


@pytest.mark.parametrize(
    ("shown", "kind", "text"),
    [
        (True, "boolean", "true"),
        (3, "integer", "3"),
        (0.5, "number", "0.5"),
        ("words", "text", "words"),
        (None, "json", "null"),
        ([1, 2], "json", "[\n 1,\n 2\n]"),
        ({}, "json", "{}"),
    ],
)
def test_each_kind_of_value_has_its_field(shown: Any, kind: str, text: str) -> None:
    [field] = form({"it": shown})
    assert (field.kind, field.typed, field.label) == (kind, text, "It")


def test_an_amount_is_money_where_the_payload_names_its_currency_or_the_approval_says_so() -> None:
    assert form({"amount": 184_000})[0].kind == "integer"
    [amount, _] = form({"amount": 184_000, "currency": "EUR"})
    assert (amount.kind, amount.typed, amount.currency) == ("money", "1840.00", "EUR")
    assert form({"sum": 184_000}, amount_in="sum")[0].kind == "money"
    assert form({"amount": True, "currency": "EUR"})[0].kind == "boolean"


@pytest.mark.parametrize(("currency", "minor", "text"), [("EUR", 5, "0.05"), ("JPY", 1840, "1840"), ("KWD", 1840, "1.840"), ("CHF", -250, "-2.50")])  # fmt: skip
def test_amounts_have_the_decimals_of_their_currency(currency: str, minor: int, text: str) -> None:
    payload = {"amount": minor, "currency": currency}
    assert form(payload)[0].typed == text
    assert typed(payload, text) == (payload, "")


@pytest.mark.parametrize(
    ("text", "minor"),
    [("1840", 184_000), ("1840.5", 184_050), ("1,840.50", 184_050), (" 1840.50 ", 184_050), ("EUR 1840", 184_000), ("1840 EUR", 184_000), ("0", 0)],
)  # fmt: skip
def test_amounts_are_read_as_people_write_them(text: str, minor: int) -> None:
    assert typed({"amount": 1, "currency": "EUR"}, text) == ({"amount": minor, "currency": "EUR"}, "")


@pytest.mark.parametrize("text", ["", "1.840,50", "18,40", "1840.505", "1e3", "0x10", "١٨٤٠", "12 34", "1840.", "--1", "9" * 30, "NaN", "1_000"])  # fmt: skip
def test_what_is_no_amount_for_certain_is_not_guessed(text: str) -> None:
    made, error = typed({"amount": 1, "currency": "EUR"}, text)
    assert error
    assert made["amount"] == 1


@pytest.mark.parametrize(
    ("shown", "text", "value"),
    [(3, "4", 4), (3, "1,000", 1000), (0.5, "2", 2.0), (0.5, "0.50", 0.5), (True, "false", False), ("a", "b\r\nc", "b\nc"), (None, '{"a": 1}', {"a": 1}), ([1], "[]", [])],
)  # fmt: skip
def test_what_is_typed_keeps_the_kind(shown: Any, text: str, value: Any) -> None:
    made, error = typed({"it": shown}, text)
    assert (made, error) == ({"it": value}, "")
    assert type(made["it"]) is type(value)


@pytest.mark.parametrize(("shown", "text"), [(3, "3.5"), (3, "three"), (3, "9" * 17), (0.5, "nan"), (0.5, "inf"), (0.5, "half"), ([1], "[1"), (None, "")])  # fmt: skip
def test_what_cannot_be_read_is_said(shown: Any, text: str) -> None:
    made, error = typed({"it": shown}, text)
    assert error
    assert made == {"it": shown}


def test_a_fixed_value_stays_whatever_is_sent() -> None:
    edits = {"properties": {"payee": {"const": "acct_1"}}}
    assert form({"payee": "acct_1"}, edits)[0].kind == "fixed"
    assert typed({"payee": "acct_1"}, "acct_eve", edits=edits) == ({"payee": "acct_1"}, "")


def test_a_choice_is_one_of_those_there_are() -> None:
    edits = {"properties": {"speed": {"enum": ["now", "later"]}, "days": {"enum": [1, 2]}}}
    payload = {"speed": "now", "days": 1}
    assert [field.options for field in form(payload, edits)] == [("now", "later"), ("1", "2")]
    assert typed(payload, "later", "2", edits=edits) == ({"speed": "later", "days": 2}, "")
    assert typed(payload, "never", "2", edits=edits)[1] == "Choose one of the list."


@pytest.mark.parametrize(
    ("schema", "text", "said"),
    [
        ({"minimum": 1, "maximum": 1000}, "10.01", "Out of bounds. Between 0.01 EUR and 10.00 EUR."),
        ({"maximum": 1000}, "10.01", "Out of bounds. At most 10.00 EUR."),
        ({"minimum": 100}, "0.99", "Out of bounds. At least 1.00 EUR."),
    ],
)
def test_bounds_are_said_in_money(schema: dict[str, int], text: str, said: str) -> None:
    edits = {"properties": {"amount": schema}}
    assert typed({"amount": 500, "currency": "EUR"}, text, edits=edits)[1] == said


def test_a_mapping_in_the_payload_has_its_fields_too() -> None:
    payload = {"to": {"name": "Mara", "sum": {"amount": 100, "currency": "EUR"}}, "a.b": 1}
    edits = {"properties": {"to": {"properties": {"name": {"maxLength": 5}}}}}
    assert [(field.label, field.kind) for field in form(payload, edits)] == [
        ("To, Name", "text"),
        ("To, Sum, Amount", "money"),
        ("To, Sum, Currency", "text"),
        ("A.b", "integer"),
    ]
    made, error = typed(payload, "Mo", "2.00", "EUR", "2", edits=edits)
    assert (made, error) == ({"to": {"name": "Mo", "sum": {"amount": 200, "currency": "EUR"}}, "a.b": 2}, "")
    assert "is too long" in typed(payload, "Marabelle", edits=edits)[1]


def test_a_schema_that_refers_elsewhere_is_not_fetched() -> None:
    made, error = typed({"it": 1}, "2", edits={"$ref": "http://127.0.0.1:1/never"})
    assert (made, error) == ({"it": 2}, "")


def test_what_the_schema_says_of_the_whole_is_said_above_the_form(make_inbox: Any) -> None:
    inbox: Pages = make_inbox(edits={"maxProperties": 3})
    asked = inbox.ask()
    visit = inbox.visit("ada", "approver")
    visit.get(f"/approvals/{asked.id}")
    visit.post(f"/approvals/{asked.id}", {"field.1": "2.00"}, type="edit", payload_hash=asked.payload_hash)

    assert (visit.status, "does not fit" in visit.said) == (422, True)
    assert inbox.journal.approvals.get(asked.id).state == "pending"
