"""A run that workers died at goes on alone, so that the innocent beside it do not use up their attempts."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path

import pytest

from checkpointing import open_journal
from checkpointing.leases import holding, thread_lease
from graph import thread
from service.worker.company import DEATHS, Company, is_suspect
from tests.soak.errand import KILLS, errand, thread_of
from tests.support.processes import killed, start, until

LEASE = timedelta(milliseconds=100)
SOON_S = 0.05
"""How long somebody who is to wait is given to show that they do not."""


class Guest(threading.Thread):
    """Takes a place, and holds it until told to leave."""

    def __init__(self, company: Company, *, alone: bool) -> None:
        super().__init__(daemon=True)
        self.company, self.alone = company, alone
        self.inside, self.leave = threading.Event(), threading.Event()
        self.start()

    def run(self) -> None:
        with self.company.place(alone=self.alone):
            self.inside.set()
            self.leave.wait(30)

    def end(self) -> None:
        self.leave.set()
        self.join(30)


def test_others_are_beside_each_other() -> None:
    company = Company()
    guests = [Guest(company, alone=False) for _ in range(3)]

    assert all(one.inside.wait(30) for one in guests)
    for one in guests:
        one.end()


def test_who_is_alone_waits_for_the_others_and_they_for_it() -> None:
    company = Company()
    first = Guest(company, alone=False)
    assert first.inside.wait(30)
    suspect = Guest(company, alone=True)
    assert not suspect.inside.wait(SOON_S)

    first.end()
    assert suspect.inside.wait(30)
    late, another = Guest(company, alone=False), Guest(company, alone=True)
    assert not late.inside.wait(SOON_S)
    assert not another.inside.is_set()
    suspect.end()
    assert late.inside.wait(30) or another.inside.wait(30)
    for one in (late, another):
        one.end()


@pytest.mark.parametrize("alone", [True, False])
def test_nobody_waits_for_ever(*, alone: bool) -> None:
    company = Company(patience_s=SOON_S)
    first = Guest(company, alone=not alone)
    assert first.inside.wait(30)

    second = Guest(company, alone=alone)
    assert second.inside.wait(30)
    for one in (first, second):
        one.end()


def begin_poison(url: str, folder: Path) -> None:
    """Carry the errand that kills its worker on, once more."""
    with open_journal(url, lease=LEASE, artefacts=str(folder)) as journal:
        graph = errand(journal, folder)
        graph.invoke({"claim_id": KILLS}, thread(thread_of(KILLS), principal="intake"))


def test_a_run_goes_alone_once_workers_died_at_its_checkpoint_more_than_once(url: str, tmp_path: Path) -> None:
    """The first death comes before there is a checkpoint; the one that looks holds no lease, as the dead one's is over."""
    told = []
    with open_journal(url, artefacts=str(tmp_path)) as journal:
        for _ in range(1 + DEATHS):
            killed(start(begin_poison, url, tmp_path))
            until(lambda: journal.leases.holder(thread_lease(thread_of(KILLS))) is None or None)
            told.append(is_suspect(journal.runs.get(thread_of(KILLS)), journal))
        with holding(journal.leases, thread_lease(thread_of(KILLS))):
            held = is_suspect(journal.runs.get(thread_of(KILLS)), journal)

    assert told == [False] * DEATHS + [True]
    assert not held
