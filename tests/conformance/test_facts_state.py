"""
What comes back from a checkpoint is not always what was written, and what a deploy changes under a waiting thread is not noticed.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pydantic
import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from checkpointing import Journal
from checkpointing.errors import EffectConflict, GraphChanged, PayloadChanged
from graph import DurableGraph, DurableState, approve, durable, thread
from nodes import approval_node, effect_node
from tests.support.bank import Bank
from tests.support.plain import THREAD, OfficialSaver, Trace, builder_of, fail

ADJUSTER = thread("claim-0042", principal="adjuster-17")


class Plain(TypedDict, total=False):
    amount: int
    lines: Any
    claim: Any
    said: str


class State(DurableState):
    amount: int
    lines: Any
    claim: Any
    payment: dict[str, Any]


def cut_off(saver: Any, channel: str) -> None:
    """Let neither what was written to *channel* nor the checkpoint behind it reach the disk."""
    fail(saver, "put_writes", lambda config, writes, *rest: channel in dict(writes), OSError("disk full"))
    fail(saver, "put", lambda config, checkpoint, metadata, *rest: metadata["step"] == 1, OSError("disk full"))


# --- values that change on the way ------------------------------------------------------------------------------------


def test_langgraph_brings_a_tuple_back_as_a_list(saver: OfficialSaver, bank: Bank) -> None:
    """A key made of what Python shows of the arguments is another one after a crash, and pays again."""
    broken = [1]

    def pay(state: Plain) -> dict[str, Any]:
        bank.execute(amount=5, key=f"claim-0042:pay:{state['lines']!r}")
        if broken:
            broken.clear()
            raise RuntimeError("cut off")
        return {}

    load = {"load": lambda state: {"lines": (2, 3)}}
    graph = builder_of(Plain, (START, "load"), ("load", "pay"), pay=pay, **load).compile(checkpointer=saver)
    with pytest.raises(RuntimeError):
        graph.invoke({"amount": 5}, THREAD)
    graph.invoke(None, THREAD)

    assert [call["key"] for call in bank.executed] == ["claim-0042:pay:(2, 3)", "claim-0042:pay:[2, 3]"]


def test_ours_has_one_key_for_a_tuple_and_the_list_it_becomes(journal: Journal, bank: Bank) -> None:
    def arguments(state: Any) -> dict[str, Any]:
        return {"claim_id": "1", "amount": state["lines"]}

    nodes = {
        "load": lambda state: {"lines": (2, 3)},
        "pay": effect_node(bank.effect(), journal, arguments=arguments, into="payment"),
    }
    graph = durable(builder_of(State, (START, "load"), ("load", "pay"), **nodes), journal)
    fail(journal.saver, "put_writes", lambda config, writes, *rest: "payment" in dict(writes), OSError("disk full"))
    fail(journal.saver, "put", lambda config, checkpoint, metadata, *rest: metadata["step"] == 2, OSError("disk full"))
    with pytest.raises(OSError, match="disk full"):
        graph.invoke({}, THREAD)
    assert graph.get_state(THREAD).values["lines"] == [2, 3]
    graph.invoke(None, THREAD)

    assert len(bank.calls) == 1
    assert journal.runs.get("claim-0042").state == "done"


def test_langgraph_cannot_write_an_integer_over_64_bits(each_saver: OfficialSaver, trace: Trace) -> None:
    """The step's checkpoint fails after its node has run, at every attempt."""
    graph = builder_of(Plain, (START, "pay"), pay=trace.node("paid", lambda state: {"lines": [2**70]}))
    compiled = graph.compile(checkpointer=each_saver)
    for given in ({"amount": 5}, None):
        with pytest.raises(TypeError, match="64"):
            compiled.invoke(given, THREAD, durability="sync")

    assert trace.names == ["paid", "paid"]


def test_langgraph_complains_of_a_bare_one_and_keeps_it_on_postgres(
    each_saver: OfficialSaver, engine: str, trace: Trace
) -> None:
    """Alone in its channel it stands in the checkpoint's JSON there; what complains is the task's write."""
    graph = builder_of(Plain, (START, "pay"), pay=trace.node("paid", lambda state: {"amount": 2**70}))
    compiled = graph.compile(checkpointer=each_saver)
    with pytest.raises(TypeError, match="64"):
        compiled.invoke({"amount": 5}, THREAD, durability="sync")

    assert compiled.get_state(THREAD).values["amount"] == (2**70 if engine == "postgres" else 5)


