"""
Questions and answers: what LangGraph takes for an answer, what it forgets, and what the row makes of it.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import UnknownInterruptError
from langgraph.graph import START
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from checkpointing import Journal, open_journal
from checkpointing.errors import (
    DecisionInvalid,
    EffectNotApproved,
    InputChanged,
    InputRefused,
    PayloadChanged,
    UnknownApproval,
    UnknownThread,
)
from graph import DurableGraph, DurableState, answer, approve, durable, thread
from nodes import approval_node, effect_node
from tests.support.bank import Bank
from tests.support.plain import THREAD, OfficialSaver, Trace, builder_of, die, official_saver
from tests.support.processes import context, finish, killed, start, until
from tests.support.small_claim import LEASE

ADJUSTER = thread("claim-0042", principal="adjuster-17")
UNKNOWN_ID = "0" * 32


class Plain(TypedDict, total=False):
    amount: int
    answers: Annotated[list[Any], operator.add]


class State(DurableState):
    amount: int
    answers: Annotated[list[Any], operator.add]


def payload(state: Any) -> dict[str, Any]:
    return {"claim_id": "1", "amount": state["amount"]}


def gate(trace: Trace, question: str, then: Callable[[Any], object] | None = None) -> Any:
    """A node that asks: it leaves a line when it begins, and one with the answer."""

    def ask(state: Any) -> dict[str, Any]:
        trace.mark(f"asks {question}")
        said = interrupt(question)
        trace.mark(f"{question} {said}")
        if then:
            then(said)
        return {"answers": [said]}

    return ask


def one_gate(trace: Trace, saver: Any, then: Callable[[Any], object] | None = None) -> Any:
    return builder_of(Plain, (START, "pay?"), **{"pay?": gate(trace, "pay?", then)}).compile(checkpointer=saver)


def our_gate(journal: Journal, trace: Trace, then: Callable[[Any], object] | None = None) -> DurableGraph:
    """A graph's own `interrupt()`."""
    return durable(builder_of(State, (START, "pay?"), **{"pay?": gate(trace, "pay?", then)}), journal)


def our_approval(journal: Journal, bank: Bank) -> DurableGraph:
    """An approval and what it is for."""
    ask = approval_node("payout", journal, payload=payload)
    pay = effect_node(bank.effect(), journal, approval="payout")
    return durable(builder_of(State, (START, "ask"), ("ask", "pay"), ask=ask, pay=pay), journal)


def carried_on(graph: DurableGraph) -> Any:
    until(lambda: True if graph.journal.leases.holder("thread:claim-0042") is None else None)
    return graph.invoke(None, THREAD)


# --- the node runs again ----------------------------------------------------------------------------------------------


def two_gates(trace: Trace, saver: Any) -> Any:
    nodes = {name: gate(trace, name) for name in ("left?", "right?")}
    return builder_of(Plain, (START, "left?"), (START, "right?"), **nodes).compile(checkpointer=saver)


def test_langgraph_runs_whatever_stands_before_a_question_again(saver: OfficialSaver, trace: Trace) -> None:
    """On every nudge and on every answer, and beside an answered gate the others too."""
    graph = two_gates(trace, saver)
    asked = {one.value: one.id for one in graph.invoke({"amount": 5}, THREAD)["__interrupt__"]}
    assert trace.names.count("asks left?") == 1
    graph.invoke(None, THREAD)
    assert trace.names.count("asks left?") == 2
    graph.invoke(Command(resume={asked["right?"]: "yes"}), THREAD)

    assert trace.names.count("asks left?") == 3
    assert trace.names.count("asks right?") == 3


def test_ours_asks_one_question_however_often_its_node_runs(journal: Journal, bank: Bank) -> None:
    """And what stands before it is a node of its own, which has ended."""
    graph = our_approval(journal, bank)
    first = graph.invoke({"amount": 5}, THREAD)["__interrupt__"][0].value
    for _ in range(3):
        assert graph.compiled.invoke(None, THREAD)["__interrupt__"][0].value == first
    graph.invoke(approve(first), ADJUSTER)

    assert [row.id for row in journal.approvals.of_thread("claim-0042")] == [first["id"]]
    assert len(bank.calls) == 1


