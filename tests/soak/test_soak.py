"""
Many claims on several workers that are killed with SIGKILL at random and started again: all done or parked, each paid once.

The receivers misbehave meanwhile, two adjusters decide at the same time, and what must come of each claim follows from its number.

    COUNTERFOIL_SOAK_CLAIMS=1000  COUNTERFOIL_SOAK_KILLS=20     how much of it
    COUNTERFOIL_SOAK_COMMAND=1                                  the workers are the installed command line
    COUNTERFOIL_SOAK_SEED=...                                   the kills and faults of an earlier soak
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pytest

from checkpointing import Journal, open_journal
from tests.service.conftest import environment
from tests.soak.cases import Case
from tests.soak.counted import is_at_rest, resumes, states, wrong
from tests.soak.crew import Crew, crew_of, forked, launched
from tests.soak.faults import misbehave
from tests.soak.people import adjuster, intake
from tests.soak.queue import tables
from tests.support.processes import context, finish, start, until
from tests.support.sandboxes import ForkedSandbox, forked_sandbox

CLAIMS = int(os.environ.get("COUNTERFOIL_SOAK_CLAIMS", "40"))
KILLS = int(os.environ.get("COUNTERFOIL_SOAK_KILLS", "4"))
SEED = int(os.environ.get("COUNTERFOIL_SOAK_SEED") or random.SystemRandom().getrandbits(32))
COMMAND = bool(os.environ.get("COUNTERFOIL_SOAK_COMMAND"))

WORKERS = {"sqlite": 2, "postgres": 4}
CONCURRENCY = 4
LEASE_S = 2
CLAIM_S = 2
"""What a claim may take on a slow machine."""
LEFT_BEHIND_S = 90
"""So long after a kill the jobs of the killed one are over; 30 seconds without a heartbeat, by default."""
EVENTS = 4
"""What a job has at most: deferred, scheduled, started, failed."""


@dataclass
class Soak:
    """One soak, at work or over."""

    settings: dict[str, str]
    folder: Path
    sandbox: ForkedSandbox
    journal: Journal
    cases: list[Case]
    chance: random.Random
    faults: list[str] = field(default_factory=list)
    memory_mb: dict[int, list[float]] = field(default_factory=dict)

    @property
    def patience_s(self) -> float:
        """How long all of it may take."""
        return 120 + CLAIM_S * len(self.cases)

    def run(self, crew: Crew, kills: int) -> float:
        """Have all claims submitted, decided and worked off, with kills and faults on the way; return how long it took, in seconds."""
        began = time.monotonic()
        enough = context().Event()
        half = len(self.cases) // 2
        people = [start(adjuster, self.settings, self.folder, name, enough) for name in ("adjuster-1", "adjuster-2")]
        offices = [
            start(intake, self.settings, self.folder, *numbers) for numbers in ((0, half), (half, len(self.cases)))
        ]
        for resting in sorted(self.chance.randrange(len(self.cases) * 9 // 10) for _ in range(kills)):
            self._wait_until_resting(resting, people + offices)
            self.faults.append(misbehave(self.sandbox.control, self.chance))
            threading.Event().wait(self.chance.uniform(0, 0.3))  # the moment of a kill is drawn
            crew.kill_one(self.chance)
            self._look_at(crew)
        for office in offices:
            finish(office, self.patience_s)
        until(lambda: is_at_rest(self.journal, self.cases), self.patience_s, every_s=0.1)
        took = time.monotonic() - began
        self._look_at(crew)
        enough.set()
        for person in people:
            finish(person)
        return took

    def _wait_until_resting(self, many: int, people: list[ForkServerProcess]) -> None:
        """Wait until so many runs have come to rest, while the *people* are at work."""

        def look() -> bool | None:
            assert not any(person.exitcode for person in people), [*map(str, people)]
            found, _ = states(self.journal)
            return True if found["done"] + found["parked"] + found["dead"] >= many else None

        until(look, self.patience_s, every_s=0.1)

    def _look_at(self, crew: Crew) -> None:
        for one in crew.workers:
            self.memory_mb.setdefault(one.pid, []).append(one.resident_mb)


@pytest.fixture
def soak(url: str, tmp_path: Path) -> Any:
    """Makes a soak of so many claims."""
    settings: dict[str, str] = {}
    with forked_sandbox(tmp_path / "sandbox.db") as sandbox:
        settings |= environment(url, sandbox.url, tmp_path) | {"COUNTERFOIL_LEASE_SECONDS": str(LEASE_S)}
        with open_journal(url, artefacts=str(tmp_path / "artefacts")) as journal:
            yield lambda claims: Soak(
                settings, tmp_path, sandbox, journal, [*map(Case, range(claims))], random.Random(SEED)
            )


MakeSoak = Callable[[int], Soak]


def test_every_claim_rests_and_is_paid_once_though_workers_are_killed_at_random(soak: MakeSoak, engine: str) -> None:
    one = soak(CLAIMS)
    begin = (launched if COMMAND else forked)(one.settings, one.folder, CONCURRENCY)
    with crew_of(WORKERS[engine], begin, one.folder) as crew:
        took = one.run(crew, KILLS)
        until(lambda: None if tables(one.journal).get("doing") else True, LEFT_BEHIND_S)
        queue = tables(one.journal)
        crew.wait_working()  # one that is still being loaded has nothing to drain
        codes = crew.drain()

    after, (found, _) = tables(one.journal), states(one.journal)
    sys.stderr.write(report(one, engine, took, crew, queue))
    assert wrong(one.journal, one.sandbox.control, one.cases) == []
    assert found["parked"] == sum(case.kind == "left" for case in one.cases)
    assert len(crew.killed) == KILLS
    assert codes == [0] * WORKERS[engine]
    if queue:
        assert [after["todo"], after["doing"]] == [0, 0]
        assert after["jobs"] <= after["failed"] + 1, "only the jobs of killed workers stay, and a sweep's"
        assert after["events"] <= EVENTS * after["jobs"]


@pytest.mark.parametrize("engine", ["postgres"])
def test_the_command_line_is_killed_and_started_again(soak: MakeSoak) -> None:
    """On one engine, because each start of the command takes seconds of a core; the long form does it on both."""
    one = soak(10)
    with crew_of(1, launched(one.settings, one.folder, CONCURRENCY), one.folder) as crew:
        one.run(crew, kills=1)
        crew.wait_working()  # one that is still being loaded has nothing to drain
        codes = crew.drain()

    assert wrong(one.journal, one.sandbox.control, one.cases) == []
    assert [codes, len(crew.killed)] == [[0], 1]


def test_a_second_payment_would_be_found(soak: MakeSoak) -> None:
    """Each call under a key of its own, and the first worker killed while the receiver has executed it: nothing but the count finds that."""
    one = soak(1)
    one.sandbox.control.fault("transfers", "hold_after", seconds=600)
    begin = forked(one.settings, one.folder, CONCURRENCY, "a_key_a_call")
    with crew_of(1, begin, one.folder) as crew:
        finish(start(intake, one.settings, one.folder, 0, 1))
        one.sandbox.control.wait_held()
        crew.kill_one(one.chance)
        until(lambda: is_at_rest(one.journal, one.cases), one.patience_s)
        one.sandbox.control.release()
        crew.drain()

    [case] = one.cases
    twice = [(case.paid, case.payee)] * 2
    assert wrong(one.journal, one.sandbox.control, one.cases) == [
        f"{case.claim_id} (small) was paid {twice} and not {twice[:1]}"
    ]


def report(one: Soak, engine: str, took: float, crew: Crew, queue: dict[str, int]) -> str:
    """Say how it went, for people."""
    found, pending = states(one.journal)
    stayed = [(pid, *looks) for pid, looks in one.memory_mb.items() if len(looks) > 1]
    lines: dict[str, object] = {
        "engine": engine,
        "seed": SEED,
        "workers": f"{crew.count} x {CONCURRENCY}, {'the command line' if COMMAND else 'forked'}",
        "killed by SIGKILL": sum(one.process_ended_by(signal.SIGKILL) for one in crew.killed),
        "claims": len(one.cases),
        "took": f"{took:.1f} s, {len(one.cases) / took:.2f} claims/s",
        "states": f"{dict(found)}, approvals pending {pending}",
        "payments": len(one.sandbox.control.payments()),
        "letters": len(one.sandbox.control.messages()),
        **resumes(one.journal),
        "faults ordered": ", ".join(one.faults),
        "worker memory MB, first and last look": [
            (pid, round(looks[0]), round(looks[-1])) for pid, *looks in stayed[-crew.count :]
        ],
        "queue": queue or "none",
    }
    return "\n" + "\n".join(f"{name}: {value}" for name, value in lines.items()) + "\n"
