"""Caps on supersteps and on age: exactly how far a run goes, over all its calls, deaths, decisions and turns, and what is left of it afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from langgraph.errors import GraphDrained, GraphRecursionError
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import RunControl

from checkpointing import Journal, Run
from checkpointing.errors import CapReached, EffectInDoubt, GraphRefused, RunDead
from graph import Caps, DurableGraph, DurableState, approve, durable, thread
from nodes import approval_node, effect_node
from service.worker import Draining, work
from service.worker.advancing import Advanced, advance
from tests.support.bank import Bank
from tests.support.clock import MovingClock
from tests.support.processes import finish, killed, start
from tests.support.rounds import THREAD, Rounds, looping, rounds_process
from tests.support.workers import RHYTHM
from tools import Receiver, effect

ADJUSTER = thread("claim-0042", principal="adjuster-17")
HOUR = timedelta(hours=1)


class State(DurableState):
    claim_id: str
    payment: dict[str, Any]


@pytest.fixture
def journal(opened: Callable[..., Journal], clock: MovingClock) -> Journal:
    return opened(clock=clock)


@pytest.fixture
def rounds(tmp_path: Path) -> Rounds:
    return Rounds(tmp_path / "rounds")


def run_of(journal: Journal) -> Run:
    return journal.runs.get("claim-0042")


def asking(journal: Journal, folder: Path, *, ttl: timedelta | None = None, **options: Any) -> DurableGraph:
    """START ─▶ approve ─▶ pay."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    payload = approval_node("payout", journal, payload=lambda s: {"claim_id": s["claim_id"], "amount": 5}, ttl=ttl)
    builder.add_node("approve", payload)
    builder.add_node("pay", effect_node(Bank(folder / "bank").effect(), journal, into="payment", approval="payout"))
    builder.add_edge(START, "approve")
    builder.add_edge("approve", "pay")
    return durable(builder, journal, **options)


@pytest.mark.parametrize(
    "nonsense",
    [
        {"supersteps": 0},
        {"supersteps": True},
        {"money": -1},
        {"money": 1.5},
        {"tokens": "many"},
        {"tokens": 2**60},
        {"age": timedelta(0)},
        {"age": 90},
    ],
)
def test_a_cap_that_caps_nothing_sensible_is_refused(nonsense: dict[str, Any]) -> None:
    with pytest.raises(GraphRefused, match=f"the cap on {next(iter(nonsense))}"):
        Caps(**nonsense)


def test_a_run_stops_before_the_superstep_that_its_cap_does_not_allow(journal: Journal, rounds: Rounds) -> None:
    graph = looping(journal, rounds, caps=Caps(supersteps=3))

    with pytest.raises(CapReached, match=r"cap_supersteps: it has taken its 3 supersteps.*Raise the cap, then redrive"):
        graph.invoke({"rounds": 0, "until": 9}, THREAD)

    run = run_of(journal)
    assert (rounds.count, run.state, run.reason, run.steps) == (3, "dead", "cap_supersteps", 3)
    assert journal.leases.holder("thread:claim-0042") is None


def test_a_run_that_is_done_with_its_last_superstep_is_done(journal: Journal, rounds: Rounds) -> None:
    graph = looping(journal, rounds, caps=Caps(supersteps=3))

    assert graph.invoke({"rounds": 0, "until": 3}, THREAD)["rounds"] == 3
    assert (run_of(journal).state, run_of(journal).steps) == ("done", 3)


@pytest.mark.parametrize("call", ["ainvoke", "stream", "astream"])
def test_every_way_to_call_a_graph_stops_at_the_cap(journal: Journal, rounds: Rounds, call: str) -> None:
    graph, given = looping(journal, rounds, caps=Caps(supersteps=2)), {"rounds": 0, "until": 9}

    async def consumed() -> None:
        async for _ in graph.astream(given, THREAD):
            pass

    ways: dict[str, Callable[[], object]] = {
        "stream": lambda: list(graph.stream(given, THREAD)),
        "ainvoke": lambda: asyncio.run(graph.ainvoke(given, THREAD)),
        "astream": lambda: asyncio.run(consumed()),
    }
    with pytest.raises(CapReached):
        ways[call]()

    assert (rounds.count, run_of(journal).reason) == (2, "cap_supersteps")


