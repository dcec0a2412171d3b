"""Claims that are late, forged, resolved, or asked for under other names: the truth is recorded once, and nobody is called twice."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda
from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy

from checkpointing import Journal
from checkpointing.digest import sha256
from checkpointing.effects import Claim, EffectRecord, Request
from checkpointing.errors import (
    ArgumentsNotJson,
    ClockBehind,
    Declined,
    EffectBusy,
    EffectConflict,
    EffectInDoubt,
    EffectNotApproved,
    GraphChanged,
    GraphRefused,
    RunBusy,
    RunDead,
    SlotAmbiguous,
)
from checkpointing.questions import Question
from checkpointing.slots import Place, Slot
from graph import DurableGraph, DurableState, durable, thread
from nodes import effect_node
from tests.support.bank import KEYED, Bank
from tests.support.clock import MovingClock
from tests.support.processes import until
from tools import Effect, Receiver, Unreachable, effect
from tools.perform import Call, Wait, perform

THREAD = thread("claim-0042")
NEITHER = Receiver(attempts=1)


class State(DurableState):
    payment: dict[str, Any]
    other: str


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank(tmp_path / "bank")


def paying(journal: Journal, pay: Effect, **options: Any) -> StateGraph[Any, Any, Any, Any]:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    node = effect_node(pay, journal, arguments=lambda s: {"claim_id": "1", "amount": 5}, into="payment")
    builder.add_node("pay", node, **options)
    builder.add_edge(START, "pay")
    return builder


def slow(entered: threading.Event, leave: threading.Event, bank: Bank, receiver: Receiver = NEITHER) -> Effect:
    """An effect that stands at its receiver until it may leave."""

    @effect(receiver=receiver, name="pay")
    def pay(*, claim_id: str, amount: int, key: str) -> dict[str, Any]:
        entered.set()
        leave.wait(30)
        return bank.execute(claim_id=claim_id, amount=amount, key=key)

    return pay


def asked(
    journal: Journal, lease_name: str, *, thread_id: str = "a", once: str | None = None, name: str = "pay"
) -> Request:
    """What a node would ask of the ledger, under a lease of its own."""
    slot = Slot(thread_id, "pay.0", name, once)
    place = Place(journal.leases.take(lease_name), "root", "task", "@root")
    return Request(slot, place, name, {"amount": 5}, "d", "whole", None, 0)


def claimed(journal: Journal, request: Request) -> Claim:
    claim = journal.effects.claim(request, person_needed=lambda age: False)
    assert isinstance(claim, Claim)
    return claim


# --- a lease and the tool that runs under it ---------------------------------------------------------------------------


def test_a_lease_is_kept_while_a_tool_of_a_failed_call_runs(opened: Callable[..., Journal], bank: Bank) -> None:
    """A sibling fails, the call is over, and its sync tool runs on in a thread: nobody else may take its effect for abandoned."""
    entered, leave = threading.Event(), threading.Event()

    async def flaky(state: State) -> dict[str, Any]:
        await asyncio.get_running_loop().run_in_executor(None, entered.wait, 30)
        raise ValueError("a sibling failed")

    def graph_of(journal: Journal) -> DurableGraph:
        builder = paying(journal, slow(entered, leave, bank))
        builder.add_node("flaky", flaky)
        builder.add_edge(START, "flaky")
        return durable(builder, journal)

    first, second = opened(), opened()
    with pytest.raises(ValueError, match="sibling"):
        asyncio.run(graph_of(first).ainvoke({}, THREAD))
    with pytest.raises(RunBusy):
        asyncio.run(graph_of(second).ainvoke({}, THREAD))
    leave.set()
    until(lambda: True if second.leases.holder("thread:claim-0042") is None else None)

    assert len(bank.calls) == 1
    assert second.effects.list()[0].state == "settled"
    assert second.runs.get("claim-0042").error == "ValueError: a sibling failed"


def test_a_lease_is_kept_while_a_tool_runs_beside_an_effect_in_doubt(
    opened: Callable[..., Journal], bank: Bank
) -> None:
    entered, leave = threading.Event(), threading.Event()

    @effect(receiver=NEITHER, name="doubtful")
    async def doubtful(*, key: str) -> Any:
        await asyncio.get_running_loop().run_in_executor(None, entered.wait, 30)
        raise Unreachable("no answer")

    def graph_of(journal: Journal) -> DurableGraph:
        builder = paying(journal, slow(entered, leave, bank))
        builder.add_node("doubtful", effect_node(doubtful, journal, arguments=lambda s: {}))
        builder.add_edge(START, "doubtful")
        return durable(builder, journal)

    first, second = opened(), opened()
    with pytest.raises(EffectInDoubt) as told:
        asyncio.run(graph_of(first).ainvoke({}, THREAD))
    second.effects.resolve(told.value.key, happened=True, outcome={}, principal="operator-1")
    with pytest.raises(RunBusy):
        asyncio.run(graph_of(second).ainvoke(None, THREAD))
    leave.set()
    until(lambda: True if second.leases.holder("thread:claim-0042") is None else None)
    asyncio.run(graph_of(second).ainvoke(None, THREAD))

    assert len(bank.calls) == 1
    assert second.runs.get("claim-0042").state == "done"


@pytest.mark.parametrize("text", ["name\udcff", "nul\x00"])
def test_an_error_that_cannot_be_stored_as_it_is_frees_the_thread_all_the_same(journal: Journal, text: str) -> None:
    def fails(state: State) -> dict[str, Any]:
        raise ValueError(text)

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("fails", fails)
    builder.add_edge(START, "fails")
    with pytest.raises(ValueError, match="name|nul"):
        durable(builder, journal).invoke({}, THREAD)

    assert journal.leases.holder("thread:claim-0042") is None
    assert str(journal.runs.get("claim-0042").error).startswith("ValueError: n")


def test_a_business_no_is_recorded_whatever_its_words_are(journal: Journal) -> None:
    @effect(receiver=NEITHER, name="pay")
    def pay(*, claim_id: str, amount: int, key: str) -> Any:
        raise Declined("no\udcff\x00")

    assert durable(paying(journal, pay), journal).invoke({}, THREAD)["payment"] == {"declined": "no\\udcff\\0"}


def test_a_paused_stream_keeps_its_lease_while_a_tool_runs(opened: Callable[..., Journal], bank: Bank) -> None:
    entered, leave = threading.Event(), threading.Event()
    journal, other = opened(lease=timedelta(milliseconds=300)), opened(lease=timedelta(milliseconds=300))
    builder = paying(journal, slow(entered, leave, bank))

    async def quick(state: State) -> dict[str, Any]:
        await asyncio.get_running_loop().run_in_executor(None, entered.wait, 30)
        return {"other": "done"}

    builder.add_node("quick", quick)
    builder.add_edge(START, "quick")
    graph = durable(builder, journal)

    async def pausing() -> None:
        async for _ in graph.astream({}, THREAD):
            if not leave.is_set():
                renewed = partial(_renewed_since, other, _expiry(journal))
                await asyncio.get_running_loop().run_in_executor(None, until, renewed)
                leave.set()

    asyncio.run(pausing())
    assert journal.runs.get("claim-0042").state == "done"
    assert len(bank.calls) == 1


def test_a_stream_of_many_short_pauses_keeps_its_lease(opened: Callable[..., Journal]) -> None:
    journal = opened(lease=timedelta(milliseconds=1500))
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    names = [f"n{number}" for number in range(6)]
    for one, other in zip((START, *names), names, strict=False):
        builder.add_node(other, lambda state: {"other": "on"})
        builder.add_edge(one, other)
    pause = threading.Event()
    for _ in durable(builder, journal).stream({}, THREAD):
        pause.wait(0.6)  # under half a lease, always across a beat
        assert journal.leases.holder("thread:claim-0042") is not None

    assert journal.runs.get("claim-0042").state == "done"


def _renewed_since(journal: Journal, expiry: int) -> bool | None:
    return True if _expiry(journal) > expiry + 600 else None


def _expiry(journal: Journal) -> int:
    with journal.store.reading() as tx:
        row = tx.one("select expires_ms from leases where name = 'thread:claim-0042'")
    assert row is not None
    return int(row["expires_ms"])


# --- settling late -----------------------------------------------------------------------------------------------------


def test_a_run_that_waits_for_a_person_is_woken_by_the_worker_that_knows(
    opened: Callable[..., Journal], bank: Bank, clock: MovingClock
) -> None:
    first, second = opened(clock=clock), opened(clock=clock)
    stale = asked(first, "thread:claim-0042", thread_id="claim-0042")
    graph = durable(paying(second, bank.effect(NEITHER)), second)
    clock.move(timedelta(minutes=1))
    claim = claimed(first, _as_the_graph_would(graph, stale))
    clock.move(timedelta(minutes=1))
    with pytest.raises(EffectInDoubt):
        graph.invoke({}, THREAD)
    assert second.runs.get("claim-0042").state == "parked"
    first.effects.settle(claim, {"paid": 5})

    assert second.runs.get("claim-0042").state == "admitted"
    assert graph.invoke(None, THREAD)["payment"] == {"paid": 5}
    assert bank.calls == []
    assert list(second.audit.verify()) == []


def _as_the_graph_would(graph: DurableGraph, request: Request) -> Request:
    """Return the request with the key and digest that the graph's own node makes."""
    arguments: dict[str, Any] = {"claim_id": "1", "amount": 5}
    digest = sha256(arguments)[:16]
    return Request(request.slot, request.place, "pay", arguments, digest, sha256(arguments), None, 0)


