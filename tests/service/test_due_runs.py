"""When a worker looks at a run, and what it makes of one that it cannot carry on; the journal's clock is moved."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from checkpointing import Journal
from checkpointing.errors import RunBusy, RunDead
from checkpointing.leases import thread_lease
from checkpointing.runs import OWN_MS
from graph import DurableGraph, DurableState, answer, durable, thread
from graph.backoff import Backoff
from service.worker import Draining
from service.worker.advancing import LEFT_ALONE, Advanced, advance
from tests.support.clock import MovingClock
from tests.support.small_claim import THREAD, act, small_claim

MOMENT = timedelta(milliseconds=1)
LEASE = timedelta(seconds=30)
ATTEMPTS = 6


class State(DurableState):
    ready: bool
    answer: str


@pytest.fixture
def journal(opened: Callable[..., Journal], clock: MovingClock) -> Journal:
    return opened(clock=clock, lease=LEASE)


def looked_at(graph: DurableGraph, thread_id: str = THREAD, draining: Draining | None = None) -> Advanced:
    """Have a worker look at the thread."""
    return advance({graph.name: graph}, graph.journal, thread_id, draining or Draining())


def one_node(journal: Journal, node: Any, **options: Any) -> DurableGraph:
    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    return durable(builder, journal, attempts=ATTEMPTS, **options)


def fails(state: State) -> dict[str, Any]:
    raise OSError("the fuse has blown")


def test_a_submitted_run_is_the_workers_at_once(journal: Journal, tmp_path: Path) -> None:
    small_claim(journal, tmp_path).submit({"claim_id": "0042"}, thread(THREAD))

    assert journal.runs.due("", limit=9) == (THREAD,)


def test_a_run_whose_caller_died_before_it_began_is_found_later(
    journal: Journal, clock: MovingClock, tmp_path: Path
) -> None:
    """Whoever admits a run by `invoke` means to run it, and has a few seconds to take its lease."""
    graph = small_claim(journal, tmp_path)
    graph.submit({"claim_id": "0001"}, thread("another"))
    admit_only(graph)

    assert journal.runs.due("", limit=9) == ("another",)
    clock.move(timedelta(milliseconds=OWN_MS))
    assert journal.runs.due("", limit=9) == ("another", THREAD)


def admit_only(graph: DurableGraph) -> None:
    """Do what `invoke` does up to the admission; then somebody else holds the thread."""
    held = graph.journal.leases.take(thread_lease(THREAD))
    with pytest.raises(RunBusy):
        graph.invoke({"claim_id": "0042"}, thread(THREAD))
    graph.journal.leases.give_back(held)


def test_a_run_whose_worker_died_is_found_when_its_lease_is_over(
    journal: Journal, clock: MovingClock, tmp_path: Path
) -> None:
    small_claim(journal, tmp_path).submit({"claim_id": "0042"}, thread(THREAD))
    lease = journal.leases.take(thread_lease(THREAD))
    journal.runs.start(lease, THREAD, head="")
    clock.move(LEASE - MOMENT)

    assert journal.runs.due("", limit=9) == ()
    clock.move(MOMENT)
    assert journal.runs.due("", limit=9) == (THREAD,)


@pytest.mark.parametrize("ttl", [timedelta(days=2), None])
def test_a_parked_run_is_looked_at_when_its_question_expires(
    journal: Journal, clock: MovingClock, tmp_path: Path, ttl: timedelta | None
) -> None:
    graph = small_claim(journal, tmp_path, ttl=ttl)
    graph.submit({"claim_id": "0042"}, thread(THREAD))

    assert looked_at(graph).outcome == "parked"
    clock.move(timedelta(days=2) - MOMENT)
    assert journal.runs.due("", limit=9) == ()
    clock.move(MOMENT)
    assert journal.runs.due("", limit=9) == ((THREAD,) if ttl else ())
    if ttl:
        assert looked_at(graph).outcome == "done"


def test_a_decided_run_is_the_workers_at_once(journal: Journal, clock: MovingClock, tmp_path: Path) -> None:
    graph = small_claim(journal, tmp_path, ttl=timedelta(days=2))
    graph.submit({"claim_id": "0042"}, thread(THREAD))
    looked_at(graph)
    [asked] = journal.approvals.pending(thread_id=THREAD)
    journal.approvals.decide(asked.id, {"type": "approve"}, principal="adjuster-17")

    assert journal.runs.due("", limit=9) == (THREAD,)
    assert looked_at(graph).outcome == "done"


def test_nobody_looks_at_a_run_that_has_ended(journal: Journal, clock: MovingClock, tmp_path: Path) -> None:
    graph = small_claim(journal, tmp_path)
    act(graph, "submit")
    act(graph, "approve")
    one_node(journal, fails).submit({}, thread("dies"))
    for _ in range(ATTEMPTS):
        clock.move(timedelta(hours=1))
        looked_at(one_node(journal, fails), "dies")

    clock.move(timedelta(days=1000))
    assert journal.runs.get("dies").state == "dead"
    assert [journal.runs.get(one).due_at for one in (THREAD, "dies")] == [None, None]
    assert journal.runs.due("", limit=9) == ()


def test_a_redriven_run_is_the_workers_at_once(journal: Journal, clock: MovingClock) -> None:
    graph = one_node(journal, fails)
    graph.submit({}, thread(THREAD))
    for _ in range(ATTEMPTS):
        clock.move(timedelta(hours=1))
        looked_at(graph)
    journal.runs.redrive(THREAD, principal="operator-3")

    assert journal.runs.due("", limit=9) == (THREAD,)


def test_a_run_that_fails_waits_twice_as_long_each_time(journal: Journal, clock: MovingClock) -> None:
    longest = timedelta(seconds=10)
    graph = one_node(journal, fails, backoff=Backoff(first=timedelta(seconds=1), longest=longest))
    graph.submit({}, thread(THREAD))
    for full in (1, 2, 4, 8, 10):
        assert looked_at(graph).outcome == "admitted"
        run = journal.runs.get(THREAD)
        assert run.due_at is not None

        assert full / 2 <= (run.due_at - clock()).total_seconds() <= full
        clock.now = run.due_at
    assert looked_at(graph).outcome == "dead"


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, BaseException])
def test_a_node_that_ends_its_process_uses_up_its_attempts(
    journal: Journal, clock: MovingClock, kind: type[BaseException]
) -> None:
    """`sys.exit` in a node, by argparse say, is no caller who left: given back, the attempt would be made again for ever."""

    def leaves(state: State) -> dict[str, Any]:
        raise kind("usage: ...")

    graph = one_node(journal, leaves)
    graph.submit({}, thread(THREAD))
    outcomes = []
    for _ in range(ATTEMPTS):
        clock.move(timedelta(hours=1))
        with ThreadPoolExecutor(1) as worker:  # as in a worker: only the main thread hears Ctrl-C
            outcomes.append(worker.submit(looked_at, graph).result().outcome)

    assert outcomes == ["admitted"] * (ATTEMPTS - 1) + ["dead"]
    assert journal.runs.get(THREAD).error == f"{kind.__name__}: usage: ..."


def test_a_dead_letter_of_another_thread_is_a_nodes_own_error(journal: Journal, clock: MovingClock) -> None:
    """A node that calls another durable graph, whose run is dead, has failed; its own run is neither dead nor taken over by anybody."""
    inner = one_node(journal, fails, name="inner")
    inner.submit({}, thread("inner"))
    for _ in range(ATTEMPTS):
        clock.move(timedelta(hours=1))
        looked_at(inner, "inner")

    def calls(state: State) -> dict[str, Any]:
        inner.invoke(None, thread("inner"))
        return {}

    outer = one_node(journal, calls, name="outer")
    outer.submit({}, thread(THREAD))
    said = looked_at(outer)
    run = journal.runs.get(THREAD)

    assert journal.runs.get("inner").state == "dead"
    assert said.outcome == "admitted"
    assert (run.attempts, run.resumes) == (1, 0)
    assert str(run.error).startswith("RunDead: thread 'inner' is a dead letter")
    assert run.due_at is not None
    assert run.due_at > clock()


def test_a_checkpoint_that_cannot_be_read_uses_up_the_attempts(
    journal: Journal, clock: MovingClock, tmp_path: Path
) -> None:
    """A class that is gone, say: looked at every half minute, it would be a run that never ends."""
    graph = small_claim(journal, tmp_path, ttl=None)
    graph.submit({"claim_id": "0042"}, thread(THREAD))
    looked_at(graph)
    [asked] = journal.approvals.pending(thread_id=THREAD)
    journal.approvals.decide(asked.id, {"type": "approve"}, principal="adjuster-17")
    table = "checkpoint_blobs" if journal.store.dialect.dispatches else "checkpoints"
    with journal.store.transaction("test.damage") as tx:
        tx.all(f"update {table} set type = 'nosuch'")  # noqa: S608  # one of two names of our own
    outcomes = []
    while len(outcomes) < 20 and journal.runs.get(THREAD).state != "dead":
        clock.move(timedelta(hours=1))
        outcomes.append(looked_at(graph).outcome)

    assert outcomes[-1] == "dead"
    assert "nosuch" in str(journal.runs.get(THREAD).error)


def test_a_worker_runs_a_graph_of_async_nodes(journal: Journal) -> None:
    async def node(state: State) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"answer": "yes"}

    graph = one_node(journal, node)
    graph.submit({}, thread(THREAD))

    assert looked_at(graph).outcome == "done"


def test_input_for_a_dead_letter_is_told(journal: Journal, clock: MovingClock) -> None:
    graph = one_node(journal, fails)
    graph.submit({}, thread(THREAD))
    for _ in range(ATTEMPTS):
        clock.move(timedelta(hours=1))
        looked_at(graph)

    with pytest.raises(RunDead, match="is a dead letter"):
        graph.submit({}, thread(THREAD))


def test_runs_that_failed_together_do_not_come_back_together() -> None:
    waits = {Backoff().wait(3) for _ in range(100)}

    assert len(waits) > 50


def test_a_job_that_came_twice_does_not_hurry_the_next_attempt(journal: Journal, clock: MovingClock) -> None:
    graph = one_node(journal, fails)
    graph.submit({}, thread(THREAD))
    looked_at(graph)
    failed = journal.runs.get(THREAD)
    entries = journal.audit.entries(THREAD)

    assert looked_at(graph).outcome == "early"
    assert (journal.runs.get(THREAD), journal.audit.entries(THREAD)) == (failed, entries)
    assert failed.due_at is not None
    clock.now = failed.due_at
    assert looked_at(graph).outcome == "admitted"
    assert journal.runs.get(THREAD).attempts == 2


def test_whoever_calls_it_themselves_does_not_wait(journal: Journal, clock: MovingClock) -> None:
    graph = one_node(journal, fails)
    graph.submit({}, thread(THREAD))
    looked_at(graph)
    with pytest.raises(OSError, match="fuse"):
        graph.invoke(None, thread(THREAD))

    assert journal.runs.get(THREAD).attempts == 2


def test_a_run_that_this_code_cannot_carry_on_is_put_off_and_untouched(
    journal: Journal, clock: MovingClock, tmp_path: Path
) -> None:
    """Otherwise a worker of an older version would look at it again and again, as fast as it can."""
    act(graph := small_claim(journal, tmp_path), "submit")
    [asked] = journal.approvals.pending(thread_id=THREAD)
    journal.approvals.decide(asked.id, {"type": "approve"}, principal="adjuster-17")
    entries = journal.audit.entries(THREAD)
    older = one_node(journal, fails)

    assert looked_at(older).outcome == "refused"
    run = journal.runs.get(THREAD)
    assert (run.state, run.attempts, journal.audit.entries(THREAD)) == ("admitted", 0, entries)
    assert str(run.error).startswith("GraphChanged: ")
    assert journal.runs.due("", limit=9) == ()
    clock.move(LEFT_ALONE)
    assert journal.runs.due("", limit=9) == (THREAD,)
    assert looked_at(graph).outcome == "done"


def test_what_came_for_a_run_while_it_was_put_off_is_not_put_off(
    journal: Journal, clock: MovingClock, tmp_path: Path
) -> None:
    """A decision that is recorded right after the park, before the worker has left."""
    graph = small_claim(journal, tmp_path)
    graph.submit({"claim_id": "0042"}, thread(THREAD))
    seen = journal.runs.get(THREAD)
    looked_at(graph)
    clock.move(MOMENT)
    [asked] = journal.approvals.pending(thread_id=THREAD)
    journal.approvals.decide(asked.id, {"type": "approve"}, principal="adjuster-17")
    journal.runs.postpone(seen, wait=timedelta(minutes=1))

    assert journal.runs.due("", limit=9) == (THREAD,)


def test_no_worker_walks_past_a_breakpoint(journal: Journal, clock: MovingClock) -> None:
    """Whoever set it is looking at the run, and goes on by a call of their own."""
    builder = StateGraph(State)
    builder.add_node("node", lambda state: {"answer": "walked on"})
    builder.add_edge(START, "node")
    graph = durable(builder.compile(interrupt_before=["node"]), journal)
    graph.submit({}, thread(THREAD))

    assert looked_at(graph).outcome == "admitted"
    clock.move(timedelta(days=1))
    assert journal.runs.due("", limit=9) == ()
    assert graph.invoke(None, thread(THREAD))["answer"] == "walked on"
    assert journal.runs.get(THREAD).state == "done"


def test_a_run_whose_caller_died_past_a_breakpoint_is_found(journal: Journal, clock: MovingClock) -> None:
    builder = StateGraph(State)
    builder.add_node("node", lambda state: {"answer": "walked on"})
    builder.add_edge(START, "node")
    graph = durable(builder.compile(interrupt_before=["node"]), journal)
    graph.submit({}, thread(THREAD))
    looked_at(graph)
    journal.runs.start(journal.leases.take(thread_lease(THREAD)), THREAD, head=journal.saver.head(THREAD))
    clock.move(LEASE)

    assert journal.runs.due("", limit=9) == (THREAD,)


def test_what_a_worker_can_do_nothing_for_ends_well_and_is_untouched(journal: Journal, tmp_path: Path) -> None:
    graph = small_claim(journal, tmp_path)
    act(graph, "submit")
    assert looked_at(graph).outcome == "parked"
    act(graph, "approve")
    another = durable(graph.compiled.builder, journal, name="another")
    another.submit({"claim_id": "0001"}, thread("another's"))
    entries = {one: journal.audit.entries(one) for one in (THREAD, "another's")}

    assert looked_at(graph, "nobody").outcome == "gone"
    assert looked_at(graph).outcome == "done"
    assert looked_at(graph, "another's").outcome == "refused"
    held = journal.leases.take(thread_lease("another's"))
    assert looked_at(another, "another's").outcome == "busy"
    journal.leases.give_back(held)
    assert {one: journal.audit.entries(one) for one in (THREAD, "another's")} == entries
    assert looked_at(another, "another's").outcome == "parked"


def test_a_dead_run_stays_dead_whatever_job_comes_for_it(journal: Journal) -> None:
    graph = durable(one_node(journal, fails).compiled.builder, journal, attempts=1)
    graph.submit({}, thread(THREAD))
    assert looked_at(graph).outcome == "dead"
    entries = journal.audit.entries(THREAD)

    assert looked_at(graph).outcome == "dead"
    assert journal.audit.entries(THREAD) == entries


def test_a_drained_run_has_lost_nothing_and_is_the_next_workers_at_once(journal: Journal, clock: MovingClock) -> None:
    """The worker is asked to end while the first step runs: the step counts, the second one is another worker's."""
    draining, steps = Draining(), list[str]()

    def first(state: State) -> dict[str, Any]:
        steps.append("first")
        draining.ask()
        return {"ready": True}

    builder = StateGraph(State)
    builder.add_node("first", first)
    builder.add_node("second", lambda state: steps.append("second") or {"answer": "yes"})
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    graph = durable(builder, journal)
    graph.submit({}, thread(THREAD))

    assert looked_at(graph, draining=draining).outcome == "drained"
    run = journal.runs.get(THREAD)
    assert (run.state, run.attempts, run.resumes, run.error) == ("admitted", 0, 0, None)
    assert journal.leases.holder(thread_lease(THREAD)) is None
    assert graph.get_state(thread(THREAD)).values["ready"]
    assert journal.runs.due("", limit=9) == (THREAD,)
    assert looked_at(graph).outcome == "done"
    assert steps == ["first", "second"]
    assert journal.runs.get(THREAD).resumes == 0


