"""Whatever order decisions come in, each reaches the call it is for, or none is taken."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import ToolCall

from checkpointing.digest import canonical
from checkpointing.errors import DecisionInvalid
from graph.batches import by_position, ids_of

KINDS = ("approve", "edit", "reject", "respond")
TOOLS = st.sampled_from(["pay", "remind"])
ARGS = st.fixed_dictionaries({"claim_id": st.sampled_from(["1", "2"]), "amount": st.sampled_from([1, 1.0, True, 2])})
CALLS = st.lists(st.tuples(TOOLS, ARGS), min_size=1, max_size=5)
DICE = st.randoms(use_true_random=False)


def made(calls: list[tuple[str, dict[str, Any]]]) -> list[ToolCall]:
    return [ToolCall(name=name, args=args, id=f"c{number}") for number, (name, args) in enumerate(calls)]


def question(calls: list[ToolCall]) -> dict[str, Any]:
    """Ask about all of these calls, as the middleware does."""
    return {
        "action_requests": [{"name": call["name"], "args": call["args"], "description": "?"} for call in calls],
        "review_configs": [{"action_name": call["name"], "allowed_decisions": list(KINDS)} for call in calls],
    }


def decision(call: ToolCall, kind: str) -> dict[str, Any]:
    """A decision that tells by its words which call it was made for."""
    words = f"for {call['id']}"
    match kind:
        case "edit":
            return {"type": kind, "edited_action": {"name": call["name"], "args": {"words": words}}}
        case "approve":
            return {"type": kind}
        case _:
            return {"type": kind, "message": words}


@given(CALLS, DICE)
def test_keyed_in_any_order_each_decision_reaches_its_call(
    calls: list[tuple[str, dict[str, Any]]], dice: random.Random
) -> None:
    asked = made(calls)
    decided = [decision(call, dice.choice(KINDS)) for call in asked]
    keyed = list(zip([call["id"] for call in asked], decided, strict=True))
    dice.shuffle(keyed)

    recorded = by_position(question(asked), {"decisions": dict(keyed)}, lambda: asked, "it")

    assert recorded == {"decisions": decided}


@given(CALLS, DICE)
def test_echoing_in_any_order_each_decision_reaches_its_call_or_one_equal_to_it(
    calls: list[tuple[str, dict[str, Any]]], dice: random.Random
) -> None:
    asked = made(calls)
    kinds = {alike(call): dice.choice(KINDS) for call in asked}
    echoes = [{"name": call["name"], "args": call["args"], **decision(call, kinds[alike(call)])} for call in asked]
    dice.shuffle(echoes)
    recorded = by_position(question(asked), {"decisions": echoes}, lambda: asked, "it")["decisions"]

    assert [one["type"] for one in recorded] == [kinds[alike(call)] for call in asked]
    assert sorted(map(said, recorded)) == sorted(map(said, echoes))


def alike(call: ToolCall) -> bytes:
    """What equal calls have in common; 1 and 1.0 are the same JSON."""
    return canonical([call["name"], call["args"]])


def said(decided: dict[str, Any]) -> str:
    return str(decided.get("message") or decided.get("edited_action", ""))


@given(CALLS, st.lists(st.sampled_from(KINDS), max_size=6))
def test_a_list_that_names_no_calls_is_taken_for_one_call_only(
    calls: list[tuple[str, dict[str, Any]]], kinds: list[str]
) -> None:
    asked = made(calls)
    bare = [decision(asked[0], kind) for kind in kinds]
    try:
        by_position(question(asked), {"decisions": bare}, lambda: asked, "it")
    except DecisionInvalid:
        return

    assert len(asked) == len(bare) == 1


@given(CALLS, DICE)
def test_ids_are_told_only_where_they_are_those_of_the_calls_shown(
    calls: list[tuple[str, dict[str, Any]]], dice: random.Random
) -> None:
    """The message makes more calls than are asked about: a review asks about some of them."""
    everything = made(calls)
    asked = [call for call in everything if dice.random() < 0.6]
    found = ids_of(question(asked)["action_requests"], everything)

    assert found in (None, [call["id"] for call in asked])


def test_what_a_kind_does_not_need_is_not_recorded() -> None:
    [call] = made([("pay", {"amount": 1})])
    given_ = {**decision(call, "approve"), "name": "pay", "args": {"amount": 1}, "principal": "boss", "message": "hm"}
    recorded = by_position(question([call]), {"decisions": [given_], "more": 1}, lambda: [call], "it")

    assert recorded == {"decisions": [{"type": "approve"}]}


def test_a_call_takes_what_the_review_of_its_tool_allows_wherever_that_stands() -> None:
    calls = made([("pay", {}), ("remind", {})])
    asked = question(calls)
    asked["review_configs"] = [
        {"action_name": "remind", "allowed_decisions": ["reject"]},
        {"action_name": "pay", "allowed_decisions": ["approve"]},
    ]
    taken = {"c0": decision(calls[0], "approve"), "c1": decision(calls[1], "reject")}
    switched = {"c0": decision(calls[0], "reject"), "c1": decision(calls[1], "approve")}

    assert by_position(asked, {"decisions": taken}, lambda: calls, "it")["decisions"][0] == {"type": "approve"}
    with pytest.raises(DecisionInvalid, match="takes approve, not 'reject'"):
        by_position(asked, {"decisions": switched}, lambda: calls, "it")
