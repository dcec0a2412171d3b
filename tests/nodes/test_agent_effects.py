"""Effects as tools of a LangChain agent: one execution a call, whatever happens to the run, and what the model is told of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ToolErrorMiddleware,
    ToolRetryMiddleware,
    before_model,
)
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage, messages_to_dict
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_config
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.prebuilt import ToolNode
from langgraph.types import RetryPolicy, Send, interrupt
from pydantic import BaseModel

from checkpointing import Journal
from checkpointing.effects import Claim
from checkpointing.errors import (
    Declined,
    EffectBusy,
    EffectConflict,
    EffectInDoubt,
    GraphRefused,
    KeyMismatch,
    LeaseLost,
    Rejected,
    SlotAmbiguous,
    UnguardedEffect,
    Unreachable,
)
from checkpointing.savers import LEASE
from checkpointing.slots import Slot
from graph import DurableGraph, DurableState, durable, thread
from nodes import EffectTools, effect_tool_node
from nodes.tool_calls import step_of
from tests.support.bank import Bank
from tests.support.scripted import ScriptedModel, calls
from tools import Effect, Receiver, effect

THREAD = thread("chat-1")
HELLO = {"messages": [{"role": "user", "content": "pay claim 1"}]}
PAY = ("c1", "pay", {"claim_id": "1", "amount": 5})
NO_KEYS = Receiver()
"""A receiver that knows no keys and has no look-up: doubt takes a person."""


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank(tmp_path / "bank")


@pytest.fixture
def model_of(tmp_path: Path) -> Callable[..., ScriptedModel]:
    """Makes a model that says these lines."""

    def make(*script: AIMessage) -> ScriptedModel:
        return ScriptedModel(script=list(script), file=tmp_path / "asked")

    return make


def agent(
    journal: Journal, model: ScriptedModel, *effects: Effect, others: tuple[Any, ...] = (), **options: Any
) -> Any:
    return create_agent(model, middleware=[*others, EffectTools(journal, effects)], **options)


def told(result: Any) -> list[ToolMessage]:
    """What the model was told of its calls."""
    return [message for message in result["messages"] if isinstance(message, ToolMessage)]


def refusing(error: Exception, receiver: Receiver = NO_KEYS, seen: list[int] | None = None) -> Effect:
    """An effect whose receiver answers with *error*, after a first call that goes unanswered if `seen` says so."""

    @effect(receiver=receiver, name="pay")
    def pay(*, claim_id: str, amount: int, key: str) -> dict[str, Any]:
        if seen is not None:
            seen.append(amount)
        raise error

    return pay


def test_an_agent_pays_once_however_often_the_run_is_asked_for(
    journal: Journal, bank: Bank, model_of: Callable[..., ScriptedModel]
) -> None:
    model = model_of(calls(PAY))
    graph = durable(agent(journal, model, bank.effect()), journal)
    first = graph.invoke(HELLO, THREAD)
    again = graph.invoke(HELLO, THREAD)

    assert [message.status for message in told(first)] == ["success"]
    assert first["messages"] == again["messages"]
    assert len(bank.calls) == 1
    assert model.asked == 2
    assert journal.runs.get("chat-1").state == "done"


async def paid_by_an_async_agent(journal: Journal, bank: Bank, model: ScriptedModel) -> Any:
    @effect(receiver=NO_KEYS, name="pay")
    async def pay(*, claim_id: str, amount: int, key: str) -> dict[str, Any]:
        return bank.execute(claim_id=claim_id, amount=amount, key=key)

    return await durable(agent(journal, model, pay), journal).ainvoke(HELLO, THREAD)


def test_an_async_agent_pays_once(journal: Journal, bank: Bank, model_of: Callable[..., ScriptedModel]) -> None:
    result = asyncio.run(paid_by_an_async_agent(journal, bank, model_of(calls(PAY))))

    assert [message.status for message in told(result)] == ["success"]
    assert len(bank.calls) == 1


def test_a_tool_is_named_described_and_typed_by_its_function(journal: Journal) -> None:
    @effect(receiver=Receiver(honours_keys=True), name="remind")
    def remind(*, whom: str, times: int = 1, key: str) -> dict[str, Any]:
        """Remind somebody."""
        return {}

    [tool] = EffectTools(journal, [remind]).tools
    schema = tool.tool_call_schema.model_json_schema()  # type: ignore[union-attr]

    assert (tool.name, tool.description) == ("remind", "Remind somebody.")
    assert schema["properties"].keys() == {"whom", "times"}
    assert schema["required"] == ["whom"]


def test_what_cannot_be_a_tool_is_refused(journal: Journal, bank: Bank) -> None:
    @effect(receiver=NO_KEYS, name="odd")
    def odd(*, runtime: str, key: str) -> dict[str, Any]:
        return {}

    plain: Any = bank.execute
    for effects in ([odd], [bank.effect(), bank.effect()], [plain]):
        with pytest.raises(TypeError):
            EffectTools(journal, effects)


def test_wrong_arguments_are_answered_and_nothing_is_claimed(
    journal: Journal, bank: Bank, model_of: Callable[..., ScriptedModel]
) -> None:
    wrong = calls(
        ("c1", "pay", {"claim_id": "1", "amount": "much"}),
        ("c2", "pay", {"claim_id": "1", "amount": 5, "currency": "EUR"}),
        ("c3", "pay", {"claim_id": "1", "amount": 2**60}),
        ("c4", "pay", {"claim_id": "1"}),
    )
    graph = durable(agent(journal, model_of(wrong), bank.effect()), journal)
    result = graph.invoke(HELLO, THREAD)

    assert [message.status for message in told(result)] == ["error"] * 4
    assert [record for record in journal.effects.list() if record.effect == "pay"] == []
    assert bank.calls == []


def test_two_real_reminders_are_both_sent(journal: Journal, bank: Bank, model_of: Callable[..., ScriptedModel]) -> None:
    """Call ids repeat from message to message, as some providers do, and in one message two calls have equal arguments."""
    twice = calls(PAY, ("c2", *PAY[1:]))
    graph = durable(agent(journal, model_of(twice, calls(PAY)), bank.effect()), journal)
    graph.invoke(HELLO, THREAD)

    assert len(bank.executed) == 3


def test_a_declined_payment_is_told_and_recorded(journal: Journal, model_of: Callable[..., ScriptedModel]) -> None:
    graph = durable(agent(journal, model_of(calls(PAY)), refusing(Declined("account closed"))), journal)
    [message] = told(graph.invoke(HELLO, THREAD))

    assert (message.status, message.content) == ("error", "Declined: account closed")
    assert [r.outcome for r in journal.effects.list() if r.effect == "pay"] == [{"declined": "account closed"}]
    assert journal.runs.get("chat-1").state == "done"


def test_a_rejected_request_is_told_and_its_repair_is_a_new_call(
    journal: Journal, model_of: Callable[..., ScriptedModel]
) -> None:
    graph = durable(agent(journal, model_of(calls(PAY)), refusing(Rejected("no such account"))), journal)
    [message] = told(graph.invoke(HELLO, THREAD))

    assert (message.status, "no such account" in message.content) == ("error", True)
    assert [r.state for r in journal.effects.list() if r.effect == "pay"] == ["released"]
    assert journal.runs.get("chat-1").state == "done"


@pytest.mark.parametrize(
    "others",
    [
        (),
        (ToolErrorMiddleware(lambda error, request: f"it failed: {error}"),),
        (ToolRetryMiddleware(max_retries=3, initial_delay=0.0, jitter=False),),
    ],
    ids=["alone", "errors to the model", "retries"],
)
def test_an_effect_in_doubt_parks_the_run_and_the_model_is_told_nothing(
    journal: Journal, model_of: Callable[..., ScriptedModel], others: tuple[Any, ...]
) -> None:
    seen: list[int] = []
    model = model_of(calls(PAY))
    pay = refusing(RuntimeError("the line went dead"), seen=seen)
    graph = durable(agent(journal, model, pay, others=others), journal)
    with pytest.raises(RuntimeError, match="the line went dead"):
        graph.invoke(HELLO, THREAD)
    with pytest.raises(EffectInDoubt) as doubt:
        graph.invoke(None, THREAD)
    parked = journal.runs.get("chat-1")
    journal.effects.resolve(doubt.value.key, happened=True, outcome={"paid": 5}, principal="operator")
    result = graph.invoke(None, THREAD)

    assert (parked.state, parked.reason) == ("parked", "in_doubt")
    assert [message.content for message in told(result)] == ['{"paid": 5}']
    assert (seen, model.asked) == ([5], 2)


def test_a_tool_node_that_tells_the_model_every_error_does_not_tell_it_of_doubt(
    journal: Journal, bank: Bank, model_of: Callable[..., ScriptedModel]
) -> None:
    class State(DurableState, MessagesState):
        pass

    model = model_of(calls(PAY))
    builder = StateGraph(State)

    def ask(state: State) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    builder.add_node("model", ask)
    builder.add_node("tools", effect_tool_node(journal, [refusing(Exception("dead"))], handle_tool_errors=True))
    builder.add_edge(START, "model")
    builder.add_edge("model", "tools")
    graph = durable(builder, journal)
    with pytest.raises(Exception, match="^dead$"):
        graph.invoke(HELLO, THREAD)
    with pytest.raises(EffectInDoubt):
        graph.invoke(None, THREAD)

    assert journal.runs.get("chat-1").reason == "in_doubt"


def test_the_same_payment_in_the_same_words_is_answered_from_the_record(
    journal: Journal, bank: Bank, model_of: Callable[..., ScriptedModel]
) -> None:
    pay = bank.effect(once=lambda arguments: arguments["claim_id"])
    graph = durable(agent(journal, model_of(calls(PAY), calls(("c9", *PAY[1:]))), pay), journal)
    first, second = told(graph.invoke(HELLO, THREAD))

    assert first.content == second.content
    assert len(bank.calls) == 1


def test_the_same_payment_in_other_words_is_refused_with_what_is_recorded(
    journal: Journal, bank: Bank, model_of: Callable[..., ScriptedModel]
) -> None:
    pay = bank.effect(once=lambda arguments: arguments["claim_id"])
    other = calls(("c2", "pay", {"claim_id": "1", "amount": 6}))
    model = model_of(calls(PAY), other)
    graph = durable(agent(journal, model, pay), journal)
    _, second = told(graph.invoke(HELLO, THREAD))

    assert second.status == "error"
    assert model.seen[-1].content == second.content
    assert '"amount": 5' in second.content
    assert [call["amount"] for call in bank.calls] == [5]
    assert journal.runs.get("chat-1").state == "done"
    assert "effect.conflict" in [entry.event for entry in journal.audit.entries("chat-1")]
    assert list(journal.audit.verify()) == []


def test_an_edited_past_cannot_pay_something_else(
    journal: Journal, bank: Bank, model_of: Callable[..., ScriptedModel]
) -> None:
    graph = durable(agent(journal, model_of(calls(PAY)), bank.effect()), journal)
    message = graph.invoke(HELLO, THREAD)["messages"][1]
    edited = message.model_copy(
        update={"tool_calls": [{**message.tool_calls[0], "args": {"claim_id": "1", "amount": 6}}]}
    )
    before = history(graph, "tools").config
    at = graph.compiled.update_state(before, {"messages": [edited]}, as_node="model")
    with pytest.raises(EffectConflict):
        graph.compiled.invoke(None, at)

    assert [call["amount"] for call in bank.calls] == [5]


@pytest.mark.parametrize("second", [PAY[2], {"claim_id": "2", "amount": 7}], ids=["equal", "other"])
def test_two_calls_with_one_id_in_one_message_pay_once(
    journal: Journal, bank: Bank, model_of: Callable[..., ScriptedModel], second: dict[str, Any]
) -> None:
    twins = calls(PAY, ("c1", "pay", second))
    graph = durable(agent(journal, model_of(twins), bank.effect()), journal)
    result = told(graph.invoke(HELLO, THREAD))

    assert [call["amount"] for call in bank.calls] == [5]
    assert sorted(message.status for message in result) == ["error", "success"]


def test_one_message_in_two_threads_is_two_payments(
    journal: Journal, bank: Bank, model_of: Callable[..., ScriptedModel]
) -> None:
    graph = durable(agent(journal, model_of(calls(PAY, id="m1")), bank.effect()), journal)
    graph.invoke(HELLO, THREAD)
    graph.invoke(HELLO, thread("chat-2"))

    assert len(bank.executed) == 2


def history(graph: DurableGraph, node: str) -> Any:
    """Where the thread stood before *node* ran."""
    return next(snapshot for snapshot in graph.get_state_history(THREAD) if node in snapshot.next)


def test_a_fork_that_runs_the_tools_again_is_answered_from_the_record(
    journal: Journal, bank: Bank, model_of: Callable[..., ScriptedModel]
) -> None:
    graph = durable(agent(journal, model_of(calls(PAY)), bank.effect()), journal)
    graph.invoke(HELLO, THREAD)
    graph.compiled.invoke(None, history(graph, "tools").config)

    assert len(bank.calls) == 1
    assert [r.replays for r in journal.effects.list() if r.effect == "pay"] == [1]


def test_a_fork_that_runs_the_model_again_pays_again_unless_the_payment_has_an_identity(
    journal: Journal, tmp_path: Path, model_of: Callable[..., ScriptedModel]
) -> None:
    """Another answer of the model is another decision; nothing but `once=` can tell that it was meant to be the same."""
    paid = []
    for name, once in (("plain", None), ("once", lambda arguments: arguments["claim_id"])):
        bank = Bank(tmp_path / name)
        graph = durable(agent(journal, model_of(calls(PAY)), bank.effect(once=once)), journal)
        at = thread(f"chat-{name}")
        graph.invoke(HELLO, at)
        before = [s for s in graph.get_state_history(at) if any(n.endswith(("model", "before_model")) for n in s.next)][
            -1
        ]
        graph.compiled.invoke(None, before.config)
        paid.append(len(bank.executed))

    assert paid == [2, 1]


def test_an_agent_as_a_node_of_a_graph_pays_once(
    journal: Journal, bank: Bank, model_of: Callable[..., ScriptedModel]
) -> None:
    class State(DurableState, MessagesState):
        pass

    builder = StateGraph(State)
    builder.add_node("agent", agent(journal, model_of(calls(PAY)), bank.effect()))
    builder.add_edge(START, "agent")
    graph = durable(builder, journal)
    graph.invoke(HELLO, THREAD)
    graph.compiled.invoke(None, history(graph, "agent").config)

    assert journal.runs.get("chat-1").state == "done"
    assert len(bank.executed) == 2  # the fork ran the agent from its start, so its model decided anew


def test_agents_that_are_sent_to_pay_for_themselves(
    journal: Journal, bank: Bank, model_of: Callable[..., ScriptedModel]
) -> None:
    class State(DurableState, MessagesState):
        pass

    builder = StateGraph(State)
    builder.add_node("agent", agent(journal, model_of(calls(PAY)), bank.effect()))
    builder.add_conditional_edges(START, lambda state: [Send("agent", HELLO), Send("agent", HELLO)], ["agent"])
    graph = durable(builder, journal)
    graph.invoke(HELLO, THREAD)

    assert len(bank.executed) == 2


def test_a_bare_effect_is_no_tool(journal: Journal, bank: Bank, model_of: Callable[..., ScriptedModel]) -> None:
    with pytest.raises(UnguardedEffect, match="EffectTools"):
        create_agent(model_of(), tools=[bank.effect()])
    with pytest.raises(UnguardedEffect, match="EffectTools"):
        ToolNode([bank.effect()])


def test_an_effect_tool_outside_a_graph_executes_nothing(journal: Journal, bank: Bank) -> None:
    [tool] = EffectTools(journal, [bank.effect()]).tools
    with pytest.raises(UnguardedEffect):
        tool.invoke({"claim_id": "1", "amount": 5})

    assert bank.calls == []


def test_an_effect_hidden_in_a_tool_is_a_dead_letter(
    journal: Journal, bank: Bank, model_of: Callable[..., ScriptedModel]
) -> None:
    pay = bank.effect()

    def hidden(claim_id: str, amount: int) -> Any:
        """Pay."""
        return pay(claim_id=claim_id, amount=amount)

    model = model_of(calls(("c1", "hidden", PAY[2])))
    graph = durable(create_agent(model, tools=[hidden], middleware=[EffectTools(journal, [])]), journal)
    with pytest.raises(UnguardedEffect):
        graph.invoke(HELLO, THREAD)

    assert (journal.runs.get("chat-1").reason, bank.calls) == ("unguarded_effect", [])


def test_tools_with_effects_take_no_policy(journal: Journal, bank: Bank) -> None:
    class State(DurableState, MessagesState):
        pass

    builder = StateGraph(State)
    builder.add_node("tools", effect_tool_node(journal, [bank.effect()]), retry_policy=RetryPolicy())
    builder.add_edge(START, "tools")
    with pytest.raises(GraphRefused, match="policy"):
        durable(builder, journal)


def test_an_agent_with_a_checkpointer_of_its_own_is_refused(
    journal: Journal, opened: Callable[..., Journal], bank: Bank, model_of: Callable[..., ScriptedModel]
) -> None:
    with pytest.raises(GraphRefused, match="checkpointer"):
        durable(agent(journal, model_of(), bank.effect(), checkpointer=InMemorySaver()), journal)


def test_an_agent_without_the_middleware_is_refused(journal: Journal, model_of: Callable[..., ScriptedModel]) -> None:
    with pytest.raises(GraphRefused, match="EffectTools"):
        durable(create_agent(model_of()), journal)


@pytest.mark.parametrize("second", [PAY[2], {"claim_id": "2", "amount": 7}], ids=["equal", "other"])
def test_a_tool_node_refuses_the_second_of_two_calls_with_one_id(
    journal: Journal, bank: Bank, second: dict[str, Any]
) -> None:
    class State(DurableState, MessagesState):
        pass

    builder = StateGraph(State)
    builder.add_node("tools", effect_tool_node(journal, [bank.effect()]))
    builder.add_edge(START, "tools")
    twins = calls(PAY, ("c1", "pay", second), id="m1")
    result = durable(builder, journal).invoke({"messages": [twins]}, THREAD)

    assert [call["amount"] for call in bank.calls] == [5]
    assert sorted(message.status for message in told(result)) == ["error", "success"]


def test_a_used_message_id_names_no_second_payment(
    journal: Journal, bank: Bank, model_of: Callable[..., ScriptedModel]
) -> None:
    """A server that counts its answers from one would have its second answer take the place of the first."""
    graph = durable(agent(journal, model_of(calls(PAY, id="m1"), calls(PAY, id="m1")), bank.effect()), journal)
    result = graph.invoke(HELLO, THREAD)

    assert len(bank.executed) == 2
    assert len({message.id for message in result["messages"]}) == len(result["messages"]) == 6


@before_model
def forgets(state: Any, runtime: Any) -> dict[str, Any] | None:
    """Keep nothing but the latest question."""
    latest = state["messages"][-1]
    return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), latest]} if isinstance(latest, HumanMessage) else None


@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "not recorded"])
@pytest.mark.parametrize("amount", [5, 7], ids=["equal", "other"])
def test_a_used_message_id_that_the_conversation_has_forgotten_names_no_second_payment(
    journal: Journal, bank: Bank, model_of: Callable[..., ScriptedModel], amount: int, recorded: bool
) -> None:
    """A server that counts its answers from one at every conversation, and a middleware that trims."""
    model = model_of(calls(PAY, id="m1"), AIMessage("paid", id="m2"))
    middleware = [forgets, EffectTools(journal, [bank.effect()], record_model=recorded)]
    graph = durable(create_agent(model, middleware=middleware), journal, turns=True)
    for turn, said in (("first", PAY), ("second", ("c1", "pay", {**PAY[2], "amount": amount}))):
        model.script[0] = calls(said, id="m1")
        result = graph.invoke(HELLO, thread("chat-1", submission=turn))

    assert [call["amount"] for call in bank.executed] == [5, amount]
    assert len(result["messages"]) == 4
    assert journal.runs.get("chat-1").state == "done"


def test_the_same_message_met_later_is_ambiguous_and_pays_nothing(journal: Journal, bank: Bank) -> None:
    """Two agents whose models count from one: without ids of their own, their calls cannot be told apart."""

    class State(DurableState, MessagesState):
        pass

    builder = StateGraph(State)
    builder.add_node("one", effect_tool_node(journal, [bank.effect()]))
    builder.add_node("other", effect_tool_node(journal, [bank.effect()]))
    builder.add_edge(START, "one")
    builder.add_edge("one", "other")
    with pytest.raises(SlotAmbiguous):
        durable(builder, journal).invoke({"messages": [calls(PAY, id="m1")]}, THREAD)

    assert len(bank.calls) == 1


def test_a_message_without_an_id_pays_nothing(journal: Journal, bank: Bank) -> None:
    class State(DurableState):
        messages: list[Any]

    builder = StateGraph(State)
    builder.add_node("tools", effect_tool_node(journal, [bank.effect()]))
    builder.add_edge(START, "tools")
    with pytest.raises(GraphRefused, match="add_messages"):
        durable(builder, journal).invoke({"messages": [calls(PAY)]}, THREAD)

    assert bank.calls == []


class Fails(AgentMiddleware[Any, Any, Any]):
    """Lets the tool run and then fails, as a process would that is killed there."""

    def __init__(self) -> None:
        super().__init__()
        self.fails = True

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        result = handler(request)
        if self.fails:
            raise RuntimeError("killed")
        return result


def interrupted(journal: Journal, model: ScriptedModel, pay: Effect) -> Any:
    """Leave a call without an answer, then give the conversation new input, past the durable graph."""
    fails = Fails()
    graph = durable(agent(journal, model, pay, others=(fails,)), journal)
    with pytest.raises(RuntimeError):
        graph.invoke(HELLO, THREAD)
    fails.fails = False
    return graph.compiled.invoke({"messages": [HumanMessage("and?")]}, THREAD)


def check_whole(model: ScriptedModel) -> None:
    """The conversation the model was shown has an answer right after every call."""
    kinds = [message.type for message in model.seen]
    assert kinds == ["human", "ai", "tool", "human"]


def test_a_call_left_without_an_answer_is_told_its_recorded_outcome(
    journal: Journal, bank: Bank, model_of: Callable[..., ScriptedModel]
) -> None:
    model = model_of(calls(PAY))
    [message] = told(interrupted(journal, model, bank.effect()))

    assert message.status == "success"
    assert json.loads(str(message.content))["paid"] == 5
    assert len(bank.calls) == 1
    check_whole(model)


def test_a_call_left_in_doubt_is_told_to_be_so(journal: Journal, model_of: Callable[..., ScriptedModel]) -> None:
    model = model_of(calls(PAY))
    [message] = told(interrupted(journal, model, refusing(RuntimeError("dead"))))

    assert "not known whether this happened" in message.content
    check_whole(model)


def test_a_call_that_was_never_claimed_is_told_not_executed(
    journal: Journal, bank: Bank, model_of: Callable[..., ScriptedModel]
) -> None:
    model = model_of()
    compiled = durable(agent(journal, model, bank.effect()), journal).compiled
    given = [HumanMessage("pay"), calls(PAY, ("c2", "search", {}), id="m1"), HumanMessage("and?")]
    result = compiled.invoke({"messages": given}, THREAD)

    assert [str(message.content)[:12] for message in told(result)] == ["Not executed", "No result of"]
    assert [message.type for message in model.seen] == ["human", "ai", "tool", "tool", "human"]
    assert bank.calls == []


class Swallows(AgentMiddleware[Any, Any, Any]):
    """Makes an error message of whatever comes out of a tool, interrupts too."""

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except Exception as error:  # noqa: BLE001  # this is what must do no harm
            return ToolMessage(f"it failed: {error}", tool_call_id=request.tool_call["id"], status="error")


def test_doubt_that_a_handler_swallowed_parks_the_run_before_the_model_hears_of_it(
    journal: Journal, model_of: Callable[..., ScriptedModel]
) -> None:
    model = model_of(calls(PAY))
    pay = refusing(Unreachable("no answer"))
    graph = durable(agent(journal, model, pay, others=(Swallows(),)), journal)
    with pytest.raises(EffectInDoubt) as doubt:
        graph.invoke(HELLO, THREAD)
    asked = model.asked
    journal.effects.resolve(doubt.value.key, happened=True, outcome={"paid": 5}, principal="operator")
    graph.invoke(None, THREAD)

    assert (asked, model.asked) == (1, 2)
    assert model.seen[-1].content == '{"paid": 5}'


def test_an_unknown_error_that_a_handler_swallowed_is_a_dead_letter(
    journal: Journal, model_of: Callable[..., ScriptedModel]
) -> None:
    model = model_of(calls(PAY))
    graph = durable(agent(journal, model, refusing(RuntimeError("dead")), others=(Swallows(),)), journal)
    with pytest.raises(UnguardedEffect):
        graph.invoke(HELLO, THREAD)
    dead = (journal.runs.get("chat-1").state, model.asked)
    [claimed] = journal.effects.list(state="claimed")
    journal.effects.resolve(claimed.key, happened=True, outcome={"paid": 5}, principal="operator")
    journal.runs.redrive("chat-1", principal="operator")
    graph.invoke(None, THREAD)

    assert dead == ("dead", 1)
    assert model.seen[-1].content == '{"paid": 5}'
    assert journal.runs.get("chat-1").state == "done"


def test_a_model_that_answered_is_not_asked_again(
    journal: Journal, bank: Bank, model_of: Callable[..., ScriptedModel]
) -> None:
    """The model's step fails after the answer and runs again."""
    fails = [True]

    class FailsAfter(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            answer = handler(request)
            if fails.pop():
                raise RuntimeError("killed")
            return answer

    model = model_of(calls(PAY))
    graph = durable(agent(journal, model, bank.effect(), others=(FailsAfter(),)), journal)
    with pytest.raises(RuntimeError, match="killed"):
        graph.invoke(HELLO, THREAD)
    fails += [False, False]
    graph.invoke(None, THREAD)

    assert model.asked == 2
    assert len(bank.executed) == 1


def test_an_answer_that_json_cannot_hold_is_recorded_whole(
    journal: Journal, bank: Bank, model_of: Callable[..., ScriptedModel]
) -> None:
    odd = AIMessage("done", additional_kwargs={"big": 2**60, "pair": (1, 2)})
    graph = durable(agent(journal, model_of(odd), bank.effect()), journal)
    result = graph.invoke(HELLO, THREAD)

    assert result["messages"][-1].additional_kwargs["big"] == 2**60


@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "not recorded"])
def test_structured_output_keeps_a_class_that_was_made_in_a_function(
    journal: Journal, model_of: Callable[..., ScriptedModel], recorded: bool
) -> None:
    """No checkpoint can import it again, and none need: nothing crashed."""

    class Verdict(BaseModel):
        ok: bool

    model = model_of(calls(("v1", "Verdict", {"ok": True})))
    middleware = EffectTools(journal, [], record_model=recorded)
    made = create_agent(model, response_format=ToolStrategy(Verdict), middleware=[middleware])
    result = durable(made, journal).invoke(HELLO, THREAD)

    assert result["structured_response"] == Verdict(ok=True)


