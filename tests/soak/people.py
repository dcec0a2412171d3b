"""
Whoever is not a worker, each a process of its own: the intake, which files and submits claims, and the adjusters, who decide.

Two adjusters decide the same approvals at the same time, as soon as they see them: before the run has parked, after that, and while its worker dies.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from checkpointing.errors import AlreadyDecided
from graph import thread
from service.settings import load_settings
from service.wiring import App, wired
from tests.soak.cases import Case, case_of

LOOK_S = 0.05


@contextmanager
def app_of(settings: dict[str, str], folder: Path) -> Iterator[App]:
    """Open the journal as a command in *folder* does, with these settings in its environment."""
    os.environ.update(settings)
    os.chdir(folder)  # away from any .env
    with wired(load_settings()) as app:
        yield app


def intake(settings: dict[str, str], folder: Path, first: int, beyond: int) -> None:
    """File and submit the claims of these numbers, for the workers."""
    with app_of(settings, folder) as app:
        for case in map(Case, range(first, beyond)):
            app.outside.claims.file(*case.file(), reference=case.thread_id)
            app.graph.submit({"claim_id": case.claim_id, "documents": []}, thread(case.thread_id, principal="intake"))


def adjuster(settings: dict[str, str], folder: Path, name: str, enough: Any) -> None:
    """Decide whatever is to be decided, until it is *enough*."""
    with app_of(settings, folder) as app:
        approvals = app.journal.approvals
        while not enough.wait(LOOK_S):
            for one in approvals.pending(limit=10_000):
                if decision := case_of(one.payload["claim_id"]).decision(one.payload):
                    with suppress(AlreadyDecided):  # the other one was faster
                        approvals.decide(one.id, decision, principal=name)