# --- an answer that reaches another question --------------------------------------------------------------------------


def crashing(trace: Trace, saver: Any, broken: list[int]) -> Any:
    """Two gates side by side; the second fails before it has asked."""
    right = gate(trace, "right?")

    def crashes(state: Any) -> dict[str, Any]:
        if broken:
            again = len(broken) > 1
            broken.append(1)
            until(lambda: has_stood(saver, answered=again) or None)
            raise RuntimeError("before it asked")
        asked: dict[str, Any] = right(state)
        return asked

    nodes = {"left?": gate(trace, "left?"), "right?": crashes}
    return builder_of(Plain, (START, "left?"), (START, "right?"), **nodes).compile(checkpointer=saver)


def has_stood(saver: BaseCheckpointSaver[Any], *, answered: bool) -> bool:
    """Tell whether a question of the thread is stored, or its node's end; a sibling that fails before ends the executor which would store it."""
    found = saver.get_tuple(THREAD)
    channels = {channel for _, channel, _ in (found and found.pending_writes) or ()}
    return any(not channel.startswith("__") for channel in channels) if answered else "__interrupt__" in channels


@pytest.mark.parametrize("form", ["plain", "map"])
def test_langgraph_answers_a_question_nobody_was_shown(saver: OfficialSaver, trace: Trace, form: str) -> None:
    """A plain answer to one gate goes to the other one too; a map does not."""
    broken = [1]
    graph = crashing(trace, saver, broken)
    with pytest.raises(RuntimeError):
        graph.invoke({"amount": 5}, THREAD)
    [asked] = graph.get_state(THREAD).interrupts
    assert asked.value == "left?"
    with pytest.raises(RuntimeError):
        graph.invoke(Command(resume="yes" if form == "plain" else {asked.id: "yes"}), THREAD)
    broken.clear()
    nudged = graph.invoke(None, THREAD)

    assert ("right? yes" in trace.names) == (form == "plain")
    assert ("__interrupt__" in nudged) == (form == "map")


def test_ours_answers_nothing_that_was_not_shown(journal: Journal, trace: Trace) -> None:
    broken = [1]
    right = gate(trace, "right?")

    def crashes(state: Any) -> dict[str, Any]:
        if broken:
            until(lambda: has_stood(journal.saver, answered=False) or None)
            raise RuntimeError("before it asked")
        asked: dict[str, Any] = right(state)
        return asked

    nodes = {"left?": gate(trace, "left?"), "right?": crashes}
    graph = durable(builder_of(State, (START, "left?"), (START, "right?"), **nodes), journal)
    with pytest.raises(RuntimeError):
        graph.invoke({"amount": 5}, THREAD)
    with pytest.raises(DecisionInvalid):
        graph.invoke(Command(resume="yes"), ADJUSTER)
    broken.clear()
    asked = {one.value: one for one in graph.invoke(None, THREAD)["__interrupt__"]}
    still = graph.invoke(answer(asked["left?"], "yes"), ADJUSTER)

    assert [one.value for one in still["__interrupt__"]] == ["right?"]
    assert "right? yes" not in trace.names


# --- killed with the answer in hand -----------------------------------------------------------------------------------


def plain_resume(url: str, folder: Path, form: str) -> None:
    with official_saver(url) as saver:
        graph = one_gate(Trace(folder / "trace"), saver)
        [asked] = graph.get_state(THREAD).interrupts
        put_writes = saver.put_writes

        def asked_to_write(config: RunnableConfig, writes: Any, *rest: Any, **named: Any) -> None:
            put_writes(config, writes, *rest, **named)
            if form == "plain" and "__resume__" in dict(writes):
                die()  # the plain answer is on disk

        saver.put_writes = asked_to_write  # type: ignore[method-assign]
        dying = one_gate(
            Trace(folder / "trace"), saver, die if form == "map" else lambda said: threading.Event().wait()
        )
        dying.invoke(Command(resume="yes" if form == "plain" else {asked.id: "yes"}), THREAD, durability="sync")


