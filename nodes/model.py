"""
The model node: a model is asked once a step, and its answer is recorded in the ledger like an effect's outcome.

Without the record a finished model call could be made again, because a sibling that failed in the same superstep runs the superstep again. A
crash during the call makes it again: asking twice does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from checkpointing import Journal
from checkpointing.budget import Spend
from nodes.effect import EffectNode, effect_node
from tools.effect import Effect, ToolFunction, effect
from tools.receiver import Receiver

MODEL = Receiver(repeatable=True, attempts=3, backoff=timedelta(seconds=1))
"""A model: asking again costs money and does no harm."""


def model_node(
    ask: ToolFunction | Effect,
    journal: Journal,
    *,
    arguments: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    into: str,
    name: str | None = None,
    tokens: Callable[[Mapping[str, Any]], int] | None = None,
    spent: Callable[[Mapping[str, Any], Any], Spend] | None = None,
) -> EffectNode:
    """
    Make the node that asks a model.

    Args:
        ask: a sync or async function that takes the arguments as keywords and returns JSON; it raises `Unreachable` where asking again may help.
        journal: where the answer is recorded.
        arguments: what the model is asked, from the state, as JSON.
        into: the state key that gets the answer.
        name: what the ledger calls it; by default the function's name.
        tokens: what one question may use, question and answer, from the arguments; reserved under a cap on tokens before it is asked.
        spent: what one question came to, from the arguments and what *ask* returned.

    Raises:
        TypeError: *ask* is an effect, which says these itself.
    """
    if isinstance(ask, Effect) and (tokens or spent):
        raise TypeError(f"effect {ask.name!r} says itself what it takes: @effect(tokens=..., spent=...)")
    asked = ask if isinstance(ask, Effect) else effect(receiver=MODEL, name=name, tokens=tokens, spent=spent)(ask)
    return effect_node(asked, journal, arguments=arguments, into=into)
