"""Effects of an agent under LangChain's HumanInTheLoopMiddleware, batched and per call, its answers recorded by the durable graph."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Interrupt

from checkpointing import Journal
from checkpointing.errors import AlreadyDecided, DecisionInvalid, EffectInDoubt, Unreachable
from graph import DurableGraph, DurableState, answer, durable, thread
from nodes import EffectTools
from tests.support.bank import Bank
from tests.support.clock import MovingClock
from tests.support.scripted import ScriptedModel, calls
from tools import Receiver, effect

THREAD = thread("chat-1", principal="intake")
ADJUSTER = thread("chat-1", principal="adjuster-17")
HELLO = {"messages": [{"role": "user", "content": "pay claim 1"}]}
PAY = ("c1", "pay", {"claim_id": "1", "amount": 5})
REMIND = ("c2", "remind", {"claim_id": "1"})
MODES = ("batched", "per_call")
ORDERS = ("effects first", "effects last")
GATED: dict[str, Any] = {"pay": True, "remind": {"allowed_decisions": ["approve", "reject"]}}


class Case:
    """An agent that may pay and remind, both under review, with what came of it."""

    def __init__(self, journal: Journal, folder: Path) -> None:
        self.journal = journal
        self.bank, self.post = Bank(folder / "bank"), Bank(folder / "post")
        self.folder = folder
        self.model: ScriptedModel

    def graph(self, *script: AIMessage, **options: Any) -> DurableGraph:
        """Make the graph of an agent that says *script*."""
        return durable(self.agent(*script, **options), self.journal)

    def agent(
        self,
        *script: AIMessage,
        mode: Any = "batched",
        order: str = "effects last",
        gated: Any = None,
        refuses: Exception | None = None,
    ) -> Any:
        """Make the agent."""

        @effect(receiver=self.bank.effect().receiver, name="remind")
        def remind(*, claim_id: str, key: str) -> dict[str, Any]:
            return self.post.execute(claim_id=claim_id, key=key)

        @effect(receiver=Receiver(), name="pay")
        def refused(*, claim_id: str, amount: int, key: str) -> dict[str, Any]:
            raise refuses or AssertionError

        self.model = ScriptedModel(script=list(script), file=self.folder / "asked")
        review: Any = HumanInTheLoopMiddleware(gated or GATED, interrupt_mode=mode)
        effects = EffectTools(self.journal, [refused if refuses else self.bank.effect(), remind])
        middleware = [effects, review] if order == "effects first" else [review, effects]
        return create_agent(self.model, middleware=middleware)


@pytest.fixture
def case(journal: Journal, tmp_path: Path) -> Case:
    return Case(journal, tmp_path)


def waiting(result: Any) -> list[Interrupt]:
    """What the run asks, in the order of the calls."""
    return sorted(result["__interrupt__"], key=lambda one: one.value.get("tool_call_id", ""))


def answers(result: Any, *decisions: dict[str, Any]) -> Command[Any]:
    """One decision a call, in whatever format the run asks: in a batch by the call's id, or where that is out of sight with the call itself."""
    asked = waiting(result)
    if "action_requests" in asked[0].value:
        calls_made = getattr(result["messages"][-1], "tool_calls", [])
        if len(calls_made) == len(decisions):
            return answer(
                asked[0], {"decisions": {call["id"]: one for call, one in zip(calls_made, decisions, strict=True)}}
            )
        return answer(asked[0], {"decisions": [echo(asked[0], at, one) for at, one in enumerate(decisions)]})
    return Command(resume={one.id: decision for one, decision in zip(asked, decisions, strict=True)})


def echo(asked: Interrupt, position: int, decision: Any) -> Any:
    """A decision that says which call it is for, as it is shown."""
    request = asked.value["action_requests"][position]
    return {"name": request["name"], "args": request["args"], **decision} if isinstance(decision, dict) else decision


def edited(**arguments: Any) -> dict[str, Any]:
    return {"type": "edit", "edited_action": {"name": "pay", "args": arguments}}


def told(result: Any) -> dict[str, str]:
    return {m.tool_call_id: str(m.content) for m in result["messages"] if isinstance(m, ToolMessage)}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("mode", MODES)
