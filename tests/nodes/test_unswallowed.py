"""Errors that no handler may tell a model of: each passes as a bubble, under its own name and with its own words, however its class is built."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from pydantic import BaseModel, ValidationError
from pydantic.v1 import BaseModel as OldModel
from pydantic.v1 import ValidationError as OldValidationError

from checkpointing.errors import EffectInDoubt
from nodes.unswallowed import unswallowed


class Answer(BaseModel):
    paid: int


class OldAnswer(OldModel):
    paid: int


class BuiltInItsOwnWay(Exception):
    def __new__(cls, *, code: int) -> BuiltInItsOwnWay:
        return super().__new__(cls, f"code {code}")

    def __init__(self, *, code: int) -> None:
        super().__init__(f"code {code}")


def of_a_tool(raising: Any) -> BaseException:
    with pytest.raises(GraphBubbleUp) as caught, unswallowed():
        raising()
    return caught.value


def throw(error: Exception) -> Any:
    def raising() -> None:
        raise error

    return raising


@pytest.mark.parametrize(
    ("raising", "name", "words"),
    [
        (lambda: Answer.model_validate({"paid": "much"}), "ValidationError", "paid"),
        (lambda: OldAnswer.parse_obj({"paid": "much"}), "ValidationError", "paid"),
        (b"\xff".decode, "UnicodeDecodeError", "invalid start byte"),
        (throw(BuiltInItsOwnWay(code=7)), "BuiltInItsOwnWay", "code 7"),
        (throw(OSError("the disk is full")), "OSError", "the disk is full"),
    ],
)
def test_an_error_of_any_class_passes_under_its_name(raising: Any, name: str, words: str) -> None:
    error = of_a_tool(raising)

    assert type(error).__name__ == name
    assert words in str(error)
    assert error.__cause__ is not None


@pytest.mark.parametrize("kind", [ValidationError, OldValidationError])
def test_a_bad_answer_is_not_what_a_tool_takes_for_bad_arguments(kind: type[Exception]) -> None:
    """A tool tells its model of every `ValidationError`, and the model would plan the call again."""
    model: Any = Answer.model_validate if kind is ValidationError else OldAnswer.parse_obj

    assert not isinstance(of_a_tool(lambda: model({})), kind)


def test_what_needs_a_person_is_still_that() -> None:
    error = of_a_tool(throw(EffectInDoubt("nobody knows", key="k")))

    assert isinstance(error, EffectInDoubt)
    assert error.key == "k"


def test_an_interrupt_is_not_touched() -> None:
    asks = GraphInterrupt(())

    assert of_a_tool(throw(asks)) is asks
