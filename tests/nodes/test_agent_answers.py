"""Answers to LangChain's HumanInTheLoopMiddleware about several calls: each decision says which call it is for, or nothing is taken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from checkpointing import Journal
from checkpointing.errors import DecisionInvalid
from graph import DurableGraph, DurableState, answer, durable, thread
from nodes import EffectTools
from nodes.middleware import EffectAgentState
from tests.support.bank import Bank
from tests.support.scripted import ScriptedModel, calls
from tools import effect

THREAD = thread("chat-1", principal="intake")
ADJUSTER = thread("chat-1", principal="adjuster-17")
HELLO = {"messages": [{"role": "user", "content": "pay claim 1"}]}
PAY: dict[str, Any] = {"claim_id": "1", "amount": 5}
REMIND: dict[str, Any] = {"claim_id": "1"}
YES, NO = {"type": "approve"}, {"type": "reject"}
PAY_SHOWN, REMIND_SHOWN = {"name": "pay", "args": PAY}, {"name": "remind", "args": REMIND}

Call = tuple[str, str, dict[str, Any]]


class Desk:
    """An agent that may pay and remind under a batched review, asked about, with what came of it."""

    def __init__(self, journal: Journal, folder: Path) -> None:
        self.journal, self.folder = journal, folder
        self.bank, self.post = Bank(folder / "bank"), Bank(folder / "post")
        self.graph: DurableGraph
        self.asked: Any

    def agent(self, *made: Call, gated: Any = None, effects: bool = True) -> Any:
        """Make the agent, which makes these calls in one message; without *effects* nothing gives them ids of their own."""

        @effect(receiver=self.bank.effect().receiver, name="remind")
        def remind(*, claim_id: str, key: str) -> dict[str, Any]:
            return self.post.execute(claim_id=claim_id, key=key)

        @tool
        def look_up(claim_id: str) -> str:
            """Look the claim up."""
            (self.folder / "looked").write_text(claim_id)
            return "found"

        @tool
        def close(claim_id: str) -> str:
            """Close the claim."""
            (self.folder / "closed").write_text(claim_id)
            return "closed"

        model = ScriptedModel(script=[calls(*made)], file=self.folder / "asked")
        review: Any = HumanInTheLoopMiddleware(gated or {"pay": True, "remind": True})
        given = [EffectTools(self.journal, [self.bank.effect(), remind])] if effects else []
        return create_agent(model, tools=[look_up, close], middleware=[review, *given], state_schema=EffectAgentState)

    def ask(self, *made: Call, inside: bool = False, **options: Any) -> None:
        """Park the run at the question about these calls."""
        agent = self.agent(*made, **options)
        self.graph = durable(around(agent) if inside else agent, self.journal)
        [self.asked] = self.graph.invoke(HELLO, THREAD)["__interrupt__"]

    def answer(self, decisions: Any) -> Any:
        """Answer, and return the state."""
        return self.graph.invoke(answer(self.asked, {"decisions": decisions}), ADJUSTER)

    def refuse(self, decisions: Any, match: str) -> None:
        """See the answer refused, nothing recorded and nothing executed."""
        with pytest.raises(DecisionInvalid, match=match):
            self.answer(decisions)
        assert [row.state for row in self.journal.approvals.of_thread("chat-1")] == ["pending"]
        assert (self.bank.calls, self.post.calls) == ([], [])

    @property
    def recorded(self) -> Any:
        [row] = self.journal.approvals.of_thread("chat-1")
        return row.decision["value"] if row.decision else None


def around(agent: Any) -> Any:
    class State(DurableState, MessagesState):
        pass

    builder = StateGraph(State)
    builder.add_node("agent", agent)
    builder.add_edge(START, "agent")
    return builder


@pytest.fixture
def desk(journal: Journal, tmp_path: Path) -> Desk:
    return Desk(journal, tmp_path)


@pytest.fixture
def asked(desk: Desk) -> Desk:
    """Asked about a payment and a reminder."""
    desk.ask(("c1", "pay", PAY), ("c2", "remind", REMIND))
    return desk


def told(result: Any) -> dict[str, str]:
    return {m.tool_call_id: str(m.content) for m in result["messages"] if isinstance(m, ToolMessage)}


def test_a_list_by_position_about_several_calls_is_refused_and_shows_both_forms(asked: Desk) -> None:
    asked.refuse([NO, YES], match=r"\{'decisions': \{'c1': \{\.\.\.\}, 'c2': .*'name': 'remind', 'args'")


def test_keyed_by_call_the_order_does_not_matter_and_what_is_recorded_is_the_middlewares_own_form(asked: Desk) -> None:
    result = asked.answer({"c2": YES, "c1": {**NO, "message": "not this one"}})

    assert asked.recorded == {"decisions": [{"type": "reject", "message": "not this one"}, {"type": "approve"}]}
    assert (asked.bank.calls, len(asked.post.calls)) == ([], 1)
    assert "not this one" in told(result)["c1"]


KEYED_WRONG = {
    "one is missing": ({"c1": YES}, "nothing about call 'c2'"),
    "one too many": ({"c1": YES, "c2": YES, "c3": YES}, "not about call 'c3'"),
    "none": ({}, "'c1', 'c2'"),
    "an edit into another tool": ({"c1": {"type": "edit", "edited_action": REMIND_SHOWN}, "c2": YES}, "'remind'"),
    "an edit without a tool": ({"c1": {"type": "edit", "edited_action": {"args": PAY}}, "c2": YES}, "None"),
    "a decision about another call": ({"c1": {**YES, "tool_call_id": "c2"}, "c2": YES}, "about call 'c2'"),
    "one call twice": ([{**YES, "tool_call_id": "c1"}, {**NO, "tool_call_id": "c1"}], "twice"),
    "a call that was not asked about": (
        [{**YES, "tool_call_id": "c1"}, {**YES, "tool_call_id": "c9"}],
        "nothing about call 'c2'",
    ),
    "an echo of another call": ({"c1": {**YES, **REMIND_SHOWN}, "c2": YES}, "is for 'remind'"),
}


@pytest.mark.parametrize(("decisions", "match"), KEYED_WRONG.values(), ids=KEYED_WRONG.keys())
def test_keyed_answers_are_for_every_call_and_no_other(asked: Desk, decisions: Any, match: str) -> None:
    asked.refuse(decisions, match=match)


def test_keyed_answers_about_an_agent_inside_a_graph(desk: Desk) -> None:
    desk.ask(("c1", "pay", PAY), ("c2", "remind", REMIND), inside=True)
    desk.answer({"c2": YES, "c1": NO})

    assert (desk.bank.calls, len(desk.post.calls)) == ([], 1)


def test_two_agents_that_ask_at_once_are_told_apart_though_their_calls_have_the_same_ids(desk: Desk) -> None:
    class State(DurableState):
        left: list[Any]
        right: list[Any]

    def node(name: str, *made: Call) -> Any:
        agent = desk.agent(*made, effects=False, gated={"look_up": True, "close": True})
        return lambda _: {name: agent.invoke(HELLO)["messages"]}

    builder: Any = StateGraph(State)
    builder.add_node("left", node("left", ("c1", "look_up", {"claim_id": "1"}), ("c2", "close", {"claim_id": "1"})))
    builder.add_node("right", node("right", ("c1", "close", {"claim_id": "2"}), ("c2", "look_up", {"claim_id": "2"})))
    builder.add_edge(START, "left")
    builder.add_edge(START, "right")
    graph = durable(builder, desk.journal)
    asked = graph.invoke({}, THREAD)["__interrupt__"]
    decisions: Any = {"c1": YES, "c2": NO}
    graph.invoke(Command(resume={one.id: {"decisions": decisions} for one in asked}), ADJUSTER)

    assert (desk.folder / "looked").read_text() == "1"
    assert (desk.folder / "closed").read_text() == "2"


def test_calls_that_are_not_reviewed_are_not_asked_for(desk: Desk) -> None:
    desk.ask(("c0", "look_up", {"claim_id": "1"}), ("c1", "pay", PAY), ("c2", "remind", REMIND))
    desk.refuse({"c0": YES, "c1": YES, "c2": YES}, match="not about call 'c0'")
    desk.answer({"c1": NO, "c2": YES})

    assert (desk.bank.calls, len(desk.post.calls)) == ([], 1)


def test_keys_tell_equal_calls_apart(desk: Desk) -> None:
    desk.ask(("c1", "pay", PAY), ("c2", "pay", PAY))
    result = desk.answer({"c2": NO, "c1": YES})

    assert len(desk.bank.calls) == 1
    assert "rejected" in told(result)["c2"]


def test_ids_that_two_calls_have_tell_nothing(desk: Desk) -> None:
    """The middleware keeps an edit by the call's id: it would reach both calls, and so make another tool of one."""
    looked: Any = {"name": "look_up", "args": {"claim_id": "1"}}
    closed: Any = {"name": "close", "args": {"claim_id": "1"}}
    gated = {"look_up": True, "close": True}
    desk.ask(("c1", "look_up", looked["args"]), ("c1", "close", closed["args"]), gated=gated, effects=False)
    desk.refuse({"c1": YES}, match="ids do not tell")
    desk.refuse([{**looked, "type": "edit", "edited_action": looked}, {**closed, **YES}], match="no id of its own")
    desk.answer([{**looked, **NO}, {**closed, **NO}])

    assert not [name for name in ("looked", "closed") if (desk.folder / name).exists()]