def test_draining_again_and_again_uses_up_no_attempts(journal: Journal) -> None:
    draining = Draining()
    draining.ask()
    graph = one_node(journal, lambda state: {"answer": "yes"})
    graph.submit({}, thread(THREAD))
    for _ in range(ATTEMPTS + 1):
        assert looked_at(graph, draining=draining).outcome == "drained"

    assert looked_at(graph).outcome == "done"


def test_a_drain_that_beats_an_answer_does_not_lose_it(journal: Journal) -> None:
    """LangGraph 1.2 forgets a map resume that meets a drain; the answer stands in the approval's row, and is given again."""

    def asks(state: State) -> dict[str, Any]:
        return {"answer": interrupt("may I?")}

    graph = one_node(journal, asks)
    graph.submit({}, thread(THREAD))
    assert looked_at(graph).outcome == "parked"
    draining = Draining()
    draining.ask()
    [asked] = journal.approvals.pending(thread_id=THREAD)
    held = journal.leases.take(thread_lease(THREAD))
    graph.invoke(answer(asked, "you may"), thread(THREAD, principal="adjuster-17"))
    journal.leases.give_back(held)

    assert looked_at(graph, draining=draining).outcome == "drained"
    assert looked_at(graph).outcome == "done"
    assert graph.get_state(thread(THREAD)).values["answer"] == "you may"


def test_a_drain_inside_a_graph_within_the_graph_costs_nothing(journal: Journal) -> None:
    draining, steps = Draining(), list[str]()

    def inner_first(state: State) -> dict[str, Any]:
        steps.append("first")
        draining.ask()
        return {}

    inner = StateGraph(State)
    inner.add_node("inner_first", inner_first)
    inner.add_node("inner_second", lambda state: steps.append("second") or {"answer": "yes"})
    inner.add_edge(START, "inner_first")
    inner.add_edge("inner_first", "inner_second")
    builder = StateGraph(State)
    builder.add_node("inner", inner.compile())
    builder.add_edge(START, "inner")
    graph = durable(builder, journal)
    graph.submit({}, thread(THREAD))

    assert looked_at(graph, draining=draining).outcome == "drained"
    run = journal.runs.get(THREAD)
    assert (run.state, run.attempts, run.error) == ("admitted", 0, None)
    assert looked_at(graph).outcome == "done"
    assert steps == ["first", "second"]
