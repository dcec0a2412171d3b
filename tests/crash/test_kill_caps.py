"""A process that dies while a run spends: what was reserved is not lost with it, not doubled by its successor, and no cap begins anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from checkpointing import Journal, open_journal
from checkpointing.errors import CapReached, RunBusy
from graph import Caps, DurableGraph, thread
from tests.support.bank import Bank
from tests.support.points import die_after, die_at
from tests.support.processes import killed, start, until
from tests.support.rounds import LEASE
from tests.support.spending import branches, in_turn, paid, paying

THREAD = thread("claim-0042")
CAPS = Caps(money=100)
POINTS = [
    ("before effect.claim", 1),
    ("after effect.claim", 1),
    ("committing effect.claim", 2),
    ("executed", 1),
    ("before effect.settle", 2),
    ("after effect.settle", 1),
    ("after checkpoint.put", 3),
    ("before run.die", 1),
    ("after run.die", 1),
]
MAKES: dict[str, Callable[..., DurableGraph]] = {"in turn": in_turn, "in branches": branches}


def spend(url: str, folder: Path, shape: str, point: str, nth: int) -> None:
    """Be a process: pay until the budget is gone, and die at *point*."""
    if point == "executed":
        die_after(Bank, "execute")
    else:
        die_at(point, nth=nth)
    with open_journal(url, lease=LEASE) as journal:
        MAKES[shape](journal, paying(Bank(folder / "bank")), caps=CAPS).invoke({"amounts": [40, 40, 40]}, THREAD)


# In branches there is one superstep, and it is never done.
CASES = [
    (shape, *point)
    for shape in MAKES
    for point in POINTS
    if (shape, point[0]) != ("in branches", "after checkpoint.put")
]


@pytest.mark.parametrize(("shape", "point", "nth"), CASES)
def test_a_killed_process_neither_loses_nor_doubles_what_it_reserved(
    url: str, tmp_path: Path, opened: Callable[..., Journal], shape: str, point: str, nth: int
) -> None:
    killed(start(spend, url, tmp_path, shape, point, nth))
    journal = opened()
    graph = MAKES[shape](journal, paying(Bank(tmp_path / "bank")), caps=CAPS)

    def ended() -> Any:
        if journal.runs.get("claim-0042").state == "dead":
            return True
        try:
            graph.invoke(None, THREAD)
        except RunBusy:
            return None
        except CapReached:
            return True
        raise AssertionError("it was not capped")

    until(ended)
    assert (paid(tmp_path), journal.runs.taken("claim-0042").money) == ([40, 40], 80)
    assert journal.runs.get("claim-0042").reason == "cap_money"
