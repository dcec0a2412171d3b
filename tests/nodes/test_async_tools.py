"""Sync and async tools under sync and async calls: the same protocol, and a cancelled caller loses nothing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph

from checkpointing import Journal
from checkpointing.bridge import THREADS
from checkpointing.errors import EffectInDoubt, RunBusy
from graph import DurableGraph, DurableState, durable, thread
from nodes import effect_node
from tests.support.bank import KEYED, Bank
from tests.support.processes import until
from tools import Effect, Receiver, effect
from tools.perform import Call, adrive

THREAD = thread("claim-0042")


class State(DurableState):
    payment: dict[str, Any]


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank(tmp_path / "bank")


def async_pay(bank: Bank, receiver: Receiver = KEYED) -> Effect:
    @effect(receiver=receiver, name="pay")
    async def pay(*, claim_id: str, amount: int, key: str) -> dict[str, Any]:
        await asyncio.sleep(0)
        return bank.execute(claim_id=claim_id, amount=amount, key=key)

    return pay


def graph_of(pay: Effect, journal: Journal) -> DurableGraph:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node(
        "pay",
        effect_node(pay, journal, arguments=lambda s: {"claim_id": "1", "amount": 5}, into="payment"),
    )
    builder.add_edge(START, "pay")
    return durable(builder, journal)


@pytest.mark.parametrize("asynchronous_tool", [True, False])
@pytest.mark.parametrize("asynchronous_call", [True, False])
def test_every_tool_runs_under_every_call(
    journal: Journal, bank: Bank, asynchronous_tool: bool, asynchronous_call: bool
) -> None:
    graph = graph_of(async_pay(bank) if asynchronous_tool else bank.effect(), journal)
    done = asyncio.run(graph.ainvoke({}, THREAD)) if asynchronous_call else graph.invoke({}, THREAD)

    assert done["payment"]["paid"] == 5
    assert len(bank.calls) == 1


def test_a_sync_call_inside_a_running_loop_runs_an_async_tool(journal: Journal, bank: Bank) -> None:
    graph = graph_of(async_pay(bank), journal)

    async def inside() -> Any:
        return graph.invoke({}, THREAD)

    assert asyncio.run(inside())["payment"]["paid"] == 5


def test_many_runs_at_once_in_one_loop(journal: Journal, bank: Bank) -> None:
    graph = graph_of(async_pay(bank), journal)

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(*(graph.ainvoke({}, thread(f"t-{n}")) for n in range(40)))

    assert len(asyncio.run(all_at_once())) == 40
    assert len(bank.executed) == 40


def test_a_sync_tool_whose_caller_was_cancelled_is_settled_all_the_same(journal: Journal, bank: Bank) -> None:
    entered, leave = threading.Event(), threading.Event()

    @effect(receiver=Receiver(attempts=1), name="pay")
    def pay(*, claim_id: str, amount: int, key: str) -> dict[str, Any]:
        entered.set()
        leave.wait(30)
        return bank.execute(claim_id=claim_id, amount=amount, key=key)

    graph = graph_of(pay, journal)

    async def cancelled() -> None:
        task = asyncio.create_task(graph.ainvoke({}, THREAD))
        await asyncio.get_running_loop().run_in_executor(None, entered.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert journal.leases.holder("thread:claim-0042") is not None
    with pytest.raises(RunBusy):
        graph.invoke(None, THREAD)
    leave.set()
    until(lambda: True if journal.leases.holder("thread:claim-0042") is None else None)
    done = graph.invoke(None, THREAD)

    assert done["payment"]["paid"] == 5
    assert len(bank.calls) == 1


@pytest.mark.parametrize(("receiver", "calls"), [(KEYED, 1), (Receiver(attempts=1), 0)])
def test_an_async_tool_that_was_cancelled_is_in_doubt(
    journal: Journal, bank: Bank, receiver: Receiver, calls: int
) -> None:
    hang, entered = [True], threading.Event()

    @effect(receiver=receiver, name="pay")
    async def pay(*, claim_id: str, amount: int, key: str) -> dict[str, Any]:
        entered.set()
        if hang:
            await asyncio.sleep(60)
        return bank.execute(claim_id=claim_id, amount=amount, key=key)

    graph = graph_of(pay, journal)

    async def cancelled() -> None:
        task = asyncio.create_task(graph.ainvoke({}, THREAD))
        await asyncio.get_running_loop().run_in_executor(None, entered.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    hang.clear()
    if calls:
        graph.invoke(None, THREAD)
    else:
        with pytest.raises(EffectInDoubt):
            graph.invoke(None, THREAD)
    assert len(bank.calls) == calls


def test_a_tool_that_takes_ten_leases_is_started_once(opened: Callable[..., Journal], bank: Bank) -> None:
    journal = opened(lease=timedelta(milliseconds=300))
    starts, leave = [], threading.Event()

    @effect(receiver=Receiver(attempts=1), name="pay")
    def pay(*, claim_id: str, amount: int, key: str) -> dict[str, Any]:
        starts.append(key)
        leave.wait(30)
        return bank.execute(claim_id=claim_id, amount=amount, key=key)

    graph = graph_of(pay, journal)
    slow = threading.Thread(target=lambda: graph.invoke({}, THREAD))
    slow.start()
    until(lambda: starts or None)
    other = graph_of(pay, opened(lease=timedelta(milliseconds=300)))
    expires = _expiry(journal)
    until(lambda: True if _expiry(journal) > expires + 3000 else None)
    with pytest.raises(RunBusy):
        other.invoke(None, THREAD)
    leave.set()
    slow.join(30)

    assert other.invoke(None, THREAD)["payment"]["paid"] == 5
    assert (len(starts), len(bank.calls)) == (1, 1)


def _expiry(journal: Journal) -> int:
    with journal.store.reading() as tx:
        row = tx.one("select expires_ms from leases where name = 'thread:claim-0042'")
    assert row is not None
    return int(row["expires_ms"])


def test_a_sync_step_handed_to_a_thread_counts_as_begun(journal: Journal) -> None:
    """The caller is cancelled before any thread is free for it; whether one has begun is then not for the caller to say."""
    leave, seen = threading.Event(), []
    call = Call(lambda: None, {})

    def steps() -> Any:
        for _ in range(THREADS):  # the one that runs this takes the last of them next
            journal.bridge._pool.submit(leave.wait, 30)
        try:
            yield call
        except GeneratorExit:
            seen.append(call.entered)
            raise

    async def cancelled() -> None:
        task = asyncio.create_task(adrive(steps(), journal.bridge))
        await asyncio.get_running_loop().run_in_executor(None, until, lambda: call.entered or None)
        task.cancel()
        asyncio.get_running_loop().call_later(0.05, leave.set)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert seen == [True]
