"""
Two processes that want the last of one run's budget, each for an effect of its own, round after round: one of them gets it.

Such two exist: a worker that stood still for longer than its lease, and its successor; here each holds the lease of its slot, so that nothing but
the budget stands between them.
"""

from __future__ import annotations

import os
from pathlib import Path

from checkpointing import Journal
from checkpointing.budget import Caps, taken
from checkpointing.effects import Claim, Request
from checkpointing.errors import CapReached
from checkpointing.slots import Place, Slot
from graph import DurableGraph, thread
from tests.support.races import ROUNDS, Side, race
from tests.support.short_claim import claim

CAPS = Caps(money=100, tokens=100)


def name_of(number: int) -> str:
    return f"claim-{number}"


def admit(graph: DurableGraph, number: int) -> str:
    graph.submit({"claim_id": f"{number}"}, thread(name_of(number)))
    return ""


def want(graph: DurableGraph, number: int) -> str:
    """Claim an effect that takes 60 of the 100; money in one round, tokens in the next."""
    journal, step = graph.journal, f"pay.{os.getpid()}"
    place = Place(journal.leases.take(f"slot:{number}:{step}"), "root", step, "@root", caps=CAPS)
    money, tokens = (60, 0) if number % 2 else (0, 60)
    asked = Request(Slot(name_of(number), step, "pay"), place, "pay", {}, "d", "", None, money, tokens=tokens)
    try:
        claimed = journal.effects.claim(asked, person_needed=lambda age: False)
    except CapReached as cap:
        return cap.reason
    assert isinstance(claimed, Claim)
    return "claimed"


def graph_of(journal: Journal, folder: Path) -> DurableGraph:
    return claim(journal, folder)


def test_one_of_two_processes_gets_the_last_of_a_budget(url: str, tmp_path: Path, journal: Journal) -> None:
    side = Side(want, meets="effect.claim", prepare=admit)
    said = race(url, tmp_path, graph_of, side, side)

    reasons = [{"claimed", "cap_money" if number % 2 else "cap_tokens"} for number in range(ROUNDS)]
    assert [set(pair) for pair in said] == reasons
    with journal.store.reading() as tx:
        spent = [taken(tx, name_of(number)) for number in range(ROUNDS)]
    assert {(one.money, one.tokens) for one in spent} == {(60, 0), (0, 60)}
