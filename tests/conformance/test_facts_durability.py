"""
What a crash leaves behind: LangGraph's behaviour (`test_langgraph_…`), and beside it what ours makes of it (`test_ours_…`).
"""

from __future__ import annotations

import asyncio
import operator
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import EmptyInputError, GraphDrained
from langgraph.func import entrypoint, task
from langgraph.graph import START
from langgraph.runtime import RunControl
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from checkpointing import Journal, open_journal
from checkpointing.errors import EffectConflict, InputChanged, InputRefused
from graph import DurableGraph, DurableState, answer, durable, thread
from nodes import effect_node
from tests.support.bank import Bank
from tests.support.plain import THREAD, OfficialSaver, Trace, builder_of, die, die_between, fail, official_saver, stall
from tests.support.points import die_at
from tests.support.processes import killed, start, until
from tests.support.small_claim import LEASE

INPUT = {"amount": 5, "notes": ["submitted"]}
ADJUSTER = thread("claim-0042", principal="adjuster-17")
THREE = ((START, "one"), ("one", "two"), ("two", "three"))


class Plain(TypedDict, total=False):
    amount: int
    answers: list[Any]


class State(DurableState):
    claim_id: str
    amount: int
    answers: list[Any]
    notes: Annotated[list[str], operator.add]
    payment: dict[str, Any]


def arguments(state: Any) -> dict[str, Any]:
    return {"claim_id": "1", "amount": state["amount"]}


def three(trace: Trace, saver: Any, *, dies_in: str = "", after: Callable[[float], object] | None = None) -> Any:
    """One, two, three; the process dies in the one named, *after* what it is to wait for."""

    def end(state: Any) -> None:
        if after:
            after(30)
        die()

    nodes = {name: trace.node(name, end if name == dies_in else None) for name in ("one", "two", "three")}
    return builder_of(Plain, *THREE, **nodes).compile(checkpointer=saver)


def paying(journal: Journal, bank: Bank, trace: Trace, *, dies_in: str = "") -> DurableGraph:
    """The same, with a payment in the middle."""
    nodes = {name: trace.node(name, die if name == dies_in else None) for name in ("one", "three")}
    pay = effect_node(bank.effect(), journal, arguments=arguments, into="payment")
    return durable(builder_of(State, *THREE, two=pay, **nodes), journal)


def carried_on(graph: DurableGraph) -> Any:
    """Advance the thread as soon as the dead process's lease is over."""
    thread_id = THREAD["configurable"]["thread_id"]
    until(lambda: True if graph.journal.leases.holder(f"thread:{thread_id}") is None else None)
    return graph.invoke(None, THREAD)


# --- supersteps that were never written -------------------------------------------------------------------------------


def plain_run(url: str, folder: Path, durability: str | None, slow_disk: bool) -> None:
    """Run to the end of three, and die there; the disk may be slow from the end of one on."""
    options: dict[str, Any] = {"durability": durability} if durability else {}
    begun = threading.Event()
    with official_saver(url) as saver:
        graph = three(Trace(folder / "trace"), saver, dies_in="three", after=begun.wait if slow_disk else None)
        if slow_disk:
            put = saver.put

            def slow(config: Any, checkpoint: Any, metadata: Any, versions: Any) -> Any:
                if metadata["step"] >= 1:
                    threading.Event().wait()
                written = put(config, checkpoint, metadata, versions)
                if metadata["step"] == 0:
                    begun.set()  # the checkpoint that one starts from is on disk, and none behind it
                return written

            saver.put = slow  # type: ignore[method-assign]
            stall(saver, "put_writes", lambda *given, **named: True)
        graph.invoke({"amount": 5}, THREAD, **options)


@pytest.mark.parametrize("durability", [None, "async"])
def test_langgraph_async_runs_on_before_its_steps_are_on_disk(
    url: str, tmp_path: Path, trace: Trace, durability: str | None
) -> None:
    """It is the default; and a key made of the task's id differs after the crash."""
    killed(start(plain_run, url, tmp_path, durability, True))
    with official_saver(url) as saver:
        three(trace, saver).invoke(None, THREAD)
    lost, again = trace.lines[:3], trace.lines[3:]

    assert trace.names == ["one", "two", "three", "one", "two", "three"]
    assert [line["step"] for line in lost] == [line["step"] for line in again]
    assert lost[0]["task"] == again[0]["task"]
    assert {line["task"] for line in lost[1:]}.isdisjoint(line["task"] for line in again)