def test_the_truth_is_recorded_even_after_a_person_said_nothing_happened(journal: Journal) -> None:
    request = asked(journal, "thread:a", once="claim-1")
    claim = claimed(journal, request)
    journal.leases.give_back(request.place.held)
    journal.effects.resolve(request.key, happened=False, principal="operator-1")
    settled = journal.effects.settle(claim, {"paid": 5})

    assert (settled.state, settled.outcome) == ("settled", {"paid": 5})
    again = journal.effects.claim(
        asked(journal, "thread:b", thread_id="b", once="claim-1"), person_needed=lambda age: False
    )
    assert isinstance(again, EffectRecord)
    assert again.outcome == {"paid": 5}


def test_a_freed_slot_keeps_its_key_for_the_same_request(journal: Journal) -> None:
    request = asked(journal, "thread:a", once="claim-1")
    claimed(journal, request)
    journal.leases.give_back(request.place.held)
    journal.effects.resolve(request.key, happened=False, principal="operator-1")
    again = claimed(journal, asked(journal, "thread:b", thread_id="b", once="claim-1"))

    assert again.record.key == request.key


def test_an_execution_whose_slot_was_given_away_is_on_record(journal: Journal, clock: MovingClock) -> None:
    first = asked(journal, "thread:a")
    stale = claimed(journal, first)
    journal.leases.give_back(first.place.held)
    journal.effects.resolve(first.key, happened=False, principal="operator-1")
    second = asked(journal, "thread:a")
    other = Request(second.slot, second.place, "pay", {"amount": 6}, "e", "whole", None, 0)
    journal.effects.settle(claimed(journal, other), {"paid": 6})
    with pytest.raises(EffectConflict, match="both may have happened"):
        journal.effects.settle(stale, {"paid": 5})

    [fault] = [fault for fault in journal.audit.verify() if "a run" not in fault]
    assert first.key in fault