def test_what_was_approved_is_done_once_and_what_was_rejected_is_not(case: Case, mode: str, order: str) -> None:
    graph = case.graph(calls(PAY, REMIND), mode=mode, order=order)
    parked = graph.invoke(HELLO, THREAD)
    nothing_yet = (case.bank.calls, case.post.calls)
    decided = answers(parked, {"type": "approve"}, {"type": "reject", "message": "not yet"})
    result = graph.invoke(decided, ADJUSTER)
    with pytest.raises(AlreadyDecided):
        graph.invoke(decided, ADJUSTER)
    graph.invoke(HELLO, THREAD)

    assert nothing_yet == ([], [])
    assert (len(case.bank.calls), case.post.calls) == (1, [])
    assert "not yet" in told(result)["c2"]
    assert case.journal.runs.get("chat-1").state == "done"


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("mode", MODES)
def test_an_edit_changes_the_arguments_and_a_respond_takes_the_place_of_the_tool(
    case: Case, mode: str, order: str
) -> None:
    graph = case.graph(calls(PAY, ("c3", "pay", {"claim_id": "3", "amount": 3})), mode=mode, order=order)
    parked = graph.invoke(HELLO, THREAD)
    result = graph.invoke(
        answers(parked, edited(claim_id="1", amount=4), {"type": "respond", "message": "I paid it in cash"}), ADJUSTER
    )

    assert [call["amount"] for call in case.bank.calls] == [4]
    assert told(result)["c3"] == "I paid it in cash"
    assert case.journal.runs.get("chat-1").state == "done"