def test_langgraph_exit_leaves_nothing_of_a_killed_run(url: str, tmp_path: Path, trace: Trace) -> None:
    """Not even the input: there is nothing that a nudge could go on from."""
    killed(start(plain_run, url, tmp_path, "exit", False))
    with official_saver(url) as saver, pytest.raises(EmptyInputError):
        three(trace, saver).invoke(None, THREAD)
    assert trace.names == ["one", "two", "three"]


def test_langgraph_sync_repeats_the_step_that_was_cut_off(url: str, tmp_path: Path, trace: Trace) -> None:
    killed(start(plain_run, url, tmp_path, "sync", False))
    with official_saver(url) as saver:
        three(trace, saver).invoke(None, THREAD)

    assert trace.names == ["one", "two", "three", "three"]
    assert trace.lines[2] == trace.lines[3]


def our_run(url: str, folder: Path, dies_in: str, point: str | None = None, nth: int = 1) -> None:
    with open_journal(url, lease=LEASE) as journal:
        if point:
            die_at(point, nth=nth)
        paying(journal, Bank(folder / "bank"), Trace(folder / "trace"), dies_in=dies_in).invoke(INPUT, THREAD)


@pytest.mark.parametrize("durability", ["async", "exit"])
def test_ours_takes_sync_only(journal: Journal, bank: Bank, trace: Trace, durability: Any) -> None:
    graph = paying(journal, bank, trace)
    with pytest.raises(InputRefused, match="sync"):
        graph.invoke({"amount": 5}, THREAD, durability=durability)
    with pytest.raises(InputRefused, match="sync"):
        list(graph.stream({"amount": 5}, THREAD, durability=durability))
    assert (trace.names, bank.calls) == ([], [])


def test_ours_repeats_the_step_that_was_cut_off_and_no_effect(url: str, tmp_path: Path, trace: Trace) -> None:
    killed(start(our_run, url, tmp_path, "three"))
    with open_journal(url, lease=LEASE) as journal:
        carried_on(paying(journal, Bank(tmp_path / "bank"), trace))

    assert trace.names == ["one", "three", "three"]
    assert len(Bank(tmp_path / "bank").calls) == 1


def test_ours_carries_on_a_run_of_which_no_checkpoint_was_written(url: str, tmp_path: Path, trace: Trace) -> None:
    """LangGraph has nothing of it; the input is in the run's row."""
    killed(start(our_run, url, tmp_path, "", "before checkpoint.put"))
    with open_journal(url, lease=LEASE) as journal:
        done = carried_on(paying(journal, Bank(tmp_path / "bank"), trace))

    assert done["payment"]["paid"] == 5
    assert trace.names == ["one", "three"]


# --- what tasks wrote is not waited for -------------------------------------------------------------------------------


def test_langgraph_runs_on_although_a_tasks_writes_failed(each_saver: OfficialSaver, trace: Trace) -> None:
    """Issues 8039 and 8234: even under sync the error comes at the end, and the steps behind it have run."""
    fail(each_saver, "put_writes", lambda *given, **named: True, OSError("disk full"))

    with pytest.raises(OSError, match="disk full"):
        three(trace, each_saver).invoke({"amount": 5}, THREAD, durability="sync")
    assert trace.names == ["one", "two", "three"]


def test_ours_paid_once_although_the_payments_writes_failed(journal: Journal, bank: Bank, trace: Trace) -> None:
    graph = paying(journal, bank, trace)
    fail(journal.saver, "put_writes", lambda config, writes, *rest: "payment" in dict(writes), OSError("disk full"))
    with pytest.raises(OSError, match="disk full"):
        graph.invoke({"amount": 5}, THREAD)
    done = graph.invoke(None, THREAD)

    assert (done["payment"]["paid"], len(bank.calls)) == (5, 1)
    assert journal.runs.get("claim-0042").state == "done"


