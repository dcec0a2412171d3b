"""Killed while a dead letter is given up: it is given up whole, with what it asked, or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph

from checkpointing import Journal, open_journal
from checkpointing.errors import NotRetryable
from graph import DurableGraph, DurableState, durable, thread
from nodes import approval_node
from tests.support.points import die_at
from tests.support.processes import killed, start
from tests.support.small_claim import LEASE

ID = "claim-0042"


class State(DurableState):
    claim_id: str


def hopeless(journal: Journal) -> DurableGraph:
    """A graph that asks, and fails beside the question."""

    def fail(state: State) -> dict[str, Any]:
        raise NotRetryable("no such policy")

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("ask", approval_node("payout", journal, payload=lambda s: {"claim_id": s["claim_id"]}))
    builder.add_node("fail", fail)
    builder.add_edge(START, "ask")
    builder.add_edge(START, "fail")
    return durable(builder, journal)


def discard(url: str, point: str) -> None:
    die_at(point)
    with open_journal(url, lease=LEASE) as journal:
        journal.runs.discard(ID, principal="operator-3", reason="paid by cheque")


@pytest.mark.parametrize(("point", "given_up"), [("before run.discard", False), ("after run.discard", True)])
def test_killed_while_a_dead_letter_was_given_up(url: str, tmp_path: Path, point: str, given_up: bool) -> None:
    with open_journal(url, lease=LEASE) as journal, pytest.raises(NotRetryable):
        hopeless(journal).invoke({"claim_id": "0042"}, thread(ID))
    killed(start(discard, url, point))

    with open_journal(url, lease=LEASE) as journal:
        assert [run.thread_id for run in journal.runs.dead()] == ([] if given_up else [ID])
        assert len(journal.approvals.pending()) == int(not given_up)
        journal.runs.discard(ID, principal="operator-3", reason="paid by cheque")
        assert (journal.runs.dead(), journal.approvals.pending()) == ((), [])
        assert [entry.event for entry in journal.audit.entries(ID)].count("run.discard") == 1
        assert list(journal.audit.verify()) == []