def test_supersteps_are_counted_over_calls_that_failed_and_processes_that_were_killed(
    url: str, tmp_path: Path, opened: Callable[..., Journal]
) -> None:
    """Every superstep counts once: not for each process that began it, and none is forgotten with the process that took it."""
    points = (
        ("after checkpoint.put", 1),
        ("before checkpoint.put", 3),
        ("after checkpoint.put", 1),
        ("committing checkpoint.put", 2),
    )
    for point, nth in points:
        killed(start(rounds_process, url, tmp_path, point, nth))
    finish(start(rounds_process, url, tmp_path))
    journal = opened()

    run = run_of(journal)
    assert (run.state, run.reason, run.steps) == ("dead", "cap_supersteps", 6)
    assert journal.saver.get_tuple(THREAD).checkpoint["channel_values"]["rounds"] == 6  # type: ignore[union-attr]  # it ran


def test_a_dead_run_dies_again_until_its_cap_was_raised(journal: Journal, rounds: Rounds) -> None:
    graph = looping(journal, rounds, caps=Caps(supersteps=2))
    with pytest.raises(CapReached):
        graph.invoke({"rounds": 0, "until": 4}, THREAD)

    journal.runs.redrive("claim-0042", principal="operator-3")
    with pytest.raises(CapReached):
        graph.invoke(None, THREAD)
    with pytest.raises(RunDead, match="cap_supersteps"):
        graph.invoke(None, THREAD)
    journal.runs.redrive("claim-0042", principal="operator-3")
    ended = looping(journal, rounds, caps=Caps(supersteps=4)).invoke(None, THREAD)

    assert (ended["rounds"], rounds.count, run_of(journal).steps) == (4, 4, 4)


def test_a_new_turn_has_all_its_supersteps_and_all_its_time(
    journal: Journal, rounds: Rounds, clock: MovingClock
) -> None:
    graph = looping(journal, rounds, caps=Caps(supersteps=3, age=HOUR), turns=True)
    for turn in ("first", "second", "third"):
        graph.invoke({"rounds": 0, "until": 3}, thread("claim-0042", submission=turn))
        assert run_of(journal).steps == 3
        clock.move(2 * HOUR)

    with pytest.raises(CapReached):
        graph.invoke({"rounds": 0, "until": 4}, thread("claim-0042", submission="fourth"))


def test_a_superstep_that_waited_for_a_decision_counts_once(journal: Journal, tmp_path: Path) -> None:
    graph = asking(journal, tmp_path, caps=Caps(supersteps=2))
    [request] = graph.invoke({"claim_id": "0042"}, THREAD)["__interrupt__"]
    for _ in range(3):
        graph.invoke(None, THREAD)

    assert run_of(journal).steps == 0
    graph.invoke(approve(request), ADJUSTER)
    assert (run_of(journal).state, run_of(journal).steps) == ("done", 2)


def test_a_worker_that_drains_leaves_a_run_that_is_below_its_caps_to_the_next(journal: Journal, rounds: Rounds) -> None:
    control = RunControl()
    control.request_drain("shutdown")
    graph = looping(journal, rounds, caps=Caps(supersteps=3))

    with pytest.raises(GraphDrained):
        graph.invoke({"rounds": 0, "until": 3}, THREAD, control=control)
    assert run_of(journal).state == "admitted"
    assert graph.invoke(None, THREAD)["rounds"] == 3


def test_a_cap_that_is_reached_while_a_worker_drains_is_found_by_the_next_start(
    journal: Journal, rounds: Rounds
) -> None:
    """Who drains may overwrite the reason that the cap gave; the run's row has not forgotten."""
    control = RunControl()
    graph = looping(journal, rounds, caps=Caps(supersteps=2), then=lambda: control.request_drain("shutdown"))
    with pytest.raises((GraphDrained, CapReached)):
        graph.invoke({"rounds": 0, "until": 9}, THREAD, control=control)
    with pytest.raises((GraphDrained, CapReached)):
        graph.invoke(None, THREAD, control=control)

    with pytest.raises(RunDead, match="cap_supersteps"):
        graph.invoke(None, THREAD)
    assert rounds.count == 2


def test_a_run_over_its_time_stops_between_two_supersteps(journal: Journal, rounds: Rounds, clock: MovingClock) -> None:
    graph = looping(journal, rounds, caps=Caps(age=HOUR), then=lambda: clock.move(HOUR / 2))

    with pytest.raises(CapReached, match="cap_age"):
        graph.invoke({"rounds": 0, "until": 9}, THREAD)
    assert (rounds.count, run_of(journal).reason) == (2, "cap_age")