def test_of_equal_calls_of_which_one_is_reviewed_the_ids_tell_nothing(desk: Desk) -> None:
    def second(request: Any) -> bool:
        return bool(request.tool_call["id"] == "c2")

    gated = {"pay": {"allowed_decisions": ["approve", "reject"], "when": second}, "remind": True}
    desk.ask(("c1", "pay", PAY), ("c2", "pay", PAY), ("c3", "remind", REMIND), gated=gated)

    desk.refuse({"c1": NO, "c3": NO}, match="ids do not tell")
    desk.refuse({"c2": NO, "c3": NO}, match="ids do not tell")


def test_decisions_that_echo_their_calls_may_come_in_any_order(asked: Desk) -> None:
    asked.answer([{**REMIND_SHOWN, **YES}, {**PAY_SHOWN, **NO}])

    assert asked.recorded == {"decisions": [NO, YES]}
    assert (asked.bank.calls, len(asked.post.calls)) == ([], 1)


def test_decisions_that_carry_the_id_of_their_call_may_come_in_any_order(asked: Desk) -> None:
    asked.answer([{**YES, "tool_call_id": "c2"}, {**NO, "tool_call_id": "c1"}])

    assert asked.recorded == {"decisions": [NO, YES]}
    assert (asked.bank.calls, len(asked.post.calls)) == ([], 1)