@pytest.mark.parametrize("form", ["plain", "map"])
def test_langgraph_keeps_a_plain_answer_and_loses_a_map(url: str, tmp_path: Path, trace: Trace, form: str) -> None:
    """Killed inside the node that asks. The plain one is shown as if it were still asked, and delivered again."""
    with official_saver(url) as saver:
        one_gate(trace, saver).invoke({"amount": 5}, THREAD, durability="sync")
    killed(start(plain_resume, url, tmp_path, form))
    with official_saver(url) as saver:
        graph = one_gate(trace, saver)
        assert [one.value for one in graph.get_state(THREAD).interrupts] == ["pay?"]
        nudged = graph.invoke(None, THREAD)

    assert ("__interrupt__" in nudged) == (form == "map")
    assert nudged.get("answers", []) == (["yes"] if form == "plain" else [])


def our_resume(url: str, folder: Path) -> None:
    with open_journal(url, lease=LEASE) as journal:
        graph = our_gate(journal, Trace(folder / "trace"), die)
        [asked] = graph.get_state(THREAD).interrupts
        graph.invoke(answer(asked, "yes"), ADJUSTER)


def test_ours_keeps_an_answer_that_came_as_a_map(url: str, tmp_path: Path, trace: Trace) -> None:
    with open_journal(url, lease=LEASE) as journal:
        our_gate(journal, trace).invoke({"amount": 5}, THREAD)
    killed(start(our_resume, url, tmp_path))
    with open_journal(url, lease=LEASE) as journal:
        assert carried_on(our_gate(journal, trace))["answers"] == ["yes"]


# --- two at once ------------------------------------------------------------------------------------------------------


def decider(url: str, folder: Path, form: str, value: str, barrier: Any) -> None:
    """One of two processes that decide: both are inside the node at the same time."""
    with official_saver(url) as saver:
        graph = builder_of(
            Plain,
            (START, "pay?"),
            ("pay?", "pay"),
            **{
                "pay?": gate(Trace(folder / "trace"), "pay?", lambda said: barrier.wait(60)),
                "pay": lambda state: Trace(folder / "trace").mark(f"{state['answers'][-1]} ran on"),
            },
        ).compile(checkpointer=saver)
        if form == "ask":
            graph.invoke({"amount": 5}, THREAD)
            return
        [asked] = graph.get_state(THREAD).interrupts
        strict = {"__pregel_strict_resume": True} if form == "strict" else {}
        config: RunnableConfig = {"configurable": {**THREAD["configurable"], **strict}}
        graph.invoke(Command(resume=value if form == "plain" else {asked.id: value}), config)


@pytest.mark.parametrize("form", ["plain", "map", "strict"])
def test_langgraph_lets_two_processes_decide_one_question(url: str, tmp_path: Path, trace: Trace, form: str) -> None:
    """One approves and one rejects; both return, and what follows runs for each."""
    finish(start(decider, url, tmp_path, "ask", "", None))
    barrier = context().Barrier(2)
    both = [start(decider, url, tmp_path, form, value, barrier) for value in ("approve", "reject")]
    for process in both:
        finish(process)

    assert sorted(name for name in trace.names if name.endswith("ran on")) == ["approve ran on", "reject ran on"]


def test_langgraph_can_refuse_an_answer_to_a_question_that_is_over(saver: OfficialSaver, trace: Trace) -> None:
    """The strict resume names a stale id; the pin above shows that it is not a lock."""
    graph = one_gate(trace, saver)
    [asked] = graph.invoke({"amount": 5}, THREAD)["__interrupt__"]
    graph.invoke(Command(resume={asked.id: "yes"}), THREAD)
    strict: RunnableConfig = {"configurable": {**THREAD["configurable"], "__pregel_strict_resume": True}}

    with pytest.raises(UnknownInterruptError):
        graph.invoke(Command(resume={asked.id: "no"}), strict)


def test_langgraph_answers_the_second_question_with_the_first_answer(saver: OfficialSaver) -> None:
    """A plain answer to the first, and a nudge: nobody was asked the second one's question in between."""

    def ask(state: Any) -> dict[str, Any]:
        return {"answers": [interrupt("first?"), interrupt("second?")]}

    graph = builder_of(Plain, (START, "ask"), ask=ask).compile(checkpointer=saver)
    graph.invoke({"amount": 5}, THREAD)
    graph.invoke(Command(resume="one"), THREAD)

    assert graph.invoke(None, THREAD)["answers"] == ["one", "one"]