def test_a_run_over_its_time_is_not_begun(journal: Journal, rounds: Rounds, clock: MovingClock) -> None:
    graph = looping(journal, rounds, caps=Caps(age=HOUR))
    graph.submit({"rounds": 0, "until": 1}, THREAD)
    clock.move(HOUR)

    with pytest.raises(CapReached):
        graph.invoke(None, THREAD)
    assert (rounds.count, run_of(journal).reason) == (0, "cap_age")


@pytest.mark.parametrize("ttl", [None, 2 * HOUR, HOUR / 2], ids=["for-ever", "expires-later", "expires-earlier"])
def test_a_parked_run_is_due_when_its_time_is_over_and_ends_then(
    journal: Journal, tmp_path: Path, clock: MovingClock, ttl: timedelta | None
) -> None:
    graph = asking(journal, tmp_path, ttl=ttl, caps=Caps(age=HOUR), name="claims")
    graph.invoke({"claim_id": "0042"}, THREAD)
    run = run_of(journal)

    assert run.state == "parked"
    assert run.due_at == run.admitted_at + min(HOUR, ttl or HOUR)
    clock.move(HOUR)
    assert journal.runs.due("claims", limit=9) == ("claim-0042",)
    with pytest.raises(CapReached):
        graph.invoke(None, THREAD)
    assert (run_of(journal).state, run_of(journal).reason, run_of(journal).due_at) == ("dead", "cap_age", None)


def test_a_worker_ends_a_parked_run_whose_time_is_over_and_one_that_goes_round(
    journal: Journal, tmp_path: Path, clock: MovingClock, rounds: Rounds
) -> None:
    graphs = {
        "claims": asking(journal, tmp_path, caps=Caps(age=HOUR), name="claims"),
        "rounds": looping(journal, rounds, caps=Caps(supersteps=3), name="rounds"),
    }
    graphs["claims"].submit({"claim_id": "0042"}, THREAD)
    graphs["rounds"].submit({"rounds": 0, "until": 9}, thread("rounds"))
    worker = Draining()

    assert advance(graphs, journal, "claim-0042", worker).outcome == "parked"
    assert advance(graphs, journal, "rounds", worker).outcome == "dead"
    clock.move(HOUR)
    said = advance(graphs, journal, "claim-0042", worker)
    assert (said.outcome, "cap_age" in (said.said or "")) == ("dead", True)


def test_a_worker_ends_a_run_that_parked_before_it_was_given_a_cap_on_its_age(
    journal: Journal, clock: MovingClock, tmp_path: Path
) -> None:
    asking(journal, tmp_path).invoke({"claim_id": "0042"}, THREAD)
    before = run_of(journal).due_at
    clock.move(2 * HOUR)
    ended: list[Advanced] = []
    draining = Draining()

    def told(one: Advanced) -> None:
        ended.append(one)
        draining.ask()

    work([asking(journal, tmp_path, caps=Caps(age=HOUR))], draining=draining, told=told, rhythm=RHYTHM)

    assert before is None
    assert [one.outcome for one in ended] == ["dead"]
    assert run_of(journal).reason == "cap_age"


def test_a_parked_run_that_is_due_before_its_cap_is_not_hastened(
    journal: Journal, clock: MovingClock, tmp_path: Path
) -> None:
    asking(journal, tmp_path, ttl=HOUR).invoke({"claim_id": "0042"}, THREAD)

    assert journal.runs.hasten("", age=2 * HOUR) == 0
    assert journal.runs.hasten("", age=HOUR / 2) == 1
    assert run_of(journal).due_at == run_of(journal).admitted_at + HOUR / 2


@pytest.mark.parametrize(("caps", "due_in"), [(Caps(age=3 * HOUR), 3 * HOUR), (Caps(), None)], ids=["raised", "gone"])
def test_a_parked_run_whose_cap_was_raised_is_looked_at_once_and_waits_on(
    journal: Journal, tmp_path: Path, clock: MovingClock, caps: Caps, due_in: timedelta | None
) -> None:
    """Else workers would look at it for ever, and at a hundred thousand like it."""
    asking(journal, tmp_path, caps=Caps(age=HOUR), name="claims").invoke({"claim_id": "0042"}, THREAD)
    clock.move(HOUR)
    asking(journal, tmp_path, caps=caps, name="claims").invoke(None, THREAD)

    run = run_of(journal)
    assert (run.state, run.due_at) == ("parked", due_in and run.admitted_at + due_in)
    assert journal.runs.due("claims", limit=9) == ()


