"""
What LangGraph may put around a node to run it again, and that an effect stands under none of it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import NodeTimeoutError
from langgraph.func import task
from langgraph.graph import END, START
from langgraph.types import CachePolicy, Command, RetryPolicy, TimeoutPolicy, interrupt
from typing_extensions import TypedDict

from checkpointing import Journal
from checkpointing.errors import GraphRefused, RunBusy, RunDead
from graph import DurableGraph, DurableState, durable, thread
from nodes import effect_node
from tests.support.bank import Bank
from tests.support.plain import THREAD, OfficialSaver, Trace, builder_of
from tests.support.processes import until
from tools import Receiver, effect

AT_ONCE = RetryPolicy(initial_interval=0, jitter=False, max_attempts=2)


class Plain(TypedDict, total=False):
    amount: int
    said: str


class State(DurableState):
    amount: int
    said: str
    payment: dict[str, Any]


def arguments(state: Any) -> dict[str, Any]:
    return {"claim_id": "1", "amount": state["amount"]}


def raising(error: Exception) -> Callable[[Any], Any]:
    def then(state: Any) -> Any:
        raise error

    return then


# --- retry policies ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "runs"),
    [
        (httpx.ReadTimeout("the POST may have arrived"), 2),
        (ConnectionError("reset"), 2),
        (TimeoutError("slow"), 1),
        (OSError("pipe"), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_langgraph_retries_what_may_have_happened(
    saver: OfficialSaver, trace: Trace, error: Exception, runs: int
) -> None:
    """The whole node again, by default after an answer that did not come; and not after errors that sound the same."""
    builder = builder_of(Plain)
    builder.add_node("pay", trace.node("paid", raising(error)), retry_policy=AT_ONCE)
    builder.add_edge(START, "pay")
    with pytest.raises(type(error)):
        builder.compile(checkpointer=saver).invoke({"amount": 5}, THREAD)

    assert trace.names == ["paid"] * runs


def test_langgraph_runs_the_finished_tasks_of_a_retried_node_again(saver: OfficialSaver, trace: Trace) -> None:
    """Under other ids, so that a key made of the task's id pays twice."""
    broken = [1]

    @task
    def pay() -> str:
        from langgraph.config import get_config  # noqa: PLC0415  # what a task asks for where it runs

        trace.mark("paid", {**get_config(), "metadata": {"langgraph_step": 0}})
        return "receipt"

    def node(state: Any) -> dict[str, Any]:
        pay().result()
        if broken:
            broken.clear()
            raise ConnectionError("reset")
        return {}

    builder = builder_of(Plain)
    builder.add_node("node", node, retry_policy=AT_ONCE)
    builder.add_edge(START, "node")
    builder.compile(checkpointer=saver).invoke({"amount": 5}, THREAD)

    assert trace.names == ["paid", "paid"]
    assert trace.lines[0]["task"] != trace.lines[1]["task"]


def test_langgraph_pays_again_when_the_router_behind_a_retried_node_raises(saver: OfficialSaver, trace: Trace) -> None:
    """The router runs inside the node's own task."""

    def router(state: Any) -> str:
        raise ConnectionError("no directory")

    builder = builder_of(Plain)
    builder.add_node("pay", trace.node("paid"), retry_policy=AT_ONCE)
    builder.add_node("close", trace.node("close"))
    builder.add_edge(START, "pay")
    builder.add_conditional_edges("pay", router, ["close", END])
    graph = builder.compile(checkpointer=saver)
    with pytest.raises(ConnectionError):
        graph.invoke({"amount": 5}, THREAD)

    assert trace.names == ["paid", "paid"]


def test_langgraph_takes_a_router_that_raised_for_an_end(saver: OfficialSaver, trace: Trace) -> None:
    """The next call returns, and what follows the payment never runs."""

    def router(state: Any) -> str:
        raise LookupError("no such branch")

    pay = trace.node("paid", lambda state: {"said": "paid"})
    builder = builder_of(Plain, (START, "pay"), pay=pay, close=trace.node("close"))
    builder.add_conditional_edges("pay", router, ["close", END])
    graph = builder.compile(checkpointer=saver)
    with pytest.raises(LookupError):
        graph.invoke({"amount": 5}, THREAD)
    snapshot = graph.get_state(THREAD)
    assert (snapshot.next, bool(snapshot.tasks[0].error)) == ((), True)

    assert graph.invoke(None, THREAD) == {"amount": 5, "said": "paid"}
    assert trace.names == ["paid"]


