"""How commands end where nothing was mistyped: too late, not allowed, busy, unreachable, dead, in doubt."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from checkpointing import Journal, open_journal
from checkpointing.errors import (
    AlreadyDecided,
    CounterfoilError,
    EffectConflict,
    JournalUnreachable,
    JournalUnusable,
    RunBusy,
    StoreUnreachable,
    UnknownThread,
)
from checkpointing.leases import thread_lease
from graph import thread
from service.cli.exits import Exit, exit_code
from service.settings import load_settings
from service.submission import accept, read_submission
from service.wiring import wired
from tests.service.conftest import Cli, Filed, Said, approval_of, environment, in_process
from tools.claims_system import ClaimsSystem
from tools.sandbox import SandboxControl, SandboxProcess

Make = Callable[..., Filed]
AS = ("--as", "adjuster-17")


def test_a_claim_is_paid_when_it_is_approved(cli: Cli, filed: Make, control: SandboxControl) -> None:
    claim = filed()
    said = cli(*claim.submit)
    assert f"{claim.thread_id} is parked (approval)" in said.stdout
    assert "step 4  approve" in said.stderr
    command = next(line for line in said.stdout.splitlines() if "counterfoil approve" in line)

    approved = cli(*command.replace("NAME", "adjuster-17").split()[1:])

    assert "Recorded: approve by adjuster-17." in approved.stdout
    assert f"{claim.thread_id} is done: paid" in approved.stdout
    assert [payment.amount for payment in control.payments(claim.claim_id)] == [1840_00]


def test_a_rejected_claim_is_not_paid_and_the_reason_is_told(cli: Cli, filed: Make, control: SandboxControl) -> None:
    claim = filed()
    cli(*claim.submit)

    said = cli("reject", approval_of(cli, claim), *AS, "--reason", "Not this car.", "--json")

    assert said.document["state"] == "done"
    assert control.payments(claim.claim_id) == []
    assert "Not this car." in control.messages(claim.claim_id)[0]["text"]


def test_an_edited_amount_is_what_is_paid(cli: Cli, filed: Make, control: SandboxControl) -> None:
    claim = filed()
    cli(*claim.submit)
    (asked,) = cli("approvals", "--json").document

    payload = json.dumps({**asked["payload"], "amount": 1500_00})
    cli("edit", asked["id"], *AS, "--payload", payload)

    assert [payment.amount for payment in control.payments(claim.claim_id)] == [1500_00]


def test_the_second_decision_is_too_late_and_says_who_won(cli: Cli, filed: Make) -> None:
    claim = filed()
    cli(*claim.submit)
    approval = approval_of(cli, claim)
    cli("approve", approval, *AS)

    said = cli("reject", approval, "--as", "adjuster-18", code=3)

    assert "was decided already: approve by 'adjuster-17'" in said.line


def test_the_submitter_may_not_approve(cli: Cli, filed: Make, control: SandboxControl) -> None:
    claim = filed()
    cli(*claim.submit)

    said = cli("approve", approval_of(cli, claim), "--as", "intake", code=3)

    assert "may not decide" in said.line
    assert control.payments(claim.claim_id) == []


def test_an_expired_question_is_too_late_and_resume_applies_its_outcome(
    settings: dict[str, str], filed: Make, control: SandboxControl, cli: Cli
) -> None:
    claim = filed()
    hasty = in_process({**settings, "COUNTERFOIL_APPROVAL_HOURS": "0.0000001"})
    hasty(*claim.submit)
    approval = approval_of(cli, claim)

    said = cli("approve", approval, *AS, code=3)
    assert "expired at" in said.line
    assert "The time to decide is over" in cli("show", claim.thread_id).stdout
    assert f"{claim.thread_id} is done: expired" in cli("resume", claim.thread_id).stdout
    assert control.payments(claim.claim_id) == []


def test_a_superseded_question_is_too_late_and_names_the_new_one(cli: Cli, filed: Make, journal: Journal) -> None:
    claim = filed()
    cli(*claim.submit)
    approval = approval_of(cli, claim)
    with journal.store.transaction("test.supersede") as tx:
        tx.all("update approvals set state = 'superseded' where id = :id", id=approval)

    assert "was superseded" in cli("approve", approval, *AS, code=3).line


def test_a_held_thread_is_busy_and_a_decision_is_recorded_all_the_same(
    cli: Cli, filed: Make, journal: Journal, control: SandboxControl
) -> None:
    claim = filed()
    cli(*claim.submit)
    lease = journal.leases.take(thread_lease(claim.thread_id))

    approved = cli("approve", approval_of(cli, claim), *AS)
    busy = cli("resume", claim.thread_id, code=4)
    waited = cli("resume", claim.thread_id, "--wait", "0.3", code=4)

    assert f"Worker {lease.owner} holds the thread and carries it on." in approved.stdout
    assert f"thread '{claim.thread_id}' is held for another " in busy.line
    assert re.search(rf" s by {lease.owner}; counterfoil resume {claim.thread_id} --wait \d\d$", busy.line)
    assert [f" s by {lease.owner}; " in line for line in waited.stderr.splitlines()] == [True, True]
    assert control.payments(claim.claim_id) == []
    journal.leases.give_back(lease)
    assert "is done: paid" in cli("resume", claim.thread_id).stdout


def test_a_thread_held_at_its_submission_is_admitted_and_resumed_later(cli: Cli, filed: Make, journal: Journal) -> None:
    claim = filed()
    lease = journal.leases.take(thread_lease(claim.thread_id))

    assert f"is being carried on by {lease.owner}, which holds it for another " in cli(*claim.submit, code=4).line
    assert f"is being carried on by {lease.owner}" in cli(*claim.submit, code=4).line
    assert f"Worker {lease.owner} carries the run on." in cli("show", claim.thread_id).stdout
    journal.leases.give_back(lease)
    shown = cli("show", claim.thread_id).stdout
    assert shown.startswith(f"{claim.thread_id} is admitted\n")
    assert shown.endswith(f"  counterfoil resume {claim.thread_id}\n")
    assert "is parked" in cli("resume", claim.thread_id).stdout


def test_resume_waits_for_the_lease_of_a_dead_worker(cli: Cli, filed: Make, url: str, tmp_path: Path) -> None:
    claim = filed()
    cli(*claim.submit)
    approval = approval_of(cli, claim)
    with open_journal(url, lease=timedelta(seconds=2), artefacts=str(tmp_path)) as dead:
        dead.leases.take(thread_lease(claim.thread_id))
    cli("approve", approval, *AS)

    said = cli("resume", claim.thread_id, "--wait", "30")

    assert f"waiting: thread '{claim.thread_id}' is held" in said.stderr
    assert "is done: paid" in said.stdout


def test_a_claims_system_that_does_not_answer_leaves_nothing_and_submitting_again_completes(
    cli: Cli, settings: dict[str, str], filed: Make, journal: Journal
) -> None:
    claim = filed()
    nowhere = in_process({**settings, "COUNTERFOIL_CLAIMS_URL": "http://127.0.0.1:1"})

    said = nowhere(*claim.submit, code=4)
    assert "got no answer" in said.line
    assert "is it running? Start one with counterfoil sandbox, or set COUNTERFOIL_CLAIMS_URL" in said.line
    assert journal.runs.list() == []
    assert "is parked" in cli(*claim.submit).stdout


def test_killed_after_filing_the_claim_submitting_again_completes(
    url: str,
    cli: Cli,
    filed: Make,
    journal: Journal,
    sandbox: SandboxProcess,
    control: SandboxControl,
    tmp_path: Path,
) -> None:
    claim = filed()
    control.fault("claims", "hold_after", match=claim.claim_id)
    with started(*claim.submit, url=url, sandbox=sandbox, folder=tmp_path) as process:
        control.wait_held()
        process.kill()
    control.release()

    assert journal.runs.list() == []
    assert not (tmp_path / "artefacts").exists()
    assert "is parked" in cli(*claim.submit).stdout


def test_stopped_before_the_admission_submitting_again_completes(
    cli: Cli, settings: dict[str, str], filed: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = filed()
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    with wired(load_settings()) as app:
        accept(app, read_submission(claim.path), claim.thread_id)

    assert "is parked" in cli(*claim.submit).stdout


@pytest.mark.parametrize("again", ["resume", "submit"])
def test_stopped_after_the_admission_resume_and_submit_complete(
    cli: Cli, settings: dict[str, str], filed: Make, monkeypatch: pytest.MonkeyPatch, again: str
) -> None:
    claim = filed()
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    with wired(load_settings()) as app:
        submission = read_submission(claim.path)
        accept(app, submission, claim.thread_id)
        stream = app.graph.stream(submission.input, thread(claim.thread_id))
        next(stream)
        stream.close()  # type: ignore[attr-defined]  # a generator

    arguments = claim.submit if again == "submit" else ("resume", claim.thread_id)
    assert "is parked" in cli(*arguments).stdout


def test_a_submit_that_was_killed_is_carried_on_by_the_same_command(
    url: str, cli: Cli, filed: Make, sandbox: SandboxProcess, control: SandboxControl, tmp_path: Path, journal: Journal
) -> None:
    """Its run is running and its lease live: busy; once the lease is over, the same command carries the run on."""
    claim = filed()
    control.fault("claims", "hold_before", method="GET")
    with started(*claim.submit, url=url, sandbox=sandbox, folder=tmp_path, COUNTERFOIL_LEASE_SECONDS="30") as process:
        control.wait_held()
        process.kill()
    control.release()

    assert "is being carried on by" in cli(*claim.submit, code=4).line
    with journal.store.transaction("test.expire") as tx:
        tx.all("update leases set expires_ms = 0")
    assert "running, its worker is gone" in squeezed(cli("list").stdout)
    assert "is parked" in cli(*claim.submit).stdout
    assert journal.runs.get(claim.thread_id).resumes == 1


def test_a_node_that_fails_is_one_line_and_says_how_the_run_stands(
    cli: Cli, filed: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = filed()

    def broken(_self: ClaimsSystem, _number: str) -> None:
        raise KeyError("claim")

    monkeypatch.setattr(ClaimsSystem, "policy", broken)
    said = cli(*claim.submit, code=1)

    assert said.stderr.splitlines()[-1] == (
        f"counterfoil: node failed: KeyError: 'claim' (in fetch_policy); the run is admitted with 1 attempt used; "
        f"see counterfoil show {claim.thread_id}"
    )
    assert "Traceback" not in said.stderr
    assert cli("resume", claim.thread_id, "--json", code=1).document["error"]["type"] == "NodeFailed"
    assert "Traceback" in cli("--debug", "resume", claim.thread_id, code=1).stderr
    assert " starts " in cli("show", claim.thread_id).stdout
    monkeypatch.undo()
    assert "is parked" in cli("resume", claim.thread_id).stdout


def test_a_payment_that_got_no_answer_is_tried_again_by_resume(cli: Cli, filed: Make, control: SandboxControl) -> None:
    claim = filed()
    cli(*claim.submit)
    control.fault("transfers", "drop_after", match=claim.claim_id, times=3)

    said = cli("approve", approval_of(cli, claim), *AS, code=4)

    assert "advancing the run asks again with the same key" in said.stderr
    assert "is done: paid" in cli("resume", claim.thread_id).stdout
    assert len(control.payments(claim.claim_id)) == 1


def test_an_effect_in_doubt_parks_until_somebody_says_what_happened(
    cli: Cli, filed: Make, control: SandboxControl, journal: Journal
) -> None:
    claim = filed()
    cli(*claim.submit)
    control.fault("emails", "drop_before", match=claim.claim_id, times=3)
    cli("approve", approval_of(cli, claim), *AS, code=4)
    age(journal, claim.thread_id, "notify", timedelta(days=2))

    parked = cli("resume", claim.thread_id)
    assert "is parked (in_doubt)" in parked.stdout
    command = next(line for line in parked.stdout.splitlines() if "--nothing-happened" in line)
    resolved = cli(*command.replace("NAME", "operator-3").split()[1:])
    assert f"counterfoil resume {claim.thread_id}" in resolved.stdout
    again = cli(*command.replace("NAME", "operator-3").split()[1:], code=3)
    assert "an outcome is never replaced" in again.line
    assert "is done: paid" in cli("resume", claim.thread_id).stdout
    assert len(control.messages(claim.claim_id)) == 1


def test_resolving_an_effect_names_every_run_that_was_woken(
    cli: Cli, filed: Make, control: SandboxControl, journal: Journal
) -> None:
    """Two threads may wait for one effect, where its identity is a business one (`once=`)."""
    first, second = filed(), filed()
    for claim in (first, second):
        cli(*claim.submit)
    control.fault("emails", "drop_before", match=first.claim_id, times=3)
    cli("approve", approval_of(cli, first), *AS, code=4)
    age(journal, first.thread_id, "notify", timedelta(days=2))
    cli("resume", first.thread_id)
    (key,) = [
        effect["key"] for effect in cli("effects", first.thread_id, "--json").document if effect["state"] == "in_doubt"
    ]
    with journal.store.transaction("test.wait") as tx:
        tx.all(
            "update runs set reason = 'in_doubt', waits_for = :key where thread_id = :thread_id",
            key=key,
            thread_id=second.thread_id,
        )

    said = cli("effects", "resolve", key, "--nothing-happened", "--as", "operator-3").stdout

    for claim in (first, second):
        assert f"  counterfoil resume {claim.thread_id}\n" in said


def test_a_dead_letter_is_wrong_until_it_is_redriven(
    cli: Cli, filed: Make, journal: Journal, settings: dict[str, str], control: SandboxControl
) -> None:
    claim = filed()
    cli(*claim.submit)
    refused = in_process({**settings, "COUNTERFOIL_STRIPE_KEY": "not-a-key"})

    died = refused("approve", approval_of(cli, claim), *AS, code=1)
    assert "Stripe" in died.stderr.splitlines()[-1]
    assert "is a dead letter (the receiver refused the request)" in cli("resume", claim.thread_id, code=1).line
    assert [run["thread_id"] for run in cli("list", "--state", "dead", "--json").document] == [claim.thread_id]
    for command in (("list",), ("show", claim.thread_id)):
        assert "the receiver refused the request" in squeezed(cli(*command).stdout)
        assert "(rejected)" not in cli(*command).stdout
    assert (
        f"(state dead); nothing was changed. See counterfoil show {claim.thread_id}; mend"
        in cli(*claim.submit, code=2).line
    )
    redriven = cli("redrive", claim.thread_id, "--as", "operator-3", "--reason", "the right key")
    assert f"counterfoil resume {claim.thread_id}" in redriven.stdout
    assert "is done: paid" in cli("resume", claim.thread_id).stdout
    assert len(control.payments(claim.claim_id)) == 1


def test_a_fault_in_the_audit_is_wrong(cli: Cli, filed: Make, journal: Journal) -> None:
    claim = filed()
    cli(*claim.submit)
    assert cli("audit", "verify").stdout == "The audit is whole.\n"
    with journal.store.transaction("test.tamper") as tx:
        tx.all("update audit set actor = 'somebody' where seq = 2")

    said = cli("audit", "verify", code=1)
    assert said.stdout == f"thread '{claim.thread_id}': entry 2 (run.start) was changed\n"
    assert cli("audit", "verify", "--json", code=1).document == {
        "whole": False,
        "faults": said.stdout.splitlines(),
    }


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UnknownThread("x"), Exit.BAD_INPUT),
        (AlreadyDecided("x"), Exit.TOO_LATE),
        (RunBusy("x"), Exit.TRY_AGAIN),
        (StoreUnreachable("x"), Exit.TRY_AGAIN),
        (JournalUnreachable("x"), Exit.TRY_AGAIN),
        (JournalUnusable("x"), Exit.BAD_INPUT),
        (EffectConflict("x"), Exit.WRONG),
        (CounterfoilError("x"), Exit.WRONG),
    ],
)
def test_an_error_has_the_exit_code_that_says_what_to_do(error: CounterfoilError, code: Exit) -> None:
    assert exit_code(error) is code


def test_documents_that_cannot_be_stored_are_one_line_and_submitting_again_completes(
    cli: Cli, filed: Make, tmp_path: Path
) -> None:
    claim = filed()
    (tmp_path / "artefacts").write_text("a file where the folder should be")

    assert "cannot be stored" in cli(*claim.submit, code=2).line
    (tmp_path / "artefacts").unlink()
    assert "is parked" in cli(*claim.submit).stdout


def test_the_command_is_installed_and_ends_with_its_code(
    sandbox: SandboxProcess, tmp_path: Path, new_postgres: Callable[[], str]
) -> None:
    """Through a process, as a script does it: no traceback, one line, the exit code."""
    url = new_postgres()
    open_journal(url).close()
    said = command("show", "claim-0000", url=url, sandbox=sandbox, folder=tmp_path)

    assert said == Said(2, "", "counterfoil: there is no run for thread 'claim-0000'; see counterfoil list\n")


def command(*arguments: str, url: str, sandbox: SandboxProcess, folder: Path) -> Said:
    """Run the installed command."""
    with started(*arguments, url=url, sandbox=sandbox, folder=folder) as process:
        stdout, stderr = process.communicate(timeout=60)
    return Said(process.returncode, stdout, stderr)


def squeezed(table: str) -> str:
    """Return what a table says, wherever it broke its lines."""
    return " ".join(table.split())


def started(*arguments: str, url: str, sandbox: SandboxProcess, folder: Path, **more: str) -> subprocess.Popen[str]:
    """Start the installed command."""
    return subprocess.Popen(
        [str(Path(sys.executable).with_name("counterfoil")), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, **environment(url, sandbox.url, folder), **more},
    )


def age(journal: Journal, thread_id: str, effect: str, by: timedelta) -> None:
    """Make an effect's first call lie further back, past the life of its key."""
    with journal.store.transaction("test.age") as tx:
        tx.all(
            "update effects set claimed_ms = claimed_ms - :by where thread_id = :thread_id and effect = :effect",
            by=int(by.total_seconds() * 1000),
            thread_id=thread_id,
            effect=effect,
        )