def test_ours_pays_once_beside_a_value_that_cannot_be_written(journal: Journal, bank: Bank) -> None:
    """The step fails at every attempt until the run is a dead letter; the payment beside it is answered from the ledger."""
    pay = effect_node(bank.effect(), journal, arguments=lambda s: {"claim_id": "1", "amount": 5}, into="payment")
    nodes = {"pay": pay, "count": lambda state: {"lines": [2**70]}}
    graph = durable(builder_of(State, (START, "pay"), (START, "count"), **nodes), journal, attempts=2)
    for given in ({}, None):
        with pytest.raises(TypeError, match="64"):
            graph.invoke(given, THREAD)

    assert journal.runs.get("claim-0042").state == "dead"
    assert len(bank.calls) == 1


# --- classes that a deploy changed ------------------------------------------------------------------------------------


@contextmanager
def deployed(**classes: type) -> Iterator[ModuleType]:
    """A module of the deployed code, with these classes."""
    module = ModuleType("deployed")
    for name, kind in classes.items():
        kind.__module__, kind.__qualname__ = "deployed", name
        setattr(module, name, kind)
    sys.modules["deployed"] = module
    try:
        yield module
    finally:
        del sys.modules["deployed"]


def claim_class() -> type:
    return dataclasses.make_dataclass("Claim", [("amount", int)])


def waiting(saver: Any, claim: Any) -> Any:
    """A thread that waits with a claim in its state."""
    nodes = {"load": lambda state: {"claim": claim}, "wait": lambda state: {"said": interrupt("?")}}
    graph = builder_of(Plain, (START, "load"), ("load", "wait"), **nodes).compile(checkpointer=saver)
    graph.invoke({"amount": 5}, THREAD)
    return graph


def test_langgraph_loads_a_class_that_is_gone_as_a_dict(saver: OfficialSaver) -> None:
    with deployed(Claim=claim_class()) as module:
        graph = waiting(saver, module.Claim(5))
        assert graph.get_state(THREAD).values["claim"] == module.Claim(5)
    with deployed(Damage=claim_class()):
        assert graph.get_state(THREAD).values["claim"] == {"amount": 5}


def test_langgraph_builds_a_model_without_its_new_field(saver: OfficialSaver) -> None:
    """A pydantic class that requires it says nothing; whoever reads the field finds nothing there."""
    with deployed(Claim=pydantic.create_model("Claim", amount=int)) as module:
        graph = waiting(saver, module.Claim(amount=5))
    with deployed(Claim=pydantic.create_model("Claim", amount=int, payee=str)):
        claim = graph.get_state(THREAD).values["claim"]

    assert (claim.amount, hasattr(claim, "payee")) == (5, False)


def test_langgraph_loads_a_class_that_is_not_listed_as_a_dict(saver: OfficialSaver) -> None:
    """Strict msgpack, which the environment may switch on."""
    saver.serde = JsonPlusSerializer(allowed_msgpack_modules=[("other", "Thing")])
    with deployed(Claim=claim_class()) as module:
        graph = waiting(saver, module.Claim(5))
        assert graph.get_state(THREAD).values["claim"] == {"amount": 5}