def resuming(url: str, folder: Path) -> None:
    """Answer the question and die where the answer is used; what the disk was told of it does not arrive."""
    with official_saver(url) as saver:
        stall(saver, "put_writes", lambda *given, **named: True)
        asking(Trace(folder / "trace"), saver, dies=True).invoke(Command(resume="yes"), THREAD, durability="sync")


def asking(trace: Trace, saver: Any, *, dies: bool = False) -> Any:
    def ask(state: Any) -> dict[str, Any]:
        answer = interrupt("pay?")
        trace.mark(f"answered {answer}")
        if dies:
            die()
        return {"answers": [answer]}

    return builder_of(Plain, (START, "ask"), ask=ask).compile(checkpointer=saver)


def test_langgraph_hands_an_answer_out_before_it_is_on_disk(url: str, tmp_path: Path, trace: Trace) -> None:
    """The node acted on a plain answer that nobody has any more."""
    with official_saver(url) as saver:
        asking(trace, saver).invoke({"amount": 5}, THREAD, durability="sync")
    killed(start(resuming, url, tmp_path))
    with official_saver(url) as saver:
        nudged = asking(trace, saver).invoke(None, THREAD)

    assert trace.names == ["answered yes"]
    assert nudged["__interrupt__"][0].value == "pay?"


def ours_asking(journal: Journal, trace: Trace, *, dies: bool = False) -> DurableGraph:
    def ask(state: Any) -> dict[str, Any]:
        said = interrupt("pay?")
        trace.mark(f"answered {said}")
        if dies:
            die()
        return {"answers": [said]}

    return durable(builder_of(State, (START, "ask"), ask=ask), journal)


def ours_resuming(url: str, folder: Path) -> None:
    with open_journal(url, lease=LEASE) as journal:
        graph = ours_asking(journal, Trace(folder / "trace"), dies=True)
        [question] = graph.get_state(THREAD).interrupts
        stall(journal.saver, "put_writes", lambda *given, **named: True)
        graph.invoke(answer(question, "yes"), ADJUSTER)


def test_ours_has_an_answer_on_disk_before_it_is_handed_out(url: str, tmp_path: Path, trace: Trace) -> None:
    with open_journal(url, lease=LEASE) as journal:
        ours_asking(journal, trace).invoke({"amount": 5}, THREAD)
    killed(start(ours_resuming, url, tmp_path))
    with open_journal(url, lease=LEASE) as journal:
        done = carried_on(ours_asking(journal, trace))

    assert trace.names == ["answered yes", "answered yes"]
    assert done["answers"] == ["yes"]


# --- a sibling that had finished --------------------------------------------------------------------------------------

BESIDE = ((START, "pay"), (START, "other"))


def beside(trace: Trace, saver: Any, paid: threading.Event, *, dies: bool = False) -> Any:
    """A payment, and beside it a node that dies once the payment is made."""

    def pay(state: Any) -> dict[str, Any]:
        paid.set()
        return {"amount": 6}

    def other(state: Any) -> dict[str, Any]:
        if dies and paid.wait(30):
            die()
        return {}

    return builder_of(Plain, *BESIDE, pay=trace.node("pay", pay), other=other).compile(checkpointer=saver)


def plain_beside(url: str, folder: Path) -> None:
    with official_saver(url) as saver:
        stall(saver, "put_writes", lambda *given, **named: True)
        beside(Trace(folder / "trace"), saver, threading.Event(), dies=True).invoke(
            {"amount": 5}, THREAD, durability="sync"
        )


def test_langgraph_runs_a_finished_sibling_again(url: str, tmp_path: Path, trace: Trace) -> None:
    """Its output was not on disk yet when the process died of the other one."""
    killed(start(plain_beside, url, tmp_path))
    with official_saver(url) as saver:
        beside(trace, saver, threading.Event()).invoke(None, THREAD)

    assert trace.names == ["pay", "pay"]


def ours_beside(journal: Journal, bank: Bank, *, dies: bool = False) -> DurableGraph:
    def other(state: Any) -> dict[str, Any]:
        if dies:
            until(lambda: True if [one for one in journal.effects.list() if one.state == "settled"] else None)
            die()
        return {}

    pay = effect_node(bank.effect(), journal, arguments=arguments, into="payment")
    return durable(builder_of(State, *BESIDE, pay=pay, other=other), journal)