def test_langgraph_pays_again_when_the_router_behind_a_node_without_output_raised(
    saver: OfficialSaver, trace: Trace
) -> None:
    """The other face of the same issue: a node that writes nothing has not finished, and every call runs it."""

    def router(state: Any) -> str:
        raise LookupError("no such branch")

    builder = builder_of(Plain, (START, "pay"), pay=trace.node("paid"), close=trace.node("close"))
    builder.add_conditional_edges("pay", router, ["close", END])
    graph = builder.compile(checkpointer=saver)
    for given in ({"amount": 5}, None, None):
        with pytest.raises(LookupError):
            graph.invoke(given, THREAD)

    assert trace.names == ["paid", "paid", "paid"]


def test_ours_asks_again_under_one_key(journal: Journal, bank: Bank) -> None:
    """The receiver executes and its answer is lost: nobody runs the node again within the call, and the next call has the same key."""
    execute, lost = bank.execute, [1]

    def cut_off(**call: Any) -> dict[str, Any]:
        result = execute(**call)
        if lost:
            lost.clear()
            raise httpx.ReadTimeout("the POST may have arrived")
        return result

    bank.execute = cut_off  # type: ignore[method-assign]  # the receiver executes, and its answer is lost
    pay = effect_node(bank.effect(), journal, arguments=arguments, into="payment")
    graph = durable(builder_of(State, (START, "pay"), pay=pay), journal)
    with pytest.raises(httpx.ReadTimeout):
        graph.invoke({"amount": 5}, THREAD)
    assert len(bank.calls) == 1
    done = graph.invoke(None, THREAD)

    assert done["payment"]["paid"] == 5
    assert (len(bank.calls), len(bank.executed)) == (2, 1)


def refused(journal: Journal, bank: Bank, **options: Any) -> None:
    builder = builder_of(State)
    builder.add_node("pay", effect_node(bank.effect(), journal, arguments=arguments), **options)
    builder.add_edge(START, "pay")
    with pytest.raises(GraphRefused, match="pay"):
        durable(builder, journal)


@pytest.mark.parametrize("option", ["retry_policy", "cache_policy", "error_handler"])
def test_ours_takes_no_policy_around_an_effect(journal: Journal, bank: Bank, option: str) -> None:
    policies: dict[str, Any] = {
        "retry_policy": AT_ONCE,
        "cache_policy": CachePolicy(),
        "error_handler": lambda state: {"said": "never mind"},
    }
    refused(journal, bank, **{option: policies[option]})


# --- error handlers and caches ----------------------------------------------------------------------------------------


def test_langgraph_runs_an_error_handler_again_on_every_resume(saver: OfficialSaver, trace: Trace) -> None:
    """A refund in it is made as often as the thread is taken up."""
    builder = builder_of(Plain)
    handler = trace.node("refund", lambda state: {"said": "refunded"})
    builder.add_node("pay", trace.node("pay", raising(ValueError("no"))), error_handler=handler)
    builder.add_node("other", lambda state: {"amount": interrupt("more?")})
    builder.add_edge(START, "pay")
    builder.add_edge(START, "other")
    graph = builder.compile(checkpointer=saver)
    graph.invoke({"amount": 5}, THREAD)
    first = trace.names.count("refund")
    graph.invoke(None, THREAD)
    graph.invoke(Command(resume=6), THREAD)

    assert (first, trace.names.count("refund")) == (1, 3)


