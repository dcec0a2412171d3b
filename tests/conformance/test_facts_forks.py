"""
Forks and time travel: why nothing that LangGraph counts or hashes can be an effect's identity. Ours is tried at length in `tests/nodes/test_forks.py`.
"""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from checkpointing import Journal
from graph import DurableGraph, DurableState, approve, durable, thread
from nodes import approval_node, effect_node
from tests.support.bank import Bank
from tests.support.plain import THREAD, OfficialSaver, Trace, builder_of

ADJUSTER = thread("claim-0042", principal="adjuster-17")


class Plain(TypedDict, total=False):
    amount: int
    rounds: int
    said: str


class State(DurableState):
    amount: int
    rounds: int


def keyed(bank: Bank, made_of: str) -> Any:
    """A payment whose key is made of what LangGraph tells the node."""

    def pay(state: Plain, config: RunnableConfig) -> dict[str, Any]:
        told = {"step": config["metadata"]["langgraph_step"], "task": config["configurable"]["checkpoint_ns"]}
        bank.execute(amount=state["amount"], key=f"claim-0042:{told[made_of]}:pay:{state['amount']}")
        return {"rounds": state.get("rounds", 0) + 1}

    return pay


def again(state: Any) -> str:
    return "pay" if state["rounds"] < 2 else END


def twice(bank: Bank, saver: Any, made_of: str) -> Any:
    """Two visits of that payment."""
    builder = builder_of(Plain, (START, "pay"), pay=keyed(bank, made_of))
    builder.add_conditional_edges("pay", again)
    return builder.compile(checkpointer=saver)


def before_pay(graph: Any, nth: int = 0) -> RunnableConfig:
    """The checkpoint at which the payment is next for the *nth* time."""
    oldest_first = list(graph.get_state_history(THREAD))[::-1]
    found: RunnableConfig = [one.config for one in oldest_first if "pay" in one.next][nth]
    return found


def test_langgraph_shifts_the_step_in_a_fork_so_that_its_key_pays_again(saver: OfficialSaver, bank: Bank) -> None:
    graph = twice(bank, saver, "step")
    graph.invoke({"amount": 5}, THREAD)
    assert [call["key"] for call in bank.calls] == ["claim-0042:1:pay:5", "claim-0042:2:pay:5"]
    graph.invoke(None, before_pay(graph, 1))

    assert bank.executed[-1]["key"] == "claim-0042:3:pay:5"
    assert len(bank.executed) == 3


def test_langgraph_shifts_the_step_onto_another_iterations(saver: OfficialSaver, bank: Bank) -> None:
    """The fork's first visit has the key of the original's second: it is answered with a receipt that is not its own."""
    graph = twice(bank, saver, "step")
    graph.invoke({"amount": 5}, THREAD)
    graph.invoke(None, before_pay(graph))

    assert bank.calls[2]["key"] == bank.calls[1]["key"] != bank.calls[0]["key"]


def test_langgraph_shifts_the_step_of_an_edited_past(saver: OfficialSaver, bank: Bank) -> None:
    graph = twice(bank, saver, "step")
    graph.invoke({"amount": 5}, THREAD, interrupt_before=["pay"])
    graph.update_state(THREAD, {"said": "looked at"})
    graph.invoke(None, THREAD)

    assert bank.calls[0]["key"] == "claim-0042:2:pay:5"


def test_langgraph_names_a_task_anew_in_every_replay(saver: OfficialSaver, bank: Bank) -> None:
    graph = twice(bank, saver, "task")
    graph.invoke({"amount": 5}, THREAD)
    for _ in range(2):
        graph.invoke(None, before_pay(graph, 1))

    assert len(bank.executed) == len(bank.calls) == 4


def test_ours_has_the_same_slot_in_every_fork(journal: Journal, bank: Bank) -> None:
    def arguments(state: Any) -> dict[str, Any]:
        return {"claim_id": "1", "amount": state["amount"]}

    def count(state: Any) -> dict[str, Any]:
        return {"rounds": state.get("rounds", 0) + 1}

    pay = effect_node(bank.effect(), journal, arguments=arguments)
    builder = builder_of(State, (START, "pay"), ("pay", "count"), pay=pay, count=count)
    builder.add_conditional_edges("count", again)
    graph = durable(builder, journal)
    graph.invoke({"amount": 5}, THREAD)
    for nth in (0, 1, 0, 1):
        graph.compiled.invoke(None, before_pay(graph, nth))
    edited = graph.compiled.update_state(before_pay(graph), {"rounds": 0})
    graph.compiled.invoke(None, edited)

    assert sorted(record.step for record in journal.effects.list()) == ["pay.0", "pay.1"]
    assert len(bank.calls) == 2


# --- a question and a fork --------------------------------------------------------------------------------------------


def asking(saver: OfficialSaver, trace: Trace) -> Any:
    def ask(state: Plain) -> dict[str, Any]:
        return {"said": interrupt("pay?")}

    def pay(state: Plain) -> dict[str, Any]:
        if state["said"] == "approve":
            trace.mark("paid")
        return {}

    return builder_of(Plain, (START, "ask"), ("ask", "pay"), ask=ask, pay=pay).compile(checkpointer=saver)


def test_langgraph_forgets_a_question_when_the_state_is_edited(saver: OfficialSaver, trace: Trace) -> None:
    """The answer to it is then dropped without a word."""
    graph = asking(saver, trace)
    [asked] = graph.invoke({"amount": 5}, THREAD)["__interrupt__"]
    graph.update_state(THREAD, {"amount": 6})
    assert graph.get_state(THREAD).interrupts == ()
    [anew] = graph.invoke(Command(resume={asked.id: "approve"}), THREAD)["__interrupt__"]

    assert anew.id != asked.id
    assert trace.names == []


@pytest.mark.parametrize("first", ["plain", "map"])
@pytest.mark.parametrize("second", ["plain", "map"])
def test_langgraph_pays_again_when_an_old_question_is_rejected(
    saver: OfficialSaver, trace: Trace, first: str, second: str
) -> None:
    """The first answer is kept beside the old checkpoint, and is the one that counts."""
    graph = asking(saver, trace)
    [asked] = graph.invoke({"amount": 5}, THREAD)["__interrupt__"]
    question = graph.get_state(THREAD).config

    def resume(form: str, value: str) -> Command[Any]:
        return Command(resume=value if form == "plain" else {asked.id: value})

    graph.invoke(resume(first, "approve"), THREAD)
    ended = graph.invoke(resume(second, "reject"), question)

    assert ended["said"] == "approve"
    assert trace.names == ["paid", "paid"]


def ours_asking(journal: Journal, bank: Bank) -> DurableGraph:
    def payload(state: Any) -> dict[str, Any]:
        return {"claim_id": "1", "amount": state["amount"]}

    ask = approval_node("payout", journal, payload=payload)
    pay = effect_node(bank.effect(), journal, approval="payout")
    return durable(builder_of(State, (START, "ask"), ("ask", "pay"), ask=ask, pay=pay), journal)


def test_ours_keeps_the_question_when_the_state_is_edited(journal: Journal, bank: Bank) -> None:
    """It is a row; the answer is recorded although LangGraph shows nothing to answer, and the node reads it."""
    graph = ours_asking(journal, bank)
    [asked] = graph.invoke({"amount": 5}, THREAD)["__interrupt__"]
    graph.compiled.update_state(THREAD, {"rounds": 1})
    assert [one.id for one in journal.approvals.pending()] == [asked.value["id"]]
    graph.invoke(approve(asked.value), ADJUSTER)

    assert len(bank.calls) == 1
    assert journal.runs.get("claim-0042").state == "done"
