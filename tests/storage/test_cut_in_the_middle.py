"""
Storage goes away in the middle of each durable write of a run: the caller is told why, nothing is lost, nothing happens twice, no attempt is spent.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from checkpointing import Journal, open_journal, postgres
from checkpointing.errors import StoreUnreachable, TryAgain
from checkpointing.leases import holder_of
from checkpointing.postgres import PostgresEngine
from checkpointing.sqlite import SqliteEngine
from tests.support.bank import Bank
from tests.support.outage import Outage
from tests.support.processes import until
from tests.support.small_claim import THREAD, act, small_claim
from tools import Receiver, perform

SUBMITTING = ["run.admit", "lease.take", "run.start", "checkpoint.put", "checkpoint.put_writes",
              "effect.claim", "effect.settle", "approval.open", "run.park"]  # fmt: skip
APPROVING = ["approval.decide", "lease.take", "run.start", "effect.claim", "effect.settle",
             "checkpoint.put_writes", "checkpoint.put", "run.finish"]  # fmt: skip
LEASE = timedelta(seconds=5)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits half a minute for a connection."""
    monkeypatch.setattr(postgres, "WAIT_S", 0.8)
    monkeypatch.setattr(perform, "KEEPING", (timedelta(milliseconds=50),) * 2)


def paid_once(journal: Journal, folder: Path) -> None:
    run = journal.runs.get(THREAD)
    assert (run.state, run.error, run.attempts) == ("done", None, 0)
    assert len(Bank(folder / "bank").executed) == 1
    assert len(Bank(folder / "post").executed) == 1
    assert list(journal.audit.verify()) == []
    assert journal.leases.holder(f"thread:{THREAD}") is None


def act_until_done(journal: Journal, folder: Path) -> None:
    """Do what is left, with one attempt only."""
    graph = small_claim(journal, folder, attempts=1)

    def acted() -> bool | None:
        with suppress(TryAgain):
            if journal.runs.find(THREAD) is None:
                act(graph, "submit")
            act(graph, "approve" if journal.approvals.pending(thread_id=THREAD) else "resume")
            return True if journal.runs.get(THREAD).state == "done" else None
        return None

    until(acted)


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "lasting"])
@pytest.mark.parametrize(
    ("action", "name"), [*(("submit", n) for n in SUBMITTING), *(("approve", n) for n in APPROVING)]
)
def test_a_write_that_is_cut(url: str, tmp_path: Path, action: str, name: str, lasting: bool) -> None:
    with open_journal(url, lease=LEASE) as journal:
        graph = small_claim(journal, tmp_path, attempts=1)
        if action == "approve":
            act(graph, "submit")
        outage = Outage(url, name, lasting=lasting)
        with outage.awaited():
            told = None
            try:
                act(graph, action)
            except StoreUnreachable as error:
                told = str(error)
        assert outage.hits == 1
        assert told is None or place_of(journal) in told
        assert told or not lasting  # what was away for a moment may go unnoticed

        act_until_done(journal, tmp_path)
        paid_once(journal, tmp_path)


def place_of(journal: Journal) -> str:
    engine = journal.store.engine
    assert isinstance(engine, PostgresEngine | SqliteEngine)
    return engine.place if isinstance(engine, PostgresEngine) else f"journal {engine.path}"


def test_an_outcome_that_could_not_be_recorded_at_once_is_not_left_to_doubt(url: str, tmp_path: Path) -> None:
    """This bank has neither keys nor a look-up: what it answered is known to one process, and recorded by it after all."""
    with open_journal(url, lease=LEASE) as journal:
        graph = small_claim(journal, tmp_path, receiver=Receiver(), attempts=1)
        act(graph, "submit")
        with Outage(url, "effect.settle").awaited():
            act(graph, "approve")

        assert len(Bank(tmp_path / "bank").calls) == 1
        paid_once(journal, tmp_path)


def test_a_renewal_that_was_cut_once_is_tried_again_and_keeps_the_lease(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = Bank.execute
    monkeypatch.setattr(postgres, "WAIT_S", 3.0)  # only the renewal is cut; a busy machine may be slow to connect again
    with open_journal(url, lease=timedelta(seconds=3)) as journal:
        graph = small_claim(journal, tmp_path, attempts=1)
        act(graph, "submit")
        outage = Outage(url, "lease.renew")

        def looked() -> int | None:
            with suppress(StoreUnreachable), journal.store.reading() as tx:  # this look may be cut with the renewal
                row = holder_of(tx, f"thread:{THREAD}")
                return int(row["left_ms"]) if row else 0
            return None

        def left_ms() -> int:
            return until(looked)

        def slowly(bank: Bank, **call: object) -> dict[str, object]:
            if bank.file.name == "bank":
                until(lambda: True if outage.hits else None)
                held = left_ms()
                assert held > 0
                until(lambda: True if left_ms() > held else None)  # renewed after all, and never lost
            return execute(bank, **call)

        monkeypatch.setattr(Bank, "execute", slowly)
        with outage.awaited():
            act(graph, "approve")

        assert outage.hits == 1
        paid_once(journal, tmp_path)
