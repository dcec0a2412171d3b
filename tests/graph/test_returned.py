"""What a form sends back as text is read as the kind that was shown, or refused where that leaves doubt."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpointing.errors import DecisionInvalid
from graph.returned import read_as, same

READ: list[tuple[Any, Any, Any]] = [
    ("old", "new", "new"),
    ("old", "123", "123"),
    ("old", "", ""),
    (5, "123", 123),
    (5, "-1", -1),
    (5, "0", 0),
    (5, 123, 123),
    (1.5, "0.10", 0.1),
    (1.5, "3", 3),
    (1.5, "1e3", 1000.0),
    (1.5, 2, 2),
    (True, "false", False),
    (False, "True", True),
    (True, False, False),
    (None, None, None),
    (None, "null", None),
    ({"a": 1}, {"a": "2"}, {"a": 2}),
    ({"a": 1}, '{"a": 2}', {"a": 2}),
    ({"a": {"b": True}}, '{"a": {"b": false}}', {"a": {"b": False}}),
    (["x", "y"], '["z", "y"]', ["z", "y"]),
    ([1, 2], '["3", 4, 5]', [3, 4, 5]),
    (["x"], "[]", []),
    ([], "[]", []),
    ([1, "x"], ["2", "y"], [2, "y"]),
]

REFUSED: list[tuple[Any, Any]] = [
    ("old", 123),
    ("old", None),
    (5, ""),
    (5, " 5"),
    (5, "5\n"),
    (5, "05"),
    (5, "+5"),
    (5, "-0"),
    (5, "5.0"),
    (5, "1e3"),
    (5, "1,000"),
    (5, "1_000"),
    (5, "\u0665"),
    (5, "0x10"),
    (5, 5.0),
    (5, True),
    (5, "True"),
    (5, None),
    (5, "9" * 41),
    (1.5, "NaN"),
    (1.5, "Infinity"),
    (1.5, "1e999"),
    (1.5, float("nan")),
    (1.5, "0.30000000000000000001"),
    (1.5, "1."),
    (1.5, False),
    (True, "1"),
    (True, 1),
    (True, "yes"),
    (None, "5"),
    (None, ""),
    (None, 0),
    ({"a": 1}, {"a": 1, "b": 2}),
    ({"a": 1}, {}),
    ({"a": 1}, "{'a': 1}"),
    ({"a": 1}, '{"a": 1, "a": 2}'),
    ({"a": 1.5}, '{"a": NaN}'),
    ({"a": 1}, "[1]"),
    ({"a": 1}, "[" * 100_000),
    (["x"], "x"),
    ([1, "x"], "[1]"),
    ([], "[1]"),
    ([{"a": 1}], '[{"a": 1}, {"a": 2}]'),
    ([True], '["true", "maybe"]'),
]


@pytest.mark.parametrize(("shown", "sent", "read"), READ, ids=repr)
def test_text_is_read_as_the_kind_that_was_shown(shown: Any, sent: Any, read: Any) -> None:
    found = read_as(shown, sent, "it")

    assert same(found, read)
    assert type(found) is type(read)


@pytest.mark.parametrize(("shown", "sent"), REFUSED, ids=lambda value: repr(value)[:40])
def test_what_leaves_doubt_is_refused(shown: Any, sent: Any) -> None:
    with pytest.raises(DecisionInvalid):
        read_as(shown, sent, "it")


def test_what_is_refused_is_named_by_its_place() -> None:
    with pytest.raises(
        DecisionInvalid, match=r"'amount' in entry 0 of 'lines' in the edit was a whole number, and 'x'"
    ):
        read_as({"lines": [{"amount": 1}]}, {"lines": [{"amount": "x"}]}, "the edit")


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


def as_text(value: Any) -> str:
    """A value as a form writes it into a text field."""
    return value if isinstance(value, str) else json.dumps(value)


@given(VALUES)
def test_what_comes_back_unchanged_is_what_was_shown(shown: Any) -> None:
    sent = {key: as_text(value) for key, value in shown.items()} if isinstance(shown, dict) else as_text(shown)

    assert same(read_as(shown, sent, "it"), shown)


@given(VALUES, VALUES)
def test_what_is_read_is_of_the_kind_that_was_shown(shown: Any, sent: Any) -> None:
    try:
        read = read_as(shown, sent, "it")
    except DecisionInvalid:
        return

    assert isinstance(read, bool) == isinstance(shown, bool)
    assert isinstance(read, type(shown)) or (isinstance(shown, float) and isinstance(read, int))


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (1, 1.0, True),
        (1, True, False),
        ({"a": [1]}, {"a": [True]}, False),
        ({"a": 1}, {"a": 1, "b": 1}, False),
        ([1], [1, 1], False),
        ("1", 1, False),
        ("ab", ["a", "b"], False),
        (["a", "b"], "ab", False),
    ],
)
def test_values_are_compared_as_json(one: Any, other: Any, *, alike: bool) -> None:
    assert same(one, other) is alike