ECHOED_WRONG = {
    "other arguments": ([{"name": "pay", "args": {**PAY, "amount": 500}, **YES}, {**REMIND_SHOWN, **YES}], "not shown"),
    "true is not one": (
        [{"name": "pay", "args": {**PAY, "amount": True}, **YES}, {**REMIND_SHOWN, **YES}],
        "not shown",
    ),
    "one call twice": ([{**PAY_SHOWN, **YES}, {**PAY_SHOWN, **YES}], "answered already"),
    "one echoes, one does not": ([{**PAY_SHOWN, **YES}, YES], "every call"),
    "names alone": ([{"name": "pay", **YES}, {"name": "remind", **YES}], "every call"),
    "one is missing": ([{**PAY_SHOWN, **YES}], "2 calls were shown"),
    "an edit into another tool": (
        [{**PAY_SHOWN, "type": "edit", "edited_action": REMIND_SHOWN}, {**REMIND_SHOWN, **YES}],
        "'remind' of it",
    ),
}


@pytest.mark.parametrize(("decisions", "match"), ECHOED_WRONG.values(), ids=ECHOED_WRONG.keys())
def test_an_echo_is_of_exactly_one_call_that_was_shown(asked: Desk, decisions: Any, match: str) -> None:
    asked.refuse(decisions, match=match)


def test_echoes_of_equal_calls_decide_the_same_about_all_of_them(desk: Desk) -> None:
    desk.ask(("c1", "pay", PAY), ("c2", "pay", PAY), ("c3", "remind", REMIND))
    desk.refuse([{**PAY_SHOWN, **YES}, {**REMIND_SHOWN, **YES}, {**PAY_SHOWN, **NO}], match="equal calls")
    desk.answer([{**PAY_SHOWN, **NO}, {**REMIND_SHOWN, **YES}, {**PAY_SHOWN, **NO}])

    assert desk.recorded == {"decisions": [NO, NO, YES]}
    assert (desk.bank.calls, len(desk.post.calls)) == ([], 1)


@pytest.mark.parametrize("decisions", [[YES], {"c1": YES}, [{**PAY_SHOWN, **YES}]], ids=["alone", "keyed", "echoing"])
def test_about_one_call_alone_a_list_of_one_will_do(desk: Desk, decisions: Any) -> None:
    desk.ask(("c1", "pay", PAY))
    desk.refuse([NO, NO], match="every call")
    desk.refuse({"c2": YES}, match="'c1'")
    desk.refuse([{**YES, "tool_call_id": "c2"}], match="'c1'")
    desk.answer(decisions)

    assert desk.recorded == {"decisions": [YES]}
    assert len(desk.bank.calls) == 1


def test_what_was_recorded_is_understood_by_a_later_process(
    opened: Callable[..., Journal], desk: Desk, tmp_path: Path
) -> None:
    desk.ask(("c1", "pay", PAY), ("c2", "remind", REMIND))
    decisions: Any = {"c2": YES, "c1": NO}
    desk.graph.submit(answer(desk.asked, {"decisions": decisions}), ADJUSTER)
    later = Desk(opened(), tmp_path)
    durable(later.agent(), later.journal).invoke(None, ADJUSTER)

    assert (later.bank.calls, len(later.post.calls)) == ([], 1)
    assert later.journal.runs.get("chat-1").state == "done"