def test_the_answer_that_was_recorded_first_counts(
    journal: Journal, bank: Bank, model_of: Callable[..., ScriptedModel]
) -> None:
    """A worker that stood still for longer than its lease finds that another has asked meanwhile; both go on with the calls of one answer."""

    class SlowerThanAnother(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            mine = handler(request)
            [asked] = journal.effects.list(state="claimed")
            lease, none = get_config()["configurable"][LEASE], timedelta(0)
            theirs = {"messages": messages_to_dict([AIMessage("theirs", id="theirs")])}
            journal.effects.settle(Claim(asked, lease, doubtful=True, age=none, since_call=none), theirs)  # type: ignore[arg-type]
            return mine

    middleware = [EffectTools(journal, [bank.effect()]), SlowerThanAnother()]
    result = durable(create_agent(model_of(calls(PAY)), middleware=middleware), journal).invoke(HELLO, THREAD)

    assert [message.id for message in result["messages"][1:]] == ["theirs"]
    assert bank.calls == []


def test_a_tool_that_asks_another_agent_pays_once_when_it_runs_again(
    journal: Journal, bank: Bank, tmp_path: Path, model_of: Callable[..., ScriptedModel]
) -> None:
    inner = ScriptedModel(script=[calls(PAY)], file=tmp_path / "inner")
    payer = agent(journal, inner, bank.effect())
    fails = [False, True]

    def ask_payer(question: str) -> str:
        """Ask the agent that pays."""
        result = payer.invoke({"messages": [HumanMessage(question)]})
        if fails.pop():
            raise RuntimeError("killed")
        return str(result["messages"][-1].content)

    model = model_of(calls(("c1", "ask_payer", {"question": "pay claim 1"})))
    graph = durable(create_agent(model, tools=[ask_payer], middleware=[EffectTools(journal, [])]), journal)
    with pytest.raises(RuntimeError, match="killed"):
        graph.invoke(HELLO, THREAD)
    graph.invoke(None, THREAD)

    assert (len(bank.calls), inner.asked, model.asked) == (1, 2, 2)


def test_an_agent_without_checkpoints_of_its_own_is_no_node(
    journal: Journal, bank: Bank, model_of: Callable[..., ScriptedModel]
) -> None:
    """Its step would run again from its start, and its model would decide anew."""

    class State(DurableState, MessagesState):
        pass

    builder = StateGraph(State)
    builder.add_node("agent", agent(journal, model_of(), bank.effect(), checkpointer=False))
    builder.add_edge(START, "agent")
    with pytest.raises(GraphRefused, match="checkpoint"):
        durable(builder, journal)


def test_a_worker_that_lost_its_lease_pays_nothing_and_tells_the_model_nothing(
    journal: Journal, bank: Bank, model_of: Callable[..., ScriptedModel]
) -> None:
    class Loses(AgentMiddleware[Any, Any, Any]):
        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            journal.leases.give_back(request.runtime.config["configurable"][LEASE])
            return handler(request)

    model = model_of(calls(PAY))
    telling = ToolErrorMiddleware(lambda error, request: f"it failed: {error}")
    graph = durable(agent(journal, model, bank.effect(), others=(telling, Loses())), journal)
    with pytest.raises(LeaseLost):
        graph.invoke(HELLO, THREAD)

    assert (bank.calls, model.asked) == ([], 1)


def test_a_conversation_takes_turns_and_pays_in_each(
    journal: Journal, bank: Bank, model_of: Callable[..., ScriptedModel]
) -> None:
    model = model_of(calls(PAY), AIMessage("paid"), calls(PAY), AIMessage("paid again"))
    graph = durable(agent(journal, model, bank.effect()), journal, turns=True)
    for turn in ("first", "first", "second", "second"):
        result = graph.invoke(HELLO, thread("chat-1", submission=turn))

    assert len(bank.executed) == 2
    assert result["messages"][-1].content == "paid again"


def test_what_a_stream_shows_is_langgraphs_and_pays_once(
    journal: Journal, bank: Bank, model_of: Callable[..., ScriptedModel]
) -> None:
    graph = durable(agent(journal, model_of(calls(PAY)), bank.effect()), journal)
    shown = [next(iter(chunk)) for chunk in graph.stream(HELLO, THREAD, stream_mode="updates")]

    assert shown == ["EffectTools.before_agent", "model", "tools", "model"]
    assert len(bank.calls) == 1


def test_an_effect_that_another_process_executes_is_not_told_to_the_model(journal: Journal, bank: Bank) -> None:
    """On LangGraph's own graph, where no lease keeps the other process out of the thread."""

    class State(DurableState, MessagesState):
        pass

    builder = StateGraph(State)
    builder.add_node("tools", effect_tool_node(journal, [bank.effect()], handle_tool_errors=True))
    builder.add_edge(START, "tools")
    compiled = durable(builder, journal).compiled
    theirs = journal.leases.take(f"slot:{Slot('chat-1', step_of('m1', 'c1'), 'pay').id}")
    with pytest.raises(EffectBusy):
        compiled.invoke({"messages": [calls(PAY, id="m1")]}, THREAD)
    meanwhile = bank.calls
    journal.leases.give_back(theirs)
    compiled.invoke(None, THREAD)

    assert (meanwhile, len(bank.calls)) == ([], 1)


def test_a_key_that_the_receiver_knows_with_another_payload_is_a_dead_letter(
    journal: Journal, model_of: Callable[..., ScriptedModel]
) -> None:
    """Not the model's to repair, with a business identity or without."""

    @effect(receiver=NO_KEYS, name="pay", once=lambda arguments: arguments["claim_id"])
    def pay(*, claim_id: str, amount: int, key: str) -> dict[str, Any]:
        raise KeyMismatch("known with 7")

    model = model_of(calls(PAY))
    graph = durable(agent(journal, model, pay), journal)
    with pytest.raises(EffectConflict, match="known with 7"):
        graph.invoke(HELLO, THREAD)

    assert (journal.runs.get("chat-1").reason, model.asked) == ("effect_conflict", 1)


def test_an_effect_that_asks_while_at_work_is_refused(journal: Journal, model_of: Callable[..., ScriptedModel]) -> None:
    @effect(receiver=NO_KEYS, name="pay")
    def pay(*, claim_id: str, amount: int, key: str) -> dict[str, Any]:
        return {"paid": interrupt("really?")}

    graph = durable(agent(journal, model_of(calls(PAY)), pay), journal)
    with pytest.raises(GraphRefused, match="interrupted"):
        graph.invoke(HELLO, THREAD)


def test_a_refusal_after_a_call_that_may_have_happened_is_no_proof(
    journal: Journal, model_of: Callable[..., ScriptedModel]
) -> None:
    """The first call went unanswered; the second is refused, with a revoked key say, which says nothing of the first."""
    answers: list[Exception] = [Rejected("key revoked"), Unreachable("no answer")]

    @effect(receiver=Receiver(honours_keys=True, attempts=2, backoff=timedelta(0)), name="pay")
    def pay(*, claim_id: str, amount: int, key: str) -> dict[str, Any]:
        raise answers.pop()

    model = model_of(calls(PAY))
    graph = durable(agent(journal, model, pay), journal)
    with pytest.raises(EffectInDoubt):
        graph.invoke(HELLO, THREAD)

    assert (journal.runs.get("chat-1").reason, model.asked) == ("in_doubt", 1)


def test_a_tool_node_takes_no_refusal_for_proof_either(
    journal: Journal, model_of: Callable[..., ScriptedModel]
) -> None:
    """No middleware looks at what the model is shown here: the tool itself must not say that nothing happened."""

    class State(DurableState, MessagesState):
        pass

    answers: list[Exception] = [Rejected("key revoked"), Unreachable("no answer")]

    @effect(receiver=Receiver(honours_keys=True, attempts=2, backoff=timedelta(0)), name="pay")
    def pay(*, claim_id: str, amount: int, key: str) -> dict[str, Any]:
        raise answers.pop()

    def ask(state: State) -> dict[str, Any]:
        return {"messages": [model_of(calls(PAY)).invoke(state["messages"])]}

    builder = StateGraph(State)
    builder.add_node("model", ask)
    builder.add_node("tools", effect_tool_node(journal, [pay]))
    builder.add_edge(START, "model")
    builder.add_edge("model", "tools")
    with pytest.raises(EffectInDoubt):
        durable(builder, journal).invoke(HELLO, THREAD)

    assert journal.runs.get("chat-1").reason == "in_doubt"
