"""
A journal is copied, goes on, is lost, and the copy is restored: what was paid since is paid once all the same.

The receiver remembers its keys for a while only; `forget_key` is that while being over.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from checkpointing import EffectRecord, Journal, open_journal
from tests.service.conftest import Cli, Filed, Said, approval_of, environment, in_process
from tests.support.copies import copied, restored
from tests.support.points import die_at
from tests.support.processes import killed, start, until
from tests.support.sandboxes import ForkedSandbox, forked_sandbox
from tools.sandbox import SandboxControl

Make = Callable[..., Filed]
AS = ("--as", "adjuster-17")
REPAIR = ("--fix", "--as", "operator-3", "--restored")


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[ForkedSandbox]:
    """A sandbox nobody else pays at: a comparison sees all that was executed."""
    with forked_sandbox(tmp_path / "sandbox.db") as process:
        yield process


@pytest.fixture
def control(sandbox: ForkedSandbox) -> SandboxControl:
    return sandbox.control


@dataclass
class Site:
    """A journal and its receivers; `copy` and `restore` are what an operator does, `made_at` when."""

    url: str
    outside: str
    folder: Path
    new_empty_url: Callable[[], str]
    made_at: str = ""

    def __call__(self, *arguments: str, code: int = 0) -> Said:
        return in_process(environment(self.url, self.outside, self.folder))(*arguments, code=code)

    def copy(self) -> None:
        self.made_at = datetime.now(UTC).isoformat()
        copied(self.url, self.folder)

    def restore(self) -> None:
        self.url = restored(self.folder / "copy", self.url, self.new_empty_url)

    def repair(self, *more: str, code: int = 0) -> Any:
        return self("reconcile", *REPAIR, "--since", self.made_at, "--json", *more, code=code).document

    @contextmanager
    def journal(self) -> Iterator[Journal]:
        with open_journal(self.url, artefacts=str(self.folder / "artefacts")) as journal:
            yield journal

    def payment(self, claim: Filed) -> EffectRecord:
        with self.journal() as journal:
            [record] = [one for one in journal.effects.list() if one.effect == "pay" and claim.claim_id in one.slot]
        return record

    def faults(self) -> list[str]:
        with self.journal() as journal:
            return list(journal.audit.verify())


@pytest.fixture
def site(
    url: str,
    new_empty_url: Callable[[], str],
    sandbox: ForkedSandbox,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Site:
    monkeypatch.chdir(tmp_path)  # away from any .env
    return Site(url, sandbox.url, tmp_path, new_empty_url)


def submitted(cli: Cli, filed: Make) -> Filed:
    claim = filed()
    cli(*claim.submit)
    return claim


def approved(cli: Cli, claim: Filed, *more: str, code: int = 0) -> Said:
    return cli("approve", approval_of(cli, claim), *AS, *more, code=code)


def forgotten(control: SandboxControl, claim: Filed) -> None:
    """The receiver's memory of the claim's keys is over."""
    control.fault("transfers", "forget_key", match=claim.claim_id)


def kinds(report: Any) -> list[tuple[str, bool]]:
    return [(one["kind"], one["adopted"]) for one in report["findings"]]


def test_a_payment_made_after_the_copy_is_made_once(site: Site, filed: Make, control: SandboxControl) -> None:
    before, paid, doubtful, declined = (submitted(site, filed) for _ in range(4))
    approved(site, before)
    site.copy()
    approved(site, paid)
    control.fault("transfers", "drop_after", match=doubtful.claim_id, times=3)
    approved(site, doubtful, code=4)
    site("reject", approval_of(site, declined), *AS)
    known = site.payment(paid)
    site.restore()

    told = site("reconcile", "--restored", "--since", site.made_at, "--json", code=1).document
    assert kinds(told) == [("lost", False)] * 2
    report = site.repair()

    assert (kinds(report), report["agrees"]) == ([("lost", True)] * 2, True)
    assert kinds(site("reconcile", "--json").document) == [("awaited", False)] * 2
    for claim in (paid, doubtful):
        forgotten(control, claim)
        assert "is done: paid" in approved(site, claim).stdout
    approved(site, declined)
    assert [len(control.payments(one.claim_id)) for one in (before, paid, doubtful, declined)] == [1, 1, 1, 1]
    again = site.payment(paid)
    assert (again.outcome, again.key, again.calls, again.replays) == (known.outcome, known.key, 0, 1)
    assert again.approval_id is not None
    assert site("reconcile", "--json").document["findings"] == []
    assert site.faults() == []


def test_without_the_repair_it_is_made_again_once_its_key_is_forgotten(
    site: Site, filed: Make, control: SandboxControl
) -> None:
    """What the repair is for; and until then the key is honoured."""
    young, old = submitted(site, filed), submitted(site, filed)
    site.copy()
    approved(site, young)
    approved(site, old)
    site.restore()

    approved(site, young)
    forgotten(control, old)
    approved(site, old)

    assert (len(control.payments(young.claim_id)), len(control.payments(old.claim_id))) == (1, 2)
    report = site.repair(code=1)
    assert kinds(report) == [("twice", False)]


def test_workers_that_were_started_too_early_break_nothing(site: Site, filed: Make, control: SandboxControl) -> None:
    """Their key was honoured, so the row is there, and there is nothing left to record; the other payment is recorded as ever."""
    early, late = submitted(site, filed), submitted(site, filed)
    site.copy()
    approved(site, early)
    approved(site, late)
    site.restore()
    approved(site, early)

    assert kinds(site.repair()) == [("lost", True)]
    forgotten(control, late)
    approved(site, late)
    assert [len(control.payments(one.claim_id)) for one in (early, late)] == [1, 1]


def test_a_claim_that_was_submitted_after_the_copy_is_to_be_submitted_again(
    site: Site, filed: Make, control: SandboxControl
) -> None:
    with site.journal():  # its tables are there
        pass
    site.copy()
    claim = submitted(site, filed)
    approved(site, claim)
    site.restore()

    report = site.repair(code=1)
    assert kinds(report) == [("unknown", False)]
    assert "Submit it again" in report["findings"][0]["why"]
    site(*claim.submit)
    forgotten(control, claim)
    approved(site, claim)
    assert len(control.payments(claim.claim_id)) == 1
    assert site("reconcile", "--json").document["findings"] == []


def test_nothing_is_recorded_without_a_restore(site: Site, filed: Make, control: SandboxControl) -> None:
    """In normal operation an execution that nobody here knows is somebody else's."""
    claim = submitted(site, filed)
    site.copy()
    approved(site, claim)
    site.restore()

    said = site("reconcile", "--fix", "--as", "operator-3", "--grace", "0s", "--json", code=1).document

    assert kinds(said) == [("unknown", False)]
    with site.journal() as journal, journal.store.reading() as tx:
        assert tx.all("select * from executions") == []


