"""
A worker that stood still for so long that it was taken for dead goes on to work when it wakes up.

Its run was carried on by another one, its job was ended as failed, and on Postgres its name was struck off the list of the workers.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from checkpointing import Journal, open_journal
from tests.service.conftest import environment
from tests.soak.cases import Case
from tests.soak.counted import wrong
from tests.soak.crew import crew_of, forked
from tests.soak.people import intake
from tests.soak.queue import tables
from tests.support.processes import finish, start, until
from tests.support.sandboxes import ForkedSandbox, forked_sandbox

PATIENCE_S = 120


@dataclass(frozen=True)
class World:
    settings: dict[str, str]
    folder: Path
    sandbox: ForkedSandbox
    journal: Journal

    def wait_done(self, case: Case) -> None:
        """Wait until the claim's run is done."""

        def look() -> bool | None:
            run = self.journal.runs.find(case.thread_id)
            return True if run and run.state == "done" else None

        until(look, PATIENCE_S)


@pytest.fixture
def world(url: str, tmp_path: Path) -> Iterator[World]:
    with forked_sandbox(tmp_path / "sandbox.db") as sandbox, open_journal(url) as journal:
        settings = environment(url, sandbox.url, tmp_path) | {"COUNTERFOIL_LEASE_SECONDS": "1"}
        yield World(settings, tmp_path, sandbox, journal)


def test_a_worker_that_was_taken_for_dead_works_on_when_it_wakes_up(world: World) -> None:
    first, later = Case(0), Case(1)
    world.sandbox.control.fault("transfers", "hold_after", seconds=600)
    with crew_of(1, forked(world.settings, world.folder, 2), world.folder) as crew:
        finish(start(intake, world.settings, world.folder, 0, 1))
        world.sandbox.control.wait_held(timeout_s=PATIENCE_S)
        [sleeper] = crew.workers
        os.kill(sleeper.pid, signal.SIGSTOP)
        with crew_of(1, forked(world.settings, world.folder, 2), world.folder) as others:
            world.wait_done(first)
            until(lambda: True if tables(world.journal).get("workers", 1) == 1 else None, PATIENCE_S)
            until(lambda: None if tables(world.journal).get("doing") else True, PATIENCE_S)
            codes = others.drain()
        os.kill(sleeper.pid, signal.SIGCONT)
        world.sandbox.control.release()
        finish(start(intake, world.settings, world.folder, 1, 2))
        world.wait_done(later)
        codes += crew.drain()

    assert codes == [0, 0]
    assert wrong(world.journal, world.sandbox.control, [first, later]) == []
    assert tables(world.journal).get("todo", 0) == 0