def test_a_caller_that_left_before_the_call_leaves_nothing_in_doubt(journal: Journal, bank: Bank) -> None:
    graph = durable(paying(journal, _async_pay(bank)), journal)

    async def cancelled_after(turns: int) -> None:
        task = asyncio.create_task(graph.ainvoke({}, thread(f"t-{turns}")))
        while not journal.effects.list(thread_id=f"t-{turns}"):  # noqa: ASYNC110  # as soon as the claim is there
            await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    for turns in range(10):
        asyncio.run(cancelled_after(turns))
        called = len([call for call in bank.calls if call["key"].startswith(f"t-{turns}:")])
        try:
            graph.invoke(None, thread(f"t-{turns}"))
        except EffectInDoubt:
            # It had begun to call: only then may nobody know.
            assert called == 1
        else:
            assert len([call for call in bank.calls if call["key"].startswith(f"t-{turns}:")]) == 1


def _async_pay(bank: Bank) -> Effect:
    @effect(receiver=NEITHER, name="pay")
    async def pay(*, claim_id: str, amount: int, key: str) -> dict[str, Any]:
        paid = bank.execute(claim_id=claim_id, amount=amount, key=key)
        await asyncio.sleep(0)
        return paid

    return pay


def test_a_late_doubt_cannot_touch_a_claim_that_was_taken_over(journal: Journal, clock: MovingClock) -> None:
    first = asked(journal, "thread:a", once="claim-1")
    stale = claimed(journal, first)
    journal.leases.give_back(first.place.held)
    claimed(journal, asked(journal, "thread:b", thread_id="b", once="claim-1"))
    journal.effects.doubt(stale, why="no answer")

    assert journal.effects.get(first.key).state == "claimed"
    with pytest.raises(EffectBusy):
        journal.effects.claim(
            asked(journal, "thread:c", thread_id="c", once="claim-1"), person_needed=lambda age: False
        )
    with pytest.raises(EffectBusy):
        journal.effects.resolve(first.key, happened=False, principal="operator-1")


