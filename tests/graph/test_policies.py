"""A misspelt policy of LangChain's HumanInTheLoopMiddleware asks nobody, so an agent that has one does not start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph

from checkpointing import Journal
from checkpointing.errors import GraphRefused
from graph import DurableState, durable
from nodes import EffectTools
from tests.support.bank import Bank
from tests.support.scripted import ScriptedModel

MODES = ("batched", "per_call")
MISSPELT: dict[str, tuple[Any, str]] = {
    "the tool": ({"pya": True}, "'pya'.*which has 'look_up', 'pay'"),
    "one tool of two": ({"pay": True, "loook_up": {"allowed_decisions": ["approve"]}}, "'loook_up'.*'look_up', 'pay'"),
    "an option": (
        {"pay": {"allowed_decisions": ["approve"], "wen": lambda _: True}},
        "'pay' has 'wen'.*'allowed_decisions', 'args_schema', 'description', 'when'",
    ),
    "a decision": ({"pay": {"allowed_decisions": ["aprove"]}}, "'pay' allows 'aprove'.*'approve', 'edit', 'reject'"),
    "one decision of two": ({"pay": {"allowed_decisions": ["approve", "rejct"]}}, "'rejct'"),
    "no list": ({"pay": {"allowed_decisions": "approve"}}, "list"),
    "no function": ({"pay": {"allowed_decisions": ["approve"], "when": "amount > 5"}}, "function"),
}


@tool
def look_up(claim_id: str) -> str:
    """Look a claim up."""
    return claim_id


def agent(journal: Journal, folder: Path, policy: Any, mode: Any) -> Any:
    """Make an agent that has the effect `pay` and the plain tool `look_up`."""
    review: Any = HumanInTheLoopMiddleware(policy, interrupt_mode=mode)
    effects = EffectTools(journal, [Bank(folder / "bank").effect()])
    model = ScriptedModel(script=[], file=folder / "asked")
    return create_agent(model, tools=[look_up], middleware=[review, effects])


def around(inner: Any) -> Any:
    class State(DurableState, MessagesState):
        pass

    builder = StateGraph(State)
    builder.add_node("adjuster", inner)
    builder.add_edge(START, "adjuster")
    return builder


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("policy", "match"), MISSPELT.values(), ids=MISSPELT.keys())
def test_an_agent_with_a_misspelt_policy_does_not_start(
    journal: Journal, tmp_path: Path, policy: Any, match: str, mode: str
) -> None:
    made = agent(journal, tmp_path, policy, mode)

    with pytest.raises(GraphRefused, match=match):
        durable(made, journal)


@pytest.mark.parametrize("mode", MODES)
def test_nor_does_a_graph_that_has_it_as_a_node(journal: Journal, tmp_path: Path, mode: str) -> None:
    with pytest.raises(GraphRefused, match="'adjuster'.*'pya'"):
        durable(around(agent(journal, tmp_path, {"pya": True}, mode)), journal)


def test_a_misspelt_key_in_place_of_the_decisions_is_refused_by_langchain_itself(
    journal: Journal, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="alowed_decisions"):
        agent(journal, tmp_path, {"pay": {"alowed_decisions": ["approve"]}}, "batched")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("inside", [False, True])
def test_a_policy_that_is_spelt_right_starts(journal: Journal, tmp_path: Path, mode: str, *, inside: bool) -> None:
    policy = {
        "pay": {"allowed_decisions": ("approve", "edit"), "description": "money", "when": lambda _: True},
        "look_up": True,
        "close": False,
    }
    made = agent(journal, tmp_path, policy, mode)

    assert durable(around(made) if inside else made, journal).compiled