# --- answers to nothing -----------------------------------------------------------------------------------------------


def test_langgraph_starts_an_unknown_thread_without_input(saver: OfficialSaver, trace: Trace) -> None:
    graph = builder_of(Plain, (START, "pay"), pay=trace.node("pay")).compile(checkpointer=saver)
    graph.invoke(Command(resume="yes"), THREAD)

    assert trace.names == ["pay"]


def at_the_gate(trace: Trace, saver: Any) -> Any:
    """A thread that stands before its gate and has not asked."""
    nodes = {"load": trace.node("load"), "pay?": gate(trace, "pay?")}
    return builder_of(Plain, (START, "load"), ("load", "pay?"), **nodes).compile(
        checkpointer=saver, interrupt_before=["pay?"]
    )


def test_langgraph_takes_an_answer_before_the_question(saver: OfficialSaver, trace: Trace) -> None:
    graph = at_the_gate(trace, saver)
    graph.invoke({"amount": 5}, THREAD)
    ended = graph.invoke(Command(resume="yes"), THREAD)

    assert ended["answers"] == ["yes"]
    assert trace.names == ["load", "asks pay?", "pay? yes"]


@pytest.mark.parametrize("resume", [{UNKNOWN_ID: "yes"}, {}, {UNKNOWN_ID: "yes", "f" * 32: "no"}])
def test_langgraph_ignores_an_answer_it_cannot_place(saver: OfficialSaver, trace: Trace, resume: Any) -> None:
    """The call returns as if it had been taken, and the thread waits on."""
    graph = one_gate(trace, saver)
    graph.invoke({"amount": 5}, THREAD)
    ended = graph.invoke(Command(resume=resume), THREAD)

    assert [one.value for one in ended["__interrupt__"]] == ["pay?"]


def test_langgraph_cannot_be_answered_with_nothing(saver: OfficialSaver, trace: Trace) -> None:
    """No error says that an answer is missing: a variable that was never set is read."""
    graph = one_gate(trace, saver)
    graph.invoke({"amount": 5}, THREAD)

    with pytest.raises(UnboundLocalError):
        graph.invoke(Command(resume=None), THREAD)


def test_ours_refuses_an_answer_to_nothing(journal: Journal, trace: Trace) -> None:
    graph = our_gate(journal, trace)
    with pytest.raises(UnknownThread):
        graph.invoke(Command(resume={UNKNOWN_ID: "yes"}), ADJUSTER)
    graph.invoke({"amount": 5}, THREAD)
    for resume in ("yes", {}, None):
        with pytest.raises(DecisionInvalid):
            graph.invoke(Command(resume=resume), ADJUSTER)
    with pytest.raises(UnknownApproval):
        graph.invoke(Command(resume={UNKNOWN_ID: "yes"}), ADJUSTER)

    assert [row.state for row in journal.approvals.of_thread("claim-0042")] == ["pending"]
    assert trace.names == ["asks pay?"]


def test_ours_takes_no_answer_before_the_question(journal: Journal, trace: Trace, bank: Bank) -> None:
    """Not through the durable graph, and not by a resume of the raw one."""
    graph = our_approval(journal, bank)
    graph.compiled.invoke({"amount": 5}, THREAD, interrupt_before=["ask"])
    for resume in ("yes", {"type": "approve"}):
        parked = graph.compiled.invoke(Command(resume=resume), ADJUSTER)
        assert len(parked["__interrupt__"]) == 1

    assert [row.state for row in journal.approvals.of_thread("claim-0042")] == ["pending"]
    assert bank.calls == []


# --- a question's name ------------------------------------------------------------------------------------------------


def test_langgraph_renames_a_question_that_is_asked_again(saver: OfficialSaver, trace: Trace) -> None:
    """After an edit, a fork or new input; an answer under the old id is then one that it cannot place."""
    graph = one_gate(trace, saver)
    [first] = graph.invoke({"amount": 5}, THREAD)["__interrupt__"]
    parked = graph.get_state(THREAD).config
    [forked] = graph.invoke(None, parked)["__interrupt__"]
    graph.update_state(THREAD, {"amount": 6})
    [edited] = graph.invoke(None, THREAD)["__interrupt__"]
    [anew] = graph.invoke({"amount": 7}, THREAD)["__interrupt__"]

    assert len({first.id, forked.id, edited.id, anew.id}) == 4