BAD: dict[str, Any] = {
    "a kind that is not allowed": {"type": "respond", "message": "done"},
    "an edit into another tool": {"type": "edit", "edited_action": {"name": "pay", "args": PAY[2]}},
    "an edit without a tool": {"type": "edit", "edited_action": {"args": {"claim_id": "1"}}},
    "an edit without arguments": {"type": "edit", "edited_action": {"name": "remind"}},
    "no kind": {"message": "yes"},
    "no mapping": "approve",
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
@pytest.mark.parametrize("mode", MODES)
def test_one_bad_answer_of_two_executes_nothing_and_is_not_recorded(case: Case, mode: str, bad: Any) -> None:
    graph = case.graph(calls(PAY, REMIND), mode=mode)
    parked = graph.invoke(HELLO, THREAD)
    with pytest.raises(DecisionInvalid):
        graph.invoke(answers(parked, {"type": "approve"}, bad), ADJUSTER)
    untouched = (case.bank.calls, {row.state for row in case.journal.approvals.of_thread("chat-1")})
    graph.invoke(answers(parked, {"type": "approve"}, {"type": "approve"}), ADJUSTER)

    assert untouched == ([], {"pending"})
    assert (len(case.bank.calls), len(case.post.calls)) == (1, 1)


SWITCHED: dict[str, Any] = {
    "another tool": {"name": "remind", "args": {"claim_id": "1"}},
    "another tool with the arguments of this one": {"name": "remind", "args": PAY[2]},
    "no tool": {"args": PAY[2]},
    "nothing": None,
    "an empty name": {"name": "", "args": PAY[2]},
}


@pytest.mark.parametrize("action", SWITCHED.values(), ids=SWITCHED.keys())
@pytest.mark.parametrize("mode", MODES)
def test_an_edit_into_another_tool_is_refused_before_it_is_recorded(case: Case, mode: str, action: Any) -> None:
    graph = case.graph(calls(PAY), mode=mode)
    parked = graph.invoke(HELLO, THREAD)
    with pytest.raises(DecisionInvalid):
        graph.invoke(answers(parked, {"type": "edit", "edited_action": action}), ADJUSTER)

    assert [row.state for row in case.journal.approvals.of_thread("chat-1")] == ["pending"]
    assert (case.bank.calls, case.post.calls) == ([], [])


def test_each_interrupt_takes_one_decision_and_not_a_batch(case: Case) -> None:
    graph = case.graph(calls(PAY, REMIND), mode="per_call")
    first, second = waiting(graph.invoke(HELLO, THREAD))
    meant_for_the_other = {"type": "approve", "tool_call_id": second.value["tool_call_id"]}
    for value in ({"decisions": [{"type": "approve"}]}, [{"type": "approve"}], {"c1": {}}, meant_for_the_other):
        with pytest.raises(DecisionInvalid):
            graph.invoke(Command(resume={second.id: {"type": "approve"}, first.id: value}), ADJUSTER)

    assert {row.state for row in case.journal.approvals.of_thread("chat-1")} == {"pending"}
    assert (case.bank.calls, case.post.calls) == ([], [])


def test_of_two_answers_one_to_a_question_that_was_answered_nothing_is_taken(case: Case) -> None:
    graph = case.graph(calls(PAY, REMIND, ("c3", "remind", {"claim_id": "3"})), mode="per_call")
    first, second, third = waiting(graph.invoke(HELLO, THREAD))
    graph.invoke(answer(first, {"type": "reject"}), ADJUSTER)
    with pytest.raises(AlreadyDecided):
        graph.invoke(Command(resume={one.id: {"type": "approve"} for one in (third, second, first)}), ADJUSTER)

    states = {row.interrupt_id: row.state for row in case.journal.approvals.of_thread("chat-1")}
    assert states == {first.id: "decided", second.id: "pending", third.id: "pending"}
    assert (case.bank.calls, case.post.calls) == ([], [])


def test_an_edit_into_another_tool_that_was_recorded_elsewhere_executes_nothing(case: Case) -> None:
    """Recorded past the graph's check of the format; the tool itself sees that the model called another."""
    graph = case.graph(calls(PAY))
    graph.invoke(HELLO, THREAD)
    [row] = case.journal.approvals.pending()
    switched: Any = {"type": "edit", "edited_action": {"name": "remind", "args": {"claim_id": "1"}}}
    case.journal.approvals.decide(
        row.id, {"type": "respond", "value": {"decisions": [switched]}}, principal="adjuster-17"
    )
    result = graph.invoke(None, ADJUSTER)

    assert (case.bank.calls, case.post.calls) == ([], [])
    assert "Not executed" in told(result)["c1"]


@pytest.mark.parametrize("mode", MODES)
def test_a_batch_of_the_wrong_length_or_shape_is_refused(case: Case, mode: str) -> None:
    graph = case.graph(calls(PAY, REMIND), mode=mode)
    asked = waiting(graph.invoke(HELLO, THREAD))
    bad: list[Any] = [{"decisions": [{"type": "approve"}] * 3}, {"decisions": "all"}, [], "yes", None]
    for value in bad:
        with pytest.raises(DecisionInvalid):
            graph.invoke(answer(asked[0], value), ADJUSTER)

    assert case.bank.calls == []


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("mode", MODES)
def test_a_rejected_call_is_not_executed_when_the_review_changes_its_mind(case: Case, mode: str, order: str) -> None:
    asks = [True]
    gated = {"pay": {"allowed_decisions": ["approve", "reject"], "when": lambda request: asks[0]}}
    graph = case.graph(calls(PAY), mode=mode, order=order, gated=gated)
    parked = graph.invoke(HELLO, THREAD)
    asks[0] = False
    result = graph.invoke(answers(parked, {"type": "reject"}), ADJUSTER)

    assert case.bank.calls == []
    assert "reject" in told(result)["c1"]


@pytest.mark.parametrize("mode", MODES)
def test_a_call_that_was_rejected_may_be_approved_when_the_model_makes_it_again(case: Case, mode: str) -> None:
    graph = case.graph(calls(PAY), calls(PAY), mode=mode)
    parked = graph.invoke(HELLO, THREAD)
    parked = graph.invoke(answers(parked, {"type": "reject"}), ADJUSTER)
    graph.invoke(answers(parked, {"type": "approve"}), ADJUSTER)

    assert len(case.bank.calls) == 1


def test_of_reviews_at_the_same_moment_the_last_one_counts(
    opened: Callable[..., Journal], clock: MovingClock, tmp_path: Path
) -> None:
    """The clock stands; what was asked first and rejected is not taken for the last word, nor the other way round."""
    case = Case(opened(clock=clock), tmp_path)
    graph = case.graph(*[calls(PAY)] * 5)
    parked = graph.invoke(HELLO, THREAD)
    for kind in ("reject", "approve", "reject", "approve", "reject"):
        parked = graph.invoke(answers(parked, {"type": kind}), ADJUSTER)

    assert len(case.bank.executed) == 2


@pytest.mark.parametrize("mode", MODES)
def test_an_async_agent_is_reviewed_as_a_sync_one(case: Case, mode: str) -> None:
    async def story() -> Any:
        graph = case.graph(calls(PAY, REMIND), mode=mode)
        parked = await graph.ainvoke(HELLO, THREAD)
        with pytest.raises(DecisionInvalid):
            await graph.ainvoke(answers(parked, {"type": "approve"}, BAD["no kind"]), ADJUSTER)
        return await graph.ainvoke(answers(parked, edited(claim_id="1", amount=4), {"type": "reject"}), ADJUSTER)

    result = asyncio.run(story())

    assert ([call["amount"] for call in case.bank.calls], case.post.calls) == ([4], [])
    assert "rejected" in told(result)["c2"]
    assert case.journal.runs.get("chat-1").state == "done"


@pytest.mark.parametrize("mode", MODES)
def test_of_two_equal_calls_the_approved_one_is_executed(case: Case, mode: str) -> None:
    graph = case.graph(calls(PAY, ("c2", *PAY[1:])), mode=mode)
    parked = graph.invoke(HELLO, THREAD)
    result = graph.invoke(answers(parked, {"type": "reject"}, {"type": "approve"}), ADJUSTER)

    assert len(case.bank.calls) == 1
    assert "rejected" in told(result)["c1"]


def test_answered_one_at_a_time_each_call_is_executed_once(case: Case) -> None:
    graph = case.graph(calls(PAY, REMIND), mode="per_call")
    first, second = waiting(graph.invoke(HELLO, THREAD))
    parked = graph.invoke(answer(second, {"type": "approve"}), ADJUSTER)
    after_one = (len(case.bank.calls), len(case.post.calls))
    graph.invoke(answer(first, {"type": "approve"}), ADJUSTER)

    assert [one.id for one in waiting(parked)] == [first.id]
    assert after_one == (0, 1)
    assert (len(case.bank.calls), len(case.post.calls)) == (1, 1)


@pytest.mark.parametrize("mode", MODES)
def test_an_agent_inside_a_graph_is_reviewed_as_one_alone(case: Case, mode: str) -> None:
    class State(DurableState, MessagesState):
        pass

    builder = StateGraph(State)
    builder.add_node("agent", case.agent(calls(PAY, REMIND), mode=mode))
    builder.add_edge(START, "agent")
    graph = durable(builder, case.journal)
    parked = graph.invoke(HELLO, THREAD)
    with pytest.raises(DecisionInvalid):
        graph.invoke(answers(parked, {"type": "approve"}, BAD["an edit into another tool"]), ADJUSTER)
    result = graph.invoke(answers(parked, {"type": "reject"}, {"type": "approve"}), ADJUSTER)

    assert (case.bank.calls, len(case.post.calls)) == ([], 1)
    assert "rejected" in told(result)["c1"]
    assert case.journal.runs.get("chat-1").state == "done"


def test_doubt_beside_a_question_waits_for_both(case: Case) -> None:
    """One call of the message is in doubt, the other waits for a review: a person says what happened, then one decides."""
    graph = case.graph(calls(PAY, REMIND), mode="per_call", gated={"remind": True}, refuses=Unreachable("no answer"))
    with pytest.raises(EffectInDoubt) as doubt:
        graph.invoke(HELLO, THREAD)
    case.journal.effects.resolve(doubt.value.key, happened=True, outcome={"paid": 5}, principal="operator")
    parked = graph.invoke(None, ADJUSTER)
    result = graph.invoke(answers(parked, {"type": "approve"}), ADJUSTER)

    assert told(result)["c1"] == '{"paid": 5}'
    assert len(case.post.calls) == 1
    assert case.journal.runs.get("chat-1").state == "done"


@pytest.mark.parametrize("mode", MODES)
def test_a_later_no_does_not_deny_what_was_executed(case: Case, mode: str) -> None:
    """Time travel to the first call, which was approved, after the same call was rejected: it happened, and that is what is told."""
    graph = case.graph(calls(PAY), calls(PAY), mode=mode)
    parked = graph.invoke(HELLO, THREAD)
    parked = graph.invoke(answers(parked, {"type": "approve"}), ADJUSTER)
    graph.invoke(answers(parked, {"type": "reject"}), ADJUSTER)
    first = [snapshot for snapshot in graph.get_state_history(THREAD) if "tools" in snapshot.next][-1]
    resume = {one.id: {"type": "approve"} for one in first.interrupts}
    result = graph.compiled.invoke(Command(resume=resume) if resume else None, first.config)

    assert len(case.bank.calls) == 1
    assert '"paid": 5' in told(result)["c1"]