def test_a_late_release_cannot_free_a_claim_that_was_taken_over(journal: Journal) -> None:
    """The receiver refused the first worker's request while the second was at its own call."""
    first = asked(journal, "thread:a", once="claim-1")
    stale = claimed(journal, first)
    journal.leases.give_back(first.place.held)
    claimed(journal, asked(journal, "thread:b", thread_id="b", once="claim-1"))
    journal.effects.release(stale, why="key revoked")

    assert journal.effects.get(first.key).state == "claimed"


def test_an_effect_at_work_is_not_resolved(opened: Callable[..., Journal], clock: MovingClock) -> None:
    """A person who frees the slot of a call under way would have it called twice; once its worker's lease is over, they may."""
    journal = opened(clock=clock)
    first = asked(journal, "thread:a")
    claimed(journal, first)
    for happened in (True, False):
        with pytest.raises(EffectBusy, match="being executed"):
            journal.effects.resolve(first.key, happened=happened, outcome={}, principal="operator-1")

    assert journal.effects.get(first.key).state == "claimed"
    clock.move(timedelta(minutes=1))
    assert journal.effects.resolve(first.key, happened=False, principal="operator-1").state == "released"


def test_an_effect_at_work_is_not_begun_again_under_the_same_lease(journal: Journal, bank: Bank) -> None:
    """A node that timed out runs again in its own worker while its tool still runs in a thread; the lease tells nothing there."""
    pay = bank.effect()
    request = asked(journal, "thread:a")
    elsewhere = replace(request, place=replace(request.place, task="another task"))
    at_work = perform(journal.effects, pay, request)
    assert isinstance(next(at_work), Call)

    with pytest.raises(EffectBusy, match="by this process"):
        next(perform(journal.effects, pay, request))
    with pytest.raises(SlotAmbiguous, match="being executed"):
        next(perform(journal.effects, pay, elsewhere))
    assert journal.effects.get(request.key).calls == 1
    at_work.close()


def test_a_look_up_waits_until_the_receiver_is_sure_to_know(
    opened: Callable[..., Journal], bank: Bank, clock: MovingClock
) -> None:
    """A payment that was made and is not visible yet would be made again."""
    journal = opened(clock=clock)
    pay = bank.effect(Receiver(settle_delay=timedelta(seconds=30)))
    pay.lookup(lambda **call: None)
    first = asked(journal, "thread:a")
    claimed(journal, first)
    journal.leases.give_back(first.place.held)
    clock.move(timedelta(seconds=10))
    steps = perform(journal.effects, pay, asked(journal, "thread:a"))

    # Whoever gave a lease back may have been at its call until then; when that was, nobody wrote down.
    assert next(steps) == Wait(timedelta(seconds=30))
    steps.close()