def our_beside(url: str, folder: Path) -> None:
    with open_journal(url, lease=LEASE) as journal:
        stall(journal.saver, "put_writes", lambda *given, **named: True)
        ours_beside(journal, Bank(folder / "bank"), dies=True).invoke({"amount": 5}, THREAD)


def test_ours_answers_a_finished_sibling_from_the_ledger(url: str, tmp_path: Path, bank: Bank) -> None:
    killed(start(our_beside, url, tmp_path))
    with open_journal(url, lease=LEASE) as journal:
        done = carried_on(ours_beside(journal, bank))

    assert (done["payment"]["paid"], len(bank.calls)) == (5, 1)


# --- between a node's writes and the next checkpoint ------------------------------------------------------------------


def plain_between(url: str, folder: Path) -> None:
    with official_saver(url) as saver:
        die_between(saver, lambda writes: ("amount", 6) in writes, step=2)
        between(Trace(folder / "trace"), saver).invoke({"amount": 5}, THREAD, durability="sync")


def between(trace: Trace, saver: Any) -> Any:
    nodes = {"one": trace.node("one"), "two": trace.node("two", lambda s: {"amount": 6}), "three": trace.node("three")}
    return builder_of(Plain, *THREE, **nodes).compile(checkpointer=saver)


def test_langgraph_has_nothing_next_although_work_is_left(url: str, tmp_path: Path, trace: Trace) -> None:
    killed(start(plain_between, url, tmp_path))
    with official_saver(url) as saver:
        graph = between(trace, saver)
        snapshot = graph.get_state(THREAD)
        assert (snapshot.next, [task.name for task in snapshot.tasks]) == ((), ["two"])
        graph.invoke(None, THREAD)

    assert trace.names == ["one", "two", "three"]


def our_between(url: str, folder: Path) -> None:
    with open_journal(url, lease=LEASE) as journal:
        die_between(journal.saver, lambda writes: "payment" in dict(writes), step=2)
        paying(journal, Bank(folder / "bank"), Trace(folder / "trace")).invoke(INPUT, THREAD)


def test_ours_goes_on_from_between_writes_and_checkpoint(url: str, tmp_path: Path, trace: Trace) -> None:
    killed(start(our_between, url, tmp_path))
    with open_journal(url, lease=LEASE) as journal:
        graph = paying(journal, Bank(tmp_path / "bank"), trace)
        assert graph.get_state(THREAD).next == ()
        carried_on(graph)

        assert journal.runs.get("claim-0042").state == "done"
    assert trace.names == ["one", "three"]
    assert len(Bank(tmp_path / "bank").calls) == 1


@pytest.mark.parametrize("nth", [1, 2, 3, 4])
def test_ours_takes_its_input_once_whatever_checkpoint_was_lost(
    url: str, tmp_path: Path, trace: Trace, nth: int
) -> None:
    """The input's checkpoint, and then that of each step; whatever of the writes was on disk by then."""
    killed(start(our_run, url, tmp_path, "", "before checkpoint.put", nth))
    with open_journal(url, lease=LEASE) as journal:
        done = carried_on(paying(journal, Bank(tmp_path / "bank"), trace))

        assert journal.runs.get("claim-0042").state == "done"
    assert trace.names.count("three") >= 1
    assert done["notes"] == ["submitted"]
    assert (done["payment"]["paid"], len(Bank(tmp_path / "bank").calls)) == (5, 1)


# --- numbers that look like an identity -------------------------------------------------------------------------------


def test_langgraph_counts_steps_anew_in_a_subgraph(saver: OfficialSaver, trace: Trace) -> None:
    """A key made of thread, step and arguments is the same for two payments, and the second is not made."""
    inner = builder_of(Plain, (START, "pay"), pay=trace.node("pay"))
    outer = builder_of(Plain, (START, "pay"), ("pay", "sub"), pay=trace.node("pay"), sub=inner.compile())
    outer.compile(checkpointer=saver).invoke({"amount": 5}, THREAD)

    assert [(line["name"], line["step"]) for line in trace.lines] == [("pay", 1), ("pay", 1)]