def test_a_claim_that_is_declined_this_time_leaves_its_payment_a_difference(site: Site, filed: Make) -> None:
    claim = submitted(site, filed)
    site.copy()
    approved(site, claim)
    site.restore()
    site.repair()
    site("reject", approval_of(site, claim), *AS)

    [finding] = site("reconcile", "--json", code=1).document["findings"]

    assert finding["kind"] == "unknown"
    assert f"run {claim.thread_id!r} is done without having asked for it" in finding["why"]


def test_another_amount_than_was_paid_is_a_conflict_until_the_payment_is_taken_back(
    site: Site, filed: Make, control: SandboxControl, sandbox: ForkedSandbox
) -> None:
    claim = submitted(site, filed)
    site.copy()
    approved(site, claim)
    site.restore()
    site.repair()
    payload = {**site("approvals", "--json").document[0]["payload"], "amount": 1700_00}

    said = site("edit", approval_of(site, claim), "--payload", json.dumps(payload), *AS, code=1)

    assert "was executed as" in said.stderr
    assert len(control.payments(claim.claim_id)) == 1
    take_back(sandbox, claim)
    assert kinds(site("reconcile", "--json", code=1).document) == [("lost", False)]
    site("reconcile", "--fix", "--as", "operator-3")
    assert site("reconcile", "--json").document["findings"] == []
    site("redrive", claim.thread_id, "--as", "operator-3")
    assert "is done: paid" in site("resume", claim.thread_id).stdout
    assert [one.amount for one in control.payments(claim.claim_id)] == [1840_00, 1700_00]
    assert site.faults() == []


def take_back(sandbox: ForkedSandbox, claim: Filed) -> None:
    """Reverse the claim's transfer at the receiver."""
    sandbox.stop()
    with closing(sqlite3.connect(sandbox.database)) as connection, connection:
        [(number, body)] = connection.execute(
            "select number, body from transfers where claim_id = ?", (claim.claim_id,)
        )
        reversed_ = json.dumps({**json.loads(body), "reversed": True})
        connection.execute("update transfers set body = ? where number = ?", (reversed_, number))
    sandbox.start()


@pytest.mark.parametrize("point", ["before execution.record", "after execution.record"])
def test_a_repair_that_was_killed_is_finished_by_the_next(
    site: Site, filed: Make, control: SandboxControl, point: str
) -> None:
    claims = [submitted(site, filed) for _ in range(2)]
    site.copy()
    for claim in claims:
        approved(site, claim)
    site.restore()
    killed(start(repair_and_die, site.url, site.outside, site.folder, site.made_at, point))

    report = site.repair()

    first = ("awaited", False) if point.startswith("after") else ("lost", True)
    assert sorted(kinds(report)) == [first, ("lost", True)]
    for claim in claims:
        forgotten(control, claim)
        approved(site, claim)
    assert [len(control.payments(one.claim_id)) for one in claims] == [1, 1]
    assert site.faults() == []


def repair_and_die(url: str, outside: str, folder: Path, made_at: str, point: str) -> None:
    die_at(point)
    in_process(environment(url, outside, folder))("reconcile", *REPAIR, "--since", made_at)


def test_who_says_too_late_a_time_loses_nothing(site: Site, filed: Make, control: SandboxControl) -> None:
    """The journal says itself that it knows nothing after its last entry."""
    claim = submitted(site, filed)
    site.copy()
    approved(site, claim)
    [payment] = control.payments(claim.claim_id)
    until(lambda: datetime.now(UTC).timestamp() >= payment.created + 1 or None)  # the receiver counts in whole seconds
    site.made_at = datetime.now(UTC).isoformat()
    site.restore()

    assert kinds(site.repair("--grace", "0s")) == [("lost", True)]


def test_a_restored_journal_is_to_be_dated(site: Site, filed: Make) -> None:
    submitted(site, filed)

    assert "--restored needs --since WHEN" in site("reconcile", "--restored", code=2).stderr