def under_approval(journal: Journal, decision: str) -> str:
    """Have thread `theirs` ask for this very payment, decide it, and return the approval's id."""
    place = Place(None, "root", "task", "@root")
    question = Question(
        thread_id="theirs",
        node="approve",
        name="payout",
        visit=0,
        payload={"amount": 5},
        allowed=("approve", "reject"),
        approvers=None,
        edits=None,
        ttl=None,
        on_expiry="reject",
    )
    approval = journal.approvals.open(question, place=place)
    return journal.approvals.decide(approval.id, {"type": decision}, principal="adjuster-17").id


@pytest.mark.parametrize(("decision", "thread_id"), [("approve", "mine"), ("reject", "theirs"), ("approve", "theirs")])
def test_an_approval_allows_what_was_approved_in_its_own_thread(
    journal: Journal, decision: str, thread_id: str
) -> None:
    """The ledger reads the row: what the state says, somebody may have written by hand."""
    approval = under_approval(journal, decision)
    request = replace(
        asked(journal, "thread:a", thread_id=thread_id), approval_id=approval, approved_hash=sha256({"amount": 5})
    )
    if (decision, thread_id) == ("approve", "theirs"):
        assert claimed(journal, request).record.approval_id == approval
        return

    with pytest.raises(EffectNotApproved):
        claimed(journal, request)
    assert journal.effects.list() == []


def test_a_clock_set_back_before_a_call_is_told(opened: Callable[..., Journal], bank: Bank, clock: MovingClock) -> None:
    """By a clock that was set back an expired key would look young, and be sent again."""
    journal = opened(clock=clock)
    request = asked(journal, "thread:a")
    claimed(journal, request)
    journal.leases.give_back(request.place.held)
    clock.move(-timedelta(hours=3))

    with pytest.raises(ClockBehind, match="set the clock"):
        journal.effects.claim(asked(journal, "thread:a"), person_needed=lambda age: False)


def test_one_effect_never_answers_for_another(journal: Journal) -> None:
    request = asked(journal, "thread:a")
    journal.effects.settle(claimed(journal, request), {"paid": 5})
    journal.leases.give_back(request.place.held)
    other = asked(journal, "thread:a", name="refund")

    with pytest.raises(EffectConflict):
        journal.effects.claim(other, person_needed=lambda age: False)


# --- graphs that would hide a doubt ------------------------------------------------------------------------------------


def test_an_effect_takes_no_error_handler(journal: Journal, bank: Bank) -> None:
    with pytest.raises(GraphRefused, match="error handler"):
        durable(paying(journal, bank.effect(), error_handler=lambda state: {}), journal)


def test_an_effect_takes_no_default_policy(journal: Journal, bank: Bank) -> None:
    builder = paying(journal, bank.effect())
    builder.set_node_defaults(retry_policy=RetryPolicy())
    with pytest.raises(GraphRefused, match="retry"):
        durable(builder, journal)


def test_a_graph_around_an_effect_takes_no_policy_either(journal: Journal, bank: Bank) -> None:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("inner", paying(journal, bank.effect()).compile(), retry_policy=RetryPolicy())
    builder.add_edge(START, "inner")
    with pytest.raises(GraphRefused, match="inner/pay"):
        durable(builder, journal)


WRAPPINGS: dict[str, Callable[[Any], Any]] = {
    "fallbacks": lambda node: node.with_fallbacks([RunnableLambda(lambda state: {})]),
    "retry": lambda node: node.with_retry(),
    "last of a sequence": lambda node: (RunnableLambda(lambda state: state) | node).with_retry(),
}


@pytest.mark.parametrize("wrap", list(WRAPPINGS))
@pytest.mark.parametrize("inside", [False, True])
def test_an_effect_and_a_graph_around_it_take_no_retry_and_no_fallback(
    journal: Journal, bank: Bank, wrap: str, inside: bool
) -> None:
    node: Any = effect_node(bank.effect(), journal, arguments=lambda s: {"claim_id": "1", "amount": 5})
    wrapped = WRAPPINGS[wrap](paying(journal, bank.effect()).compile() if inside else node)
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("pay", wrapped)
    builder.add_edge(START, "pay")

    with pytest.raises(GraphRefused, match="fallback"):
        durable(builder, journal)