def test_langgraph_answers_one_thread_from_anothers_cache(saver: OfficialSaver, trace: Trace) -> None:
    """The second claim has the same input, and is never paid."""
    builder = builder_of(Plain)
    builder.add_node("pay", trace.node("paid", lambda state: {"said": "paid"}), cache_policy=CachePolicy())
    builder.add_edge(START, "pay")
    graph = builder.compile(checkpointer=saver, cache=InMemoryCache())
    for name in ("claim-1", "claim-2"):
        assert graph.invoke({"amount": 5}, thread(name))["said"] == "paid"

    assert trace.names == ["paid"]


def test_ours_pays_every_thread_its_own(journal: Journal, bank: Bank) -> None:
    pay = effect_node(bank.effect(), journal, arguments=arguments, into="payment")
    graph = durable(builder_of(State, (START, "pay"), pay=pay), journal)
    paid = [graph.invoke({"amount": 5}, thread(name))["payment"]["key"] for name in ("claim-1", "claim-2")]

    assert [call["key"] for call in bank.executed] == paid
    assert len(set(paid)) == 2


# --- timeouts ---------------------------------------------------------------------------------------------------------


def test_langgraph_leaves_a_tools_thread_running_after_a_timeout(trace: Trace) -> None:
    """Two attempts are two effects: the first one is still at work. In memory, because SQLite's own saver takes no `ainvoke`."""
    leave, ended = threading.Event(), threading.Semaphore(0)

    def pay() -> None:
        leave.wait(30)
        trace.mark("paid")
        ended.release()

    async def node(state: Any) -> dict[str, Any]:
        await asyncio.to_thread(pay)
        return {}

    builder = builder_of(Plain)
    builder.add_node("pay", node, timeout=TimeoutPolicy(run_timeout=0.05), retry_policy=AT_ONCE)
    builder.add_edge(START, "pay")
    graph = builder.compile(checkpointer=InMemorySaver())

    async def call() -> None:
        with pytest.raises(NodeTimeoutError):
            await graph.ainvoke({"amount": 5}, THREAD)
        leave.set()

    asyncio.run(call())
    assert all(ended.acquire(timeout=30) for _ in range(2))
    assert trace.names == ["paid", "paid"]


def slow_graph(journal: Journal, bank: Bank, leave: threading.Event, timeout: TimeoutPolicy | None) -> DurableGraph:
    @effect(receiver=Receiver(attempts=1), name="pay")
    def pay(*, claim_id: str, amount: int, key: str) -> dict[str, Any]:
        leave.wait(30)
        return bank.execute(claim_id=claim_id, amount=amount, key=key)

    builder = builder_of(State)
    node = effect_node(pay, journal, arguments=arguments, into="payment")
    builder.add_node("pay", node, timeout=timeout)
    builder.add_edge(START, "pay")
    return durable(builder, journal)


def test_ours_begins_no_second_attempt_while_the_first_is_at_work(journal: Journal, bank: Bank) -> None:
    """A timeout leaves the tool running and the lease held; who comes meanwhile is told, and who comes after finds the outcome."""
    leave = threading.Event()
    graph = slow_graph(journal, bank, leave, TimeoutPolicy(run_timeout=0.1))

    async def call() -> None:
        for _ in range(2):
            with pytest.raises((NodeTimeoutError, RunBusy)):
                await graph.ainvoke({"amount": 5}, THREAD)

    asyncio.run(call())
    leave.set()
    until(lambda: True if journal.leases.holder("thread:claim-0042") is None else None)
    done = slow_graph(journal, bank, leave, None).invoke(None, THREAD)

    assert done["payment"]["paid"] == 5
    assert len(bank.calls) == 1


def test_ours_does_not_take_a_router_that_raised_for_an_end(journal: Journal, bank: Bank) -> None:
    def router(state: Any) -> str:
        raise LookupError("no such branch")

    pay = effect_node(bank.effect(), journal, arguments=arguments)
    builder = builder_of(State, (START, "pay"), pay=pay, close=lambda state: {})
    builder.add_conditional_edges("pay", router, ["close", END])
    graph = durable(builder, journal, attempts=2)
    for _ in range(4):
        with pytest.raises((LookupError, RunDead)):
            graph.invoke({"amount": 5}, THREAD)

    assert journal.runs.get("claim-0042").state == "dead"
    assert len(bank.calls) == 1