def test_a_run_that_waits_for_word_about_an_effect_ends_with_its_time_too(
    journal: Journal, tmp_path: Path, clock: MovingClock
) -> None:
    @effect(receiver=Receiver(attempts=1), name="pay")
    def pay(*, key: str) -> None:
        raise RuntimeError("nobody knows")

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("pay", effect_node(pay, journal, arguments=lambda _: {}))
    builder.add_edge(START, "pay")
    graph = durable(builder, journal, caps=Caps(age=HOUR))
    with pytest.raises(RuntimeError):
        graph.invoke({"claim_id": "0042"}, THREAD)
    with pytest.raises(EffectInDoubt):
        graph.invoke(None, THREAD)
    clock.move(HOUR)

    with pytest.raises(CapReached):
        graph.invoke(None, THREAD)
    [doubtful] = journal.effects.list(thread_id="claim-0042")
    journal.effects.resolve(doubtful.key, happened=True, outcome={}, principal="operator-3")
    assert (run_of(journal).state, run_of(journal).reason) == ("dead", "cap_age")


def test_a_decision_on_a_dead_run_is_kept_and_does_not_revive_it(
    journal: Journal, tmp_path: Path, clock: MovingClock
) -> None:
    graph = asking(journal, tmp_path, caps=Caps(age=HOUR))
    [request] = graph.invoke({"claim_id": "0042"}, THREAD)["__interrupt__"]
    clock.move(HOUR)
    with pytest.raises(CapReached):
        graph.invoke(None, THREAD)

    with pytest.raises(RunDead, match="cap_age"):
        graph.invoke(approve(request), ADJUSTER)
    assert (run_of(journal).state, Bank(tmp_path / "bank").calls) == ("dead", [])
    journal.runs.redrive("claim-0042", principal="operator-3")
    asking(journal, tmp_path, caps=Caps(age=3 * HOUR)).invoke(None, THREAD)
    assert (run_of(journal).state, len(Bank(tmp_path / "bank").executed)) == ("done", 1)


def test_a_decision_that_comes_too_late_is_kept_and_the_run_ends(
    journal: Journal, tmp_path: Path, clock: MovingClock
) -> None:
    graph = asking(journal, tmp_path, caps=Caps(age=HOUR))
    [request] = graph.invoke({"claim_id": "0042"}, THREAD)["__interrupt__"]
    clock.move(HOUR)

    with pytest.raises(CapReached):
        graph.invoke(approve(request), ADJUSTER)
    [asked] = journal.approvals.of_thread("claim-0042")
    assert (asked.state, run_of(journal).reason, Bank(tmp_path / "bank").calls) == ("decided", "cap_age", [])


def test_langgraphs_limit_on_one_call_gives_way_to_a_cap_on_the_run(journal: Journal, rounds: Rounds) -> None:
    graph = looping(journal, rounds, caps=Caps(supersteps=30), bound={"recursion_limit": 5})

    assert graph.invoke({"rounds": 0, "until": 20}, THREAD)["rounds"] == 20


@pytest.mark.parametrize("caps", [Caps(), Caps(supersteps=30)], ids=["no-cap", "cap"])
def test_a_callers_own_limit_makes_a_dead_letter_at_once(journal: Journal, rounds: Rounds, caps: Caps) -> None:
    """It would be met again at every attempt, and each would give the attempts back by getting further."""
    graph = looping(journal, rounds, caps=caps)

    with pytest.raises(GraphRecursionError):
        graph.invoke({"rounds": 0, "until": 20}, {**THREAD, "recursion_limit": 5})
    assert (run_of(journal).state, run_of(journal).reason) == ("dead", "recursion_limit")


def test_the_steps_of_a_subgraph_are_a_part_of_one_superstep(journal: Journal) -> None:
    inner: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for name in ("one", "two", "three"):
        inner.add_node(name, lambda state: {})
    inner.add_edge(START, "one")
    inner.add_edge("one", "two")
    inner.add_edge("two", "three")
    outer: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    outer.add_node("before", lambda state: {})
    outer.add_node("inner", inner.compile())
    outer.add_edge(START, "before")
    outer.add_edge("before", "inner")
    outer.add_edge("inner", END)
    graph = durable(outer, journal, caps=Caps(supersteps=2))

    graph.invoke({"claim_id": "0042"}, THREAD)
    assert (run_of(journal).state, run_of(journal).steps) == ("done", 2)