def test_an_effect_takes_tags_and_may_stand_in_a_sequence(journal: Journal, bank: Bank) -> None:
    node: Any = effect_node(bank.effect(), journal, arguments=lambda s: {"claim_id": "1", "amount": 5}, into="payment")
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("pay", RunnableLambda(lambda state: state) | node.with_config(tags=["money"]))
    builder.add_edge(START, "pay")

    assert durable(builder, journal).invoke({}, THREAD)["payment"]["paid"] == 5


def test_a_run_is_not_done_while_an_effect_is_unsettled(journal: Journal, bank: Bank) -> None:
    """A function that swallows everything hides the doubt from LangGraph, and not from the ledger."""
    inner = paying(journal, _unreachable(bank)).compile()

    def swallow(state: State) -> dict[str, Any]:
        with suppress(EffectInDoubt):
            inner.invoke({})
        return {"other": "went on"}

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("swallow", swallow)
    builder.add_edge(START, "swallow")
    with pytest.raises(RunDead, match="without the outcome of effect"):
        durable(builder, journal).invoke({}, THREAD)
    assert journal.runs.get("claim-0042").reason == "effect_unsettled"


def _unreachable(bank: Bank) -> Effect:
    @effect(receiver=NEITHER, name="pay")
    def pay(*, claim_id: str, amount: int, key: str) -> dict[str, Any]:
        raise Unreachable("no answer")

    return pay


@pytest.mark.parametrize("identity", [None, "", 1.5, True, ["a"]])
def test_a_business_identity_is_text_or_a_whole_number(journal: Journal, bank: Bank, identity: Any) -> None:
    graph = durable(paying(journal, bank.effect(KEYED, once=lambda arguments: identity)), journal)
    with pytest.raises(ArgumentsNotJson, match="once="):
        graph.invoke({}, THREAD)
    assert bank.calls == []


# --- whose run it is ---------------------------------------------------------------------------------------------------


def test_a_named_graph_carries_its_own_runs_only(journal: Journal, bank: Bank) -> None:
    orders = durable(paying(journal, bank.effect()), journal, name="orders")
    orders.invoke({}, THREAD)
    for other in (
        durable(paying(journal, bank.effect()), journal),
        durable(paying(journal, bank.effect()), journal, name="claims"),
    ):
        with pytest.raises(GraphChanged, match="orders"):
            other.invoke(None, THREAD)
    assert orders.invoke(None, THREAD)["payment"]["paid"] == 5


def test_another_graphs_run_takes_no_new_turn(journal: Journal, bank: Bank) -> None:
    durable(paying(journal, bank.effect()), journal, name="orders", turns=True).invoke({}, THREAD)
    claims = durable(paying(journal, bank.effect()), journal, name="claims", turns=True)
    before = journal.audit.entries("claim-0042")

    with pytest.raises(GraphChanged, match="orders"):
        claims.invoke({"other": "new"}, thread("claim-0042", submission="second"))
    assert journal.audit.entries("claim-0042") == before


@pytest.mark.parametrize("turn", [7, 0, -1, "1", True])
def test_a_forged_turn_is_refused(journal: Journal, bank: Bank, turn: Any) -> None:
    graph = durable(paying(journal, bank.effect()), journal)
    graph.invoke({}, THREAD)
    graph.compiled.update_state(THREAD, {"turn": turn})

    with pytest.raises(GraphChanged, match="wrote into the thread"):
        graph.invoke(None, THREAD)
    assert len(bank.calls) == 1


def test_a_past_rewritten_before_its_input_is_refused(journal: Journal, bank: Bank) -> None:
    """Such a branch has no turn; taken for one that is yet to begin, it would be given the input again, and pay a second time."""
    graph = durable(paying(journal, bank.effect()), journal)
    graph.invoke({}, THREAD, interrupt_before=["pay"])
    *_, first = graph.get_state_history(THREAD)
    branch = graph.compiled.update_state(first.config, {"payment": {}})
    graph.compiled.invoke(None, branch)

    with pytest.raises(GraphChanged, match="wrote into the thread"):
        graph.invoke(None, THREAD)
    assert len(bank.calls) == 1