def test_ours_tells_a_subgraphs_effect_from_its_namesake(journal: Journal, bank: Bank) -> None:
    pay = effect_node(bank.effect(), journal, arguments=arguments)
    inner = builder_of(State, (START, "pay"), pay=pay)
    outer = builder_of(State, (START, "pay"), ("pay", "sub"), pay=pay, sub=inner.compile())
    durable(outer, journal).invoke({"amount": 5}, THREAD)

    assert sorted(record.step for record in journal.effects.list()) == ["pay.0", "sub/pay.0"]
    assert len(bank.executed) == 2


def test_langgraph_calls_every_run_of_a_node_the_first_attempt(saver: OfficialSaver) -> None:
    """So a node that gives up after a number of attempts never does."""
    attempts: list[int] = []

    def node(state: Any, runtime: Any) -> dict[str, Any]:
        attempts.append(runtime.execution_info.node_attempt)
        raise RuntimeError("again")

    graph = builder_of(Plain, (START, "node"), node=node).compile(checkpointer=saver)
    for given in ({"amount": 5}, None, None):
        with pytest.raises(RuntimeError):
            graph.invoke(given, THREAD)

    assert attempts == [1, 1, 1]


# --- the same input again ---------------------------------------------------------------------------------------------


def test_langgraph_runs_the_same_input_twice(saver: OfficialSaver, trace: Trace) -> None:
    graph = three(trace, saver)
    graph.invoke({"amount": 5}, THREAD)
    graph.invoke({"amount": 5}, THREAD)

    assert trace.names == ["one", "two", "three", "one", "two", "three"]


def test_langgraph_resumes_under_one_run_id_and_ignores_another_input(saver: OfficialSaver, trace: Trace) -> None:
    graph = three(trace, saver)
    named: RunnableConfig = {**THREAD, "metadata": {"run_id": "r-1"}}
    graph.invoke({"amount": 5}, named)
    again = graph.invoke({"amount": 7}, named)

    assert again == {"amount": 5}
    assert trace.names == ["one", "two", "three"]


def test_ours_runs_the_same_input_once_and_refuses_another(journal: Journal, bank: Bank, trace: Trace) -> None:
    graph = paying(journal, bank, trace)
    first = graph.invoke({"amount": 5}, THREAD)
    named: RunnableConfig = {**THREAD, "metadata": {"run_id": "r-1"}}

    assert graph.invoke({"amount": 5}, THREAD) == first
    with pytest.raises(InputChanged):
        graph.invoke({"amount": 7}, named)
    assert (trace.names, len(bank.calls)) == (["one", "three"], 1)


# --- results by position ----------------------------------------------------------------------------------------------


def test_langgraph_matches_a_tasks_result_by_position(saver: OfficialSaver) -> None:
    """The run was cut off after alice; the next one asks for bob first, and gets her receipt."""
    paid: list[str] = []
    order = ["alice", "bob"]

    @task
    def pay(who: str) -> str:
        paid.append(who)
        return f"receipt of {who}"

    @entrypoint(checkpointer=saver)
    def workflow(given: str) -> dict[str, str]:
        receipts = {}
        for who in order:
            receipts[who] = pay(who).result()
            if len(order) == len(paid) + 1:
                raise RuntimeError("cut off")
        return receipts

    with pytest.raises(RuntimeError):
        workflow.invoke("go", THREAD)
    order.reverse()
    paid.append("-")
    receipts = workflow.invoke(None, THREAD)

    assert receipts["bob"] == "receipt of alice"


def test_ours_never_answers_with_the_receipt_of_other_arguments(journal: Journal, bank: Bank) -> None:
    """The same slot, asked for bob after it was asked for alice."""
    who = ["alice"]

    def asked(state: Any) -> dict[str, Any]:
        return {"claim_id": who[0], "amount": 5}

    graph = durable(
        builder_of(State, (START, "pay"), pay=effect_node(bank.effect(), journal, arguments=asked)), journal
    )
    fail(journal.saver, "put_writes", lambda config, writes, *rest: "effects" in dict(writes), OSError("disk full"))
    fail(journal.saver, "put", lambda config, checkpoint, metadata, *rest: metadata["step"] == 1, OSError("disk full"))
    with pytest.raises(OSError, match="disk full"):
        graph.invoke({}, THREAD)
    who[0] = "bob"

    with pytest.raises(EffectConflict, match="pay.0"):
        graph.invoke(None, THREAD)
    assert [call["claim_id"] for call in bank.calls] == ["alice"]


