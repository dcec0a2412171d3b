"""Whatever a run comes to, a worker goes on: the outcome is said, and what it could do nothing for is left alone for a while."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from langgraph.graph import START, StateGraph

from checkpointing import Journal
from checkpointing.leases import thread_lease
from graph import DurableGraph, DurableState, durable, thread
from graph.backoff import Backoff
from nodes import approval_node
from service.worker.advancing import LEFT_ALONE, Advanced, advance
from service.worker.draining import Draining
from tests.support.clock import MovingClock

BACKOFF = Backoff(first=timedelta(seconds=8), longest=timedelta(seconds=20))


class State(DurableState):
    number: int


def adding(journal: Journal, *, node: Any, name: str = "adding") -> DurableGraph:
    builder = StateGraph(State)
    builder.add_node("add", node)
    builder.add_edge(START, "add")
    return durable(builder, journal, name=name, attempts=3, backoff=BACKOFF)


def asking(journal: Journal) -> DurableGraph:
    builder = StateGraph(State)
    builder.add_node(
        "ask", approval_node("payout", journal, payload=lambda s: {"number": s["number"]}, ttl=timedelta(hours=1))
    )
    builder.add_edge(START, "ask")
    return durable(builder, journal, name="adding")


def one_more(state: State) -> dict[str, Any]:
    return {"number": state["number"] + 1}


def fail(_: State) -> dict[str, Any]:
    raise ValueError("poison")


def turn(graph: DurableGraph, draining: Draining | None = None) -> Advanced:
    return advance({graph.name: graph}, graph.journal, "one", draining or Draining())


@pytest.fixture
def journal(opened: Callable[..., Journal], clock: MovingClock) -> Journal:
    return opened(clock=clock)


def test_a_run_that_is_submitted_is_due_at_once_and_not_when_it_is_done(journal: Journal) -> None:
    graph = adding(journal, node=one_more)
    graph.submit({"number": 1}, thread("one"))
    due = journal.runs.due("adding", limit=10)
    done = turn(graph)

    assert due == ("one",)
    assert (done.outcome, done.said) == ("done", None)
    assert journal.runs.due("adding", limit=10) == ()
    assert journal.runs.get("one").due_at is None


def test_a_run_that_failed_is_left_alone_for_longer_each_time_and_ends_as_a_dead_letter(
    journal: Journal, clock: MovingClock
) -> None:
    graph = adding(journal, node=fail)
    graph.submit({"number": 1}, thread("one"))
    outcomes, waits = [], []
    while (run := journal.runs.get("one")).state != "dead":
        assert run.due_at is not None
        waits.append(run.due_at - clock())
        clock.move(max(waits[-1], timedelta(0)))
        assert journal.runs.due("adding", limit=10) == ("one",)
        outcomes.append(turn(graph).outcome)

    # The checkpoint of the input is progress, so the very first start is given back.
    assert outcomes == ["admitted", "admitted", "admitted", "dead"]
    assert waits[0] == timedelta(0)
    assert timedelta(seconds=4) <= waits[1] <= timedelta(seconds=8)
    assert timedelta(seconds=4) <= waits[2] <= timedelta(seconds=8)
    assert timedelta(seconds=8) <= waits[3] <= timedelta(seconds=16)
    assert journal.runs.due("adding", limit=10) == ()


def test_a_parked_run_is_due_when_its_question_expires(journal: Journal, clock: MovingClock) -> None:
    graph = asking(journal)
    graph.submit({"number": 1}, thread("one"))
    parked = turn(graph)
    early = journal.runs.due("adding", limit=10)
    clock.move(timedelta(hours=1))
    late = journal.runs.due("adding", limit=10)
    ended = turn(graph)

    assert (parked.outcome, parked.said) == ("parked", "approval")
    assert (early, late) == ((), ("one",))
    assert ended.outcome == "done"
    [asked] = journal.approvals.of_thread("one")
    assert asked.state == "expired"


def test_a_decision_makes_a_parked_run_due(journal: Journal) -> None:
    graph = asking(journal)
    graph.submit({"number": 1}, thread("one"))
    turn(graph)
    [asked] = journal.approvals.pending()
    journal.approvals.decide(asked.id, {"type": "approve"}, principal="adjuster-17")

    assert journal.runs.due("adding", limit=10) == ("one",)
    assert turn(graph).outcome == "done"


def test_a_run_whose_worker_died_is_due_when_its_lease_is_over(journal: Journal, clock: MovingClock) -> None:
    graph = adding(journal, node=one_more)
    graph.submit({"number": 1}, thread("one"))
    lease = journal.leases.take(thread_lease("one"))
    journal.runs.start(lease, "one", head="")
    held, busy = journal.runs.due("adding", limit=10), turn(graph)
    clock.move(timedelta(seconds=30))
    found = journal.runs.due("adding", limit=10)

    assert (held, busy.outcome) == ((), "busy")
    assert found == ("one",)
    assert turn(graph).outcome == "done"
    assert journal.runs.get("one").resumes == 1


def test_a_caller_who_runs_it_keeps_workers_away_for_five_seconds(journal: Journal, clock: MovingClock) -> None:
    graph = adding(journal, node=fail)
    with pytest.raises(ValueError, match="poison"):
        graph.invoke({"number": 1}, thread("one"))
    journal.runs.admit(_admission(graph, "two"))
    clock.move(timedelta(seconds=4))
    early = journal.runs.due("adding", limit=10)
    clock.move(timedelta(seconds=1))

    assert "two" not in early
    assert "two" in journal.runs.due("adding", limit=10)


def test_a_run_of_a_graph_that_the_worker_lacks_is_left_as_it_is(journal: Journal) -> None:
    adding(journal, node=one_more, name="other").submit({"number": 1}, thread("one"))
    refused = turn(adding(journal, node=one_more))

    assert (refused.outcome, refused.said) == ("refused", "this worker has no graph 'other'")
    assert journal.runs.get("one").state == "admitted"


def test_a_run_that_this_code_cannot_carry_on_is_left_alone_with_the_reason(
    journal: Journal, clock: MovingClock
) -> None:
    asked = asking(journal)
    asked.submit({"number": 1}, thread("one"))
    turn(asked)
    clock.move(timedelta(hours=1))
    refused = turn(adding(journal, node=one_more))
    at_once = journal.runs.due("adding", limit=10)
    clock.move(LEFT_ALONE)

    assert refused.outcome == "refused"
    assert "GraphChanged" in str(refused.said)
    assert "GraphChanged" in str(journal.runs.get("one").error)
    assert at_once == ()
    assert journal.runs.due("adding", limit=10) == ("one",)


def test_a_job_for_a_thread_without_a_run_ends_well(journal: Journal) -> None:
    assert turn(adding(journal, node=one_more)).outcome == "gone"


def test_a_worker_that_drains_begins_no_superstep_and_costs_no_attempt(journal: Journal) -> None:
    begun: list[int] = []

    def count(state: State) -> dict[str, Any]:
        begun.append(state["number"])
        return {}

    graph, draining = adding(journal, node=count), Draining()
    graph.submit({"number": 1}, thread("one"))
    draining.ask()
    drained = turn(graph, draining)
    run = journal.runs.get("one")

    assert drained.outcome == "drained"
    assert begun == []
    assert (run.state, run.attempts) == ("admitted", 0)
    assert journal.leases.holder(thread_lease("one")) is None
    assert turn(graph).outcome == "done"


def _admission(graph: DurableGraph, thread_id: str) -> Any:
    return graph._advance._admission({"number": 1}, thread_id, None, "")
