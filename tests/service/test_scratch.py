"""The scratch of a reconciliation: whole lists, read a page at a time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from service import scratch as module
from service.scratch import Scratch, scratch
from tools.executed import Executed

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def empty() -> Iterator[Scratch]:
    with scratch() as made:
        yield made


def written(into: Scratch, *executed: Executed) -> None:
    list(into.add("pay", executed))


def one(number: int, key: str | None = "k", *, taken_back: bool = False) -> Executed:
    return Executed(
        f"tr_{number:03}", NOW + timedelta(seconds=number), {"id": f"tr_{number:03}"}, key, taken_back=taken_back
    )


@pytest.mark.parametrize(
    "sql", ["OURS", "BY_ID", "BY_KEY", "EARLIER_OF_KEY", "EARLIER_OF_IDENTITY", "FINDINGS", "OF_KIND"]
)
def test_no_question_walks_or_sorts_the_whole_list(empty: Scratch, sql: str) -> None:
    given = dict.fromkeys(("effect", "id", "key", "identity", "kind"), "x")
    numbers = dict.fromkeys(("at_ms", "taken_back", "limit", "after", "adopted"), 1)

    plan = [row["detail"] for row in empty._rows(f"explain query plan {getattr(module, sql)}", **given, **numbers)]

    assert plan
    assert [step for step in plan if "SCAN" in step or "B-TREE" in step or step.endswith("(effect=?)")] == []


def test_pages_are_in_the_order_of_keys_and_miss_nothing(empty: Scratch) -> None:
    written(empty, *(one(number, key=f"k{number % 7}") for number in reversed(range(250))), one(999, key=None))

    pages = list(empty.pages("pay"))

    listed = [executed for page in pages for executed in page]
    assert [len(page) for page in pages] == [100, 100, 50]
    assert listed == sorted(listed, key=lambda executed: (executed.key or "", executed.at))
    assert empty.counts("pay") == (251, 1)


def test_a_page_that_a_receiver_repeats_counts_once(empty: Scratch) -> None:
    written(empty, one(1), one(2), one(1))

    assert empty.counts("pay") == (2, 0)


def test_what_was_taken_back_does_not_come_before_what_stands(empty: Scratch) -> None:
    first, second, third = one(1, taken_back=True), one(2), one(3)
    written(empty, third, second, first)

    assert empty.by_key("pay", "k") == second
    assert (empty.earlier_of_key("pay", second), empty.earlier_of_key("pay", third)) == (None, second.id)
    assert [executed for page in empty.pages("pay") for executed in page] == [second, third, first]


def test_the_scratch_is_a_file_that_has_no_name(empty: Scratch) -> None:
    assert [row["file"] for row in empty._rows("pragma database_list")] == [""]