# --- whoever calls leaves ---------------------------------------------------------------------------------------------


def test_langgraph_runs_a_cancelled_node_again(trace: Trace) -> None:
    """What its thread is doing goes on, and is done again. In memory, because SQLite's own saver takes no `ainvoke`."""
    entered, leave, left = threading.Event(), threading.Event(), []

    def pay() -> None:
        entered.set()
        leave.wait(30)
        trace.mark("paid")
        left.append(threading.current_thread())

    async def node(state: Any) -> dict[str, Any]:
        await asyncio.to_thread(pay)
        return {}

    graph = builder_of(Plain, (START, "node"), node=node).compile(checkpointer=InMemorySaver())

    async def cancelled() -> None:
        call = asyncio.create_task(graph.ainvoke({"amount": 5}, THREAD))
        await asyncio.to_thread(entered.wait, 30)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        leave.set()
        await graph.ainvoke(None, THREAD)

    asyncio.run(cancelled())
    assert trace.names == ["paid", "paid"]


def test_langgraph_goes_on_behind_a_stream_that_was_left(saver: OfficialSaver, trace: Trace) -> None:
    graph = three(trace, saver)
    stream = graph.stream({"amount": 5}, THREAD, durability="sync")
    next(stream)
    stream.close()
    ran = trace.names
    graph.invoke(None, THREAD)

    assert ran[0] == "one"
    assert trace.names == ["one", "two", "three"]


# --- draining ---------------------------------------------------------------------------------------------------------


def test_langgraph_drops_an_answer_when_it_drains(saver: OfficialSaver, trace: Trace) -> None:
    """The call that brought a decision as a map stops before it begins; the decision is nowhere."""
    graph = asking(trace, saver)
    [asked] = graph.invoke({"amount": 5}, THREAD)["__interrupt__"]
    control = RunControl()
    control.request_drain()
    with pytest.raises(GraphDrained):
        graph.invoke(Command(resume={asked.id: "yes"}), THREAD, control=control)

    assert graph.invoke(None, THREAD)["__interrupt__"][0].value == "pay?"
    assert trace.names == []


def test_ours_keeps_an_answer_when_it_drains(journal: Journal, trace: Trace) -> None:
    graph = ours_asking(journal, trace)
    [asked] = graph.invoke({"amount": 5}, THREAD)["__interrupt__"]
    control = RunControl()
    control.request_drain()
    with pytest.raises(GraphDrained):
        graph.invoke(answer(asked, "yes"), ADJUSTER, control=control)

    assert graph.invoke(None, THREAD)["answers"] == ["yes"]


def test_ours_begins_with_its_input_once_however_often_it_drains(journal: Journal, bank: Bank, trace: Trace) -> None:
    """A drain before the first step leaves a checkpoint without the input, and the next call brings it again."""
    graph = paying(journal, bank, trace)
    control = RunControl()
    control.request_drain()
    for _ in range(3):
        with pytest.raises(GraphDrained):
            graph.invoke(INPUT, THREAD, control=control)
    done = graph.invoke(None, THREAD)

    assert (done["notes"], trace.names, len(bank.calls)) == (["submitted"], ["one", "three"], 1)


def test_ours_counts_no_attempt_for_a_drain(journal: Journal, trace: Trace) -> None:
    """A host that is told to end is not a failure of the run, however often it happens to be this one's."""
    graph = ours_asking(journal, trace)
    [asked] = graph.invoke({"amount": 5}, THREAD)["__interrupt__"]
    control = RunControl()
    control.request_drain()
    for given in (answer(asked, "yes"), *[None] * 9):
        with pytest.raises(GraphDrained):
            graph.invoke(given, ADJUSTER, control=control)
    run = journal.runs.get("claim-0042")

    assert (run.state, run.attempts, run.error) == ("admitted", 0, None)
    assert graph.invoke(None, THREAD)["answers"] == ["yes"]