def test_langgraph_loads_what_a_graph_by_path_wrote_as_a_dict(saver: OfficialSaver, tmp_path: Path) -> None:
    """Its module has a name that no other process has."""
    file = tmp_path / "x.py"
    file.write_text("import dataclasses\n\n@dataclasses.dataclass\nclass Claim:\n    amount: int\n")
    spec = importlib.util.spec_from_file_location("loaded_by_path", file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["loaded_by_path"] = module
    try:
        spec.loader.exec_module(module)
        graph = waiting(saver, module.Claim(5))
        assert graph.get_state(THREAD).values["claim"] == module.Claim(5)
    finally:
        del sys.modules["loaded_by_path"]

    assert graph.get_state(THREAD).values["claim"] == {"amount": 5}


def amount_of(state: Any) -> dict[str, Any]:
    """What careless code makes of a claim: an amount that is not there is nothing."""
    return {"claim_id": "1", "amount": getattr(state["claim"], "amount", 0)}


def test_ours_pays_nothing_else_when_a_class_is_gone(journal: Journal, bank: Bank) -> None:
    """It was called before the deploy and is asked for with other arguments after it."""
    with deployed(Claim=claim_class()) as module:
        nodes = {
            "load": lambda state: {"claim": module.Claim(5)},
            "pay": effect_node(bank.effect(), journal, arguments=amount_of),
        }
        graph = durable(builder_of(State, (START, "load"), ("load", "pay"), **nodes), journal)
        fail(journal.saver, "put_writes", lambda config, writes, *rest: "effects" in dict(writes), OSError("disk full"))
        fail(journal.saver, "put", lambda config, checkpoint, meta, *rest: meta["step"] == 2, OSError("disk full"))
        with pytest.raises(OSError, match="disk full"):
            graph.invoke({}, THREAD)

    with pytest.raises(EffectConflict, match="pay.0"):
        graph.invoke(None, THREAD)
    assert [call["amount"] for call in bank.calls] == [5]


def test_ours_asks_anew_when_a_class_is_gone(journal: Journal, bank: Bank) -> None:
    """What was approved is not what the payload has become."""
    with deployed(Claim=claim_class()) as module:
        nodes = {
            "load": lambda state: {"claim": module.Claim(5)},
            "ask": approval_node("payout", journal, payload=amount_of),
            "pay": effect_node(bank.effect(), journal, approval="payout"),
        }
        edges = ((START, "load"), ("load", "ask"), ("ask", "pay"))
        graph = durable(builder_of(State, *edges, **nodes), journal)
        request = graph.invoke({}, THREAD)["__interrupt__"][0].value
    [again] = graph.invoke(approve(request), ADJUSTER)["__interrupt__"]

    assert (again.value["payload"]["amount"], again.value["id"] != request["id"]) == (0, True)
    assert bank.calls == []


# --- nodes and questions that a deploy changed ------------------------------------------------------------------------


def asking(saver: OfficialSaver, trace: Trace, node: str, question: str) -> Any:
    def ask(state: Plain) -> dict[str, Any]:
        return {"said": interrupt(question)}

    def pay(state: Plain) -> dict[str, Any]:
        trace.mark(f"{question} {state['said']}")
        return {}

    return builder_of(Plain, (START, node), (node, "pay"), pay=pay, **{node: ask}).compile(checkpointer=saver)


@pytest.mark.parametrize("form", ["plain", "map"])
def test_langgraph_drops_the_answer_to_a_node_that_was_renamed(saver: OfficialSaver, trace: Trace, form: str) -> None:
    [asked] = asking(saver, trace, "ask", "pay 5?").invoke({"amount": 5}, THREAD)["__interrupt__"]
    renamed = asking(saver, trace, "question", "pay 5?")
    snapshot = renamed.get_state(THREAD)
    assert (snapshot.next, snapshot.interrupts) == ((), ())

    assert renamed.invoke(Command(resume="yes" if form == "plain" else {asked.id: "yes"}), THREAD) == {"amount": 5}
    assert trace.names == []


@pytest.mark.parametrize("form", ["plain", "map"])
def test_langgraph_answers_a_changed_question_with_the_old_approval(
    saver: OfficialSaver, trace: Trace, form: str
) -> None:
    [asked] = asking(saver, trace, "ask", "pay 5?").invoke({"amount": 5}, THREAD)["__interrupt__"]
    changed = asking(saver, trace, "ask", "pay 500?")
    changed.invoke(Command(resume="yes" if form == "plain" else {asked.id: "yes"}), THREAD)

    assert trace.names == ["pay 500? yes"]


def ours_asking(journal: Journal, bank: Bank, node: str, amount: int) -> DurableGraph:
    nodes = {
        node: approval_node("payout", journal, payload=lambda s: {"claim_id": "1", "amount": amount}),
        "pay": effect_node(bank.effect(), journal, approval="payout"),
    }
    return durable(builder_of(State, (START, node), (node, "pay"), **nodes), journal)


def test_ours_refuses_an_answer_to_a_node_that_was_renamed(journal: Journal, bank: Bank) -> None:
    request = ours_asking(journal, bank, "ask", 5).invoke({}, THREAD)["__interrupt__"][0].value
    with pytest.raises(GraphChanged, match="ask"):
        ours_asking(journal, bank, "question", 5).invoke(approve(request), ADJUSTER)
    assert journal.approvals.get(request["id"]).state == "pending"
    ours_asking(journal, bank, "ask", 5).invoke(approve(request), ADJUSTER)

    assert len(bank.calls) == 1


def test_ours_asks_a_changed_question_anew(journal: Journal, bank: Bank) -> None:
    """Even where the old one was approved: nobody has approved the new one."""
    old, new = (ours_asking(journal, bank, "ask", amount) for amount in (5, 500))
    request = old.invoke({}, THREAD)["__interrupt__"][0].value
    [again] = new.invoke(approve(request), ADJUSTER)["__interrupt__"]
    assert (again.value["payload"]["amount"], bank.calls) == (500, [])
    with pytest.raises(PayloadChanged):
        new.invoke(approve(request), ADJUSTER)
    new.invoke(approve(again.value), ADJUSTER)

    assert [call["amount"] for call in bank.calls] == [500]
