"""A claim that is poison, to a step or to its worker, ends as a dead letter after its attempts, while all others go on."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from checkpointing import Journal, open_journal
from tests.soak.crew import QUICK, crew_of
from tests.soak.errand import ATTEMPTS, KILLS, RAISES, drain, submit, thread_of
from tests.support.bank import Bank
from tests.support.processes import context, finish, start, until

OTHERS = 30
CONCURRENCY = 2
LEASE_S = 1
BEGUN = 1 + ATTEMPTS
"""A death counts at the checkpoint where its worker had begun, and the first of all begins before there is one: that of the input comes of it."""
PATIENCE_S = 180


def test_poison_ends_as_a_dead_letter_while_all_others_go_on(url: str, tmp_path: Path) -> None:
    """The one that kills takes a worker with it each time, and whatever else that had under way; another one is started."""
    others = [*map(str, range(OTHERS))]
    claim_ids = [RAISES, KILLS, *others]
    with open_journal(url, artefacts=str(tmp_path)) as journal:
        alone = context().Barrier(1)
        finish(start(submit, url, tmp_path, claim_ids, alone))
        with crew_of(2, lambda _: start(drain, url, tmp_path, CONCURRENCY, LEASE_S, QUICK), tmp_path) as crew:

            def look() -> bool | None:
                crew.replace_the_dead()
                return True if resting(journal) == len(claim_ids) else None

            until(look, PATIENCE_S, every_s=0.1)
            codes = crew.drain()
        runs = {run.thread_id: run for run in journal.runs.list()}
        faults = [*journal.audit.verify()]

    raised, killed = runs.pop(thread_of(RAISES)), runs.pop(thread_of(KILLS))
    assert [(one.state, one.reason) for one in (raised, killed)] == [("dead", "attempts")] * 2
    assert raised.error == "ValueError: this claim cannot be read"
    assert {run.state for run in runs.values()} == {"done"}
    assert [raised.attempts, killed.attempts] == [ATTEMPTS, ATTEMPTS]
    # What raises may be under way in a worker that is killed, and that start is an attempt of it too, begun or not.
    assert begun(tmp_path, RAISES) <= begun(tmp_path, KILLS) == BEGUN
    assert Counter(call["claim_id"] for call in Bank(tmp_path / "bank").executed) == Counter(others)
    assert [len(crew.killed), codes, faults] == [BEGUN, [0, 0], []]


def resting(journal: Journal) -> int:
    """Return how many runs are over."""
    return sum(len(journal.runs.list(state=state)) for state in ("done", "dead"))


def begun(folder: Path, claim_id: str) -> int:
    """Return how often a step of poison was begun."""
    return len((folder / f"begun-{claim_id}").read_text().splitlines())