def test_ours_keeps_the_name_of_a_question_that_is_asked_again(journal: Journal, bank: Bank) -> None:
    """Only another payload gives it another one, and the answer to the first is then refused by name."""
    graph = our_approval(journal, bank)
    first = graph.invoke({"amount": 5}, THREAD)["__interrupt__"][0].value
    forked = graph.compiled.invoke(None, graph.get_state(THREAD).config)["__interrupt__"][0].value
    graph.compiled.update_state(THREAD, {"answers": ["looked at"]})
    edited = graph.compiled.invoke(None, THREAD)["__interrupt__"][0].value
    assert first["id"] == forked["id"] == edited["id"]
    graph.compiled.update_state(THREAD, {"amount": 6})
    other = graph.compiled.invoke(None, THREAD)["__interrupt__"][0].value

    assert other["id"] != first["id"]
    with pytest.raises(PayloadChanged, match=other["id"]):
        graph.invoke(approve(first), ADJUSTER)


# --- swallowed and discarded ------------------------------------------------------------------------------------------


def test_langgraph_goes_on_when_a_node_swallows_the_question(saver: OfficialSaver, trace: Trace) -> None:
    def careful(state: Any) -> dict[str, Any]:
        try:
            return {"answers": [interrupt("pay?")]}
        except Exception:  # noqa: BLE001  # the very mistake
            return {"answers": ["nobody was asked"]}

    builder = builder_of(Plain, (START, "ask"), ("ask", "pay"), ask=careful, pay=trace.node("pay"))
    ended = builder.compile(checkpointer=saver).invoke({"amount": 5}, THREAD)

    assert ended["answers"] == ["nobody was asked"]
    assert trace.names == ["pay"]


def test_ours_pays_nothing_when_a_node_swallows_the_question(journal: Journal, bank: Bank) -> None:
    """The approval stands in a graph that a careful function invokes; the payment finds no approval."""
    ask = approval_node("payout", journal, payload=payload)
    inner = builder_of(State, (START, "ask"), ask=ask).compile()

    def careful(state: Any) -> dict[str, Any]:
        try:
            asked: dict[str, Any] = inner.invoke({"amount": state["amount"]})
        except Exception:  # noqa: BLE001  # the very mistake
            return {"answers": ["nobody was asked"]}
        return asked

    pay = effect_node(bank.effect(), journal, approval="payout")
    graph = durable(builder_of(State, (START, "ask"), ("ask", "pay"), ask=careful, pay=pay), journal)

    with pytest.raises(EffectNotApproved):
        graph.invoke({"amount": 5}, THREAD)
    assert bank.calls == []


def test_langgraph_discards_a_question_for_new_input(saver: OfficialSaver, trace: Trace) -> None:
    nodes = {"load": trace.node("load"), "pay?": gate(trace, "pay?")}
    graph = builder_of(Plain, (START, "load"), ("load", "pay?"), **nodes).compile(checkpointer=saver)
    graph.invoke({"amount": 5}, THREAD)
    graph.invoke({"amount": 6}, THREAD)

    assert trace.names == ["load", "asks pay?", "load", "asks pay?"]
    assert graph.get_state(THREAD).values["amount"] == 6


@pytest.mark.parametrize("turns", [False, True])
def test_ours_refuses_new_input_while_a_question_waits(journal: Journal, bank: Bank, turns: bool) -> None:
    ask = approval_node("payout", journal, payload=payload)
    pay = effect_node(bank.effect(), journal, approval="payout")
    builder = builder_of(State, (START, "ask"), ("ask", "pay"), ask=ask, pay=pay)
    graph = durable(builder, journal, turns=turns)
    one, two = (thread("claim-0042", submission=name if turns else None) for name in ("one", "two"))
    request = graph.invoke({"amount": 5}, one)["__interrupt__"][0].value
    with pytest.raises(InputRefused if turns else InputChanged):
        graph.invoke({"amount": 6}, two)
    graph.invoke(approve(request), ADJUSTER)

    assert [call["amount"] for call in bank.calls] == [5]
