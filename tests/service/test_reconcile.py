"""The ledger against the receiver's own list: each difference caused for real, at a sandbox of the test's own."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pytest
import stripe

from checkpointing import EffectRecord, Journal
from service.cli import reconcile as command
from tests.service.conftest import Cli, Filed, Said, approval_of, environment, in_process
from tests.service.test_exit_codes import age
from tests.support.points import die_at
from tests.support.processes import context, finish, killed, start
from tests.support.sandboxes import ForkedSandbox, forked_sandbox
from tools.payments import pay_effect
from tools.sandbox import SandboxControl

Make = Callable[..., Filed]
AS = ("--as", "adjuster-17")
FIX = ("--fix", "--as", "operator-3", "--grace", "0s")
NOW = ("--grace", "0s")


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[ForkedSandbox]:
    """A sandbox nobody else pays at: a comparison sees all that was executed."""
    with forked_sandbox(tmp_path / "sandbox.db") as process:
        yield process


@pytest.fixture
def control(sandbox: ForkedSandbox) -> SandboxControl:
    return sandbox.control


@pytest.fixture
def change(sandbox: ForkedSandbox, tmp_path: Path) -> Callable[..., None]:
    """Changes what the receiver has behind everybody's back: the transfer of a claim, or removes it."""

    def make(claim: Filed, *, transfer_id: str | None = None, **facts: Any) -> None:
        sandbox.stop()
        connection = sqlite3.connect(tmp_path / "sandbox.db")
        with connection:
            [(number, body)] = connection.execute(
                "select number, body from transfers where claim_id = ? and (? is null or id = ?)",
                (claim.claim_id, transfer_id, transfer_id),
            )
            if facts:
                changed = json.dumps({**json.loads(body), **facts})
                connection.execute("update transfers set body = ? where number = ?", (changed, number))
                if "created" in facts:
                    connection.execute("update transfers set created = ? where number = ?", (facts["created"], number))
            else:
                connection.execute("delete from transfers where number = ?", (number,))
        connection.close()
        sandbox.start()

    return make


def submitted(cli: Cli, filed: Make) -> Filed:
    claim = filed()
    cli(*claim.submit)
    return claim


def paid(cli: Cli, filed: Make) -> Filed:
    claim = submitted(cli, filed)
    cli("approve", approval_of(cli, claim), *AS)
    return claim


def in_doubt(cli: Cli, filed: Make, control: SandboxControl, kind: str = "drop_after") -> Filed:
    """A claim whose payment got no answer, three times."""
    claim = submitted(cli, filed)
    control.fault("transfers", kind, match=claim.claim_id, times=3)
    cli("approve", approval_of(cli, claim), *AS, code=4)
    return claim


def pay_of(journal: Journal, claim: Filed) -> EffectRecord:
    [record] = [one for one in journal.effects.list(thread_id=claim.thread_id) if one.effect == "pay"]
    return record


def found(said: Said) -> list[tuple[str, str | None]]:
    """What kind of finding there is about which state here."""
    return [(one["kind"], one["state"]) for one in said.document["findings"]]


def resolutions(journal: Journal, claim: Filed) -> list[str]:
    return [one.actor for one in journal.audit.entries(claim.thread_id) if one.event == "effect.resolve"]


def test_what_was_paid_once_and_recorded_agrees(cli: Cli, filed: Make, control: SandboxControl) -> None:
    paid(cli, filed)

    said = cli("reconcile")
    assert " ".join(said.stdout.split()) == (
        "pay: 1 executed at its receiver. notify: 1 executed at its receiver, 1 of them without a key or an identity: those were looked "
        "at by their ids alone. The ledger and its receivers agree."
    )
    assert cli("reconcile", "--json").document == {
        "since": None,
        "agrees": True,
        "differences": 0,
        "adopted": 0,
        "awaited": 0,
        "incomparable": 0,
        "in_progress": 0,
        "listed": [
            {"effect": "pay", "executed": 1, "unidentified": 0},
            {"effect": "notify", "executed": 1, "unidentified": 1},
        ],
        "findings": [],
    }


def test_a_payment_that_is_settled_here_and_missing_there_is_found(
    cli: Cli, filed: Make, change: Callable[..., None], journal: Journal
) -> None:
    claim = paid(cli, filed)
    change(claim)

    said = cli("reconcile", *NOW, "--json", code=1)

    assert found(said) == [("missing", "settled")]
    assert said.document["findings"][0]["key"] == pay_of(journal, claim).key
    shown = cli("reconcile", *NOW, code=1).stdout
    assert "Settled here, missing there (1)" in shown
    assert f"  counterfoil effects show {pay_of(journal, claim).key}\n" in shown
    assert shown.endswith("\n1 difference.\n")


def test_what_a_person_settled_and_nobody_executed_is_missing(
    cli: Cli, filed: Make, control: SandboxControl, journal: Journal
) -> None:
    claim = in_doubt(cli, filed, control, "drop_before")
    cli("effects", "resolve", pay_of(journal, claim).key, "--happened", '{"id": "tr_guessed"}', "--as", "operator-3")

    assert found(cli("reconcile", *NOW, "--json", code=1)) == [("missing", "settled")]


def test_what_was_settled_just_now_is_not_missing_yet(cli: Cli, filed: Make, change: Callable[..., None]) -> None:
    change(paid(cli, filed))

    said = cli("reconcile", "--json")

    assert (said.document["agrees"], found(said)) == (True, [("in_progress", "settled")])
    assert cli("reconcile").stdout.endswith("The ledger and its receivers agree, except 1 in progress.\n")


def test_a_payment_in_doubt_that_was_executed_is_adopted_and_its_run_finishes_with_one_payment(
    cli: Cli, filed: Make, control: SandboxControl, journal: Journal
) -> None:
    claim = in_doubt(cli, filed, control)
    assert found(cli("reconcile", "--json", code=1)) == [("unsettled", "in_doubt")]
    narrow = cli("reconcile", "--since", "1d", "--effect", "pay", *NOW, code=1, COLUMNS="60").stdout
    assert "  counterfoil reconcile --fix --as NAME --since 1d --grace 0s --effect pay\n" in narrow
    assert f"\n{pay_of(journal, claim).key}\n" in narrow
    assert "  counterfoil reconcile --fix --as NAME\n" in cli("reconcile", code=1).stdout

    said = cli("reconcile", *FIX).stdout

    assert "Adopted (1)" in said
    assert f"  counterfoil resume {claim.thread_id}\n" in said
    assert said.endswith("The ledger and its receivers agree.\n")
    [payment] = control.payments(claim.claim_id)
    assert pay_of(journal, claim).outcome == {
        "id": payment.id,
        "amount": 1840_00,
        "currency": "EUR",
        "payee": payment.payee,
        "claim_id": claim.claim_id,
    }
    assert resolutions(journal, claim) == ["operator-3"]
    assert "is done: paid" in cli("resume", claim.thread_id).stdout
    assert len(control.payments(claim.claim_id)) == 1
    assert list(journal.audit.verify()) == []
    assert found(cli("reconcile", *FIX, "--json")) == []


def test_a_run_that_is_parked_for_a_payment_is_woken(
    cli: Cli, filed: Make, control: SandboxControl, journal: Journal
) -> None:
    """Past the life of its key, and its look-up unanswered: only a person could have said."""
    claim = in_doubt(cli, filed, control)
    parked_for(journal, claim)

    said = cli("reconcile", *FIX, "--json").document

    assert said["adopted"] == 1
    assert [one["woken"] for one in said["findings"]] == [[claim.thread_id]]
    assert "is done: paid" in cli("resume", claim.thread_id).stdout
    assert len(control.payments(claim.claim_id)) == 1


def parked_for(journal: Journal, claim: Filed) -> None:
    with journal.store.transaction("test.park") as tx:
        tx.all(
            "update runs set state = 'parked', reason = 'in_doubt', waits_for = :key where thread_id = :thread_id",
            key=pay_of(journal, claim).key,
            thread_id=claim.thread_id,
        )


def test_a_payment_whose_worker_was_killed_is_adopted(
    url: str, cli: Cli, filed: Make, control: SandboxControl, sandbox: ForkedSandbox, journal: Journal, tmp_path: Path
) -> None:
    claim = submitted(cli, filed)
    control.fault("transfers", "hold_after", match=claim.claim_id)
    process = approving(cli, claim, url, sandbox, tmp_path)
    control.wait_held()
    process.kill()
    killed(process)
    control.release()
    expire_leases(journal)

    assert found(cli("reconcile", "--json")) == [("in_progress", "claimed")]
    assert found(cli("reconcile", *NOW, "--json", code=1)) == [("unsettled", "claimed")]
    assert cli("reconcile", *FIX, "--json").document["adopted"] == 1
    assert "is done: paid" in cli("resume", claim.thread_id).stdout
    assert len(control.payments(claim.claim_id)) == 1
    assert list(journal.audit.verify()) == []


def test_what_a_live_worker_is_executing_is_in_progress_and_never_adopted(
    url: str, cli: Cli, filed: Make, control: SandboxControl, sandbox: ForkedSandbox, journal: Journal, tmp_path: Path
) -> None:
    claim = submitted(cli, filed)
    control.fault("transfers", "hold_after", match=claim.claim_id)
    process = approving(cli, claim, url, sandbox, tmp_path)
    control.wait_held()

    said = cli("reconcile", *FIX, "--json")

    assert (said.document["agrees"], found(said)) == (True, [("in_progress", "claimed")])
    assert pay_of(journal, claim).state == "claimed"
    control.release()
    finish(process)
    assert resolutions(journal, claim) == []
    assert found(cli("reconcile", *NOW, "--json")) == []


def approving(cli: Cli, claim: Filed, url: str, sandbox: ForkedSandbox, folder: Path) -> ForkServerProcess:
    """Start a process that approves the claim."""
    return start(one_command, environment(url, sandbox.url, folder), "approve", approval_of(cli, claim), *AS)


def one_command(settings: dict[str, str], *arguments: str) -> None:
    in_process(settings)(*arguments)


def expire_leases(journal: Journal) -> None:
    with journal.store.transaction("test.expire") as tx:
        tx.all("update leases set expires_ms = 0")


def test_a_payment_that_a_person_took_for_nothing_is_adopted_before_it_is_made_again(
    cli: Cli, filed: Make, control: SandboxControl, journal: Journal
) -> None:
    claim = in_doubt(cli, filed, control)
    cli("effects", "resolve", pay_of(journal, claim).key, "--nothing-happened", "--as", "operator-3")

    assert found(cli("reconcile", *NOW, "--json", code=1)) == [("unsettled", "released")]
    cli("reconcile", *FIX)

    assert "is done: paid" in cli("resume", claim.thread_id).stdout
    assert len(control.payments(claim.claim_id)) == 1
    assert list(journal.audit.verify()) == []


def test_a_payment_that_was_refused_and_made_by_hand_is_adopted_under_its_approval(
    cli: Cli,
    filed: Make,
    control: SandboxControl,
    journal: Journal,
    settings: dict[str, str],
    sandbox: ForkedSandbox,
) -> None:
    claim = submitted(cli, filed)
    refused = in_process({**settings, "COUNTERFOIL_STRIPE_KEY": "not-a-key"})
    approval = approval_of(cli, claim)
    refused("approve", approval, *AS, code=1)
    record = pay_of(journal, claim)
    assert (record.state, record.approval_id) == ("released", approval)
    by_hand(sandbox, record.arguments, key=record.key)

    cli("reconcile", *FIX)

    assert pay_of(journal, claim).approval_id == approval
    assert list(journal.audit.verify()) == []
    cli("redrive", claim.thread_id, "--as", "operator-3")
    assert "is done: paid" in cli("resume", claim.thread_id).stdout
    assert len(control.payments(claim.claim_id)) == 1


def by_hand(sandbox: ForkedSandbox, arguments: dict[str, Any], **other: Any) -> dict[str, Any]:
    """Pay without the ledger."""
    outcome: dict[str, Any] = pay_effect(api_key="sk_test_1", base_url=sandbox.url).function(**{**arguments, **other})
    return outcome


@pytest.mark.parametrize(
    ("facts", "field", "here", "there"),
    [
        ({"amount": 1740_00}, "amount", 1840_00, 1740_00),
        ({"currency": "usd"}, "currency", "EUR", "USD"),
        ({"destination": "acct_else"}, "payee", "acct_claimant0042", "acct_else"),
    ],
)
def test_a_payment_of_something_else_than_was_recorded_is_found(
    cli: Cli, filed: Make, change: Callable[..., None], facts: dict[str, Any], field: str, here: Any, there: Any
) -> None:
    change(paid(cli, filed), **facts)

    said = cli("reconcile", *FIX, "--json", code=1)

    [finding] = said.document["findings"]
    assert (finding["kind"], finding["adopted"]) == ("differs", False)
    assert finding["differences"] == [{"field": field, "here": here, "there": there}]
    shown = "1840.00 EUR → 1740.00 EUR" if field == "amount" else f"{here} → {there}"
    assert f"{field}: {shown}" in " ".join(cli("reconcile", code=1).stdout.split())


def test_a_payment_that_a_person_settled_with_a_wrong_id_differs_taken_back_or_not(
    cli: Cli, filed: Make, control: SandboxControl, change: Callable[..., None], journal: Journal
) -> None:
    claim = in_doubt(cli, filed, control)
    [payment] = control.payments(claim.claim_id)
    cli("effects", "resolve", pay_of(journal, claim).key, "--happened", '{"id": "tr_guessed"}', "--as", "operator-3")

    [finding] = cli("reconcile", *NOW, "--json", code=1).document["findings"]

    assert (finding["kind"], finding["differences"]) == (
        "differs",
        [{"field": "id", "here": "tr_guessed", "there": payment.id}],
    )
    change(claim, reversed=True)
    assert found(cli("reconcile", *NOW, "--json", code=1)) == [("differs", "settled")]


def test_an_execution_of_something_else_is_not_adopted(
    cli: Cli, filed: Make, control: SandboxControl, change: Callable[..., None], journal: Journal
) -> None:
    claim = in_doubt(cli, filed, control)
    change(claim, amount=1)

    said = cli("reconcile", *FIX, code=1)

    assert pay_of(journal, claim).state == "in_doubt"
    assert f"  counterfoil effects resolve {pay_of(journal, claim).key} --happened JSON --as NAME\n" in said.stdout


def test_a_released_effect_that_was_executed_with_other_facts_is_to_be_taken_back(
    cli: Cli, filed: Make, control: SandboxControl, change: Callable[..., None], journal: Journal
) -> None:
    """A person cannot resolve what is released, so nobody is told to."""
    claim = in_doubt(cli, filed, control)
    key = pay_of(journal, claim).key
    cli("effects", "resolve", key, "--nothing-happened", "--as", "operator-3")
    change(claim, amount=1)

    said = cli("reconcile", *FIX, code=1).stdout

    assert pay_of(journal, claim).state == "released"
    assert "Take it back at the receiver before its run goes on" in " ".join(said.split())
    assert f"  counterfoil effects show {key}\n" in said
    assert "--happened" not in said


def test_a_payment_taken_back_in_part_differs_by_what_is_left(
    cli: Cli, filed: Make, change: Callable[..., None]
) -> None:
    change(paid(cli, filed), amount_reversed=1839_99)

    [finding] = cli("reconcile", *NOW, "--json", code=1).document["findings"]

    assert (finding["kind"], finding["differences"]) == ("differs", [{"field": "amount", "here": 1840_00, "there": 1}])


@pytest.mark.parametrize("ahead_h", [2, 24 * 3650])
def test_a_receiver_whose_clock_is_ahead_does_not_put_off_what_is_found(
    cli: Cli, filed: Make, control: SandboxControl, change: Callable[..., None], journal: Journal, ahead_h: int
) -> None:
    claim = in_doubt(cli, filed, control)
    change(claim, created=int(datetime.now(UTC).timestamp()) + ahead_h * 3600)
    with journal.store.transaction("test.claim") as tx:
        tx.all("update effects set state = 'claimed' where key = :key", key=pay_of(journal, claim).key)
    expire_leases(journal)

    assert found(cli("reconcile", "--json", code=1)) == [("unsettled", "claimed")]
    assert cli("reconcile", *FIX, "--json").document["adopted"] == 1


def test_a_message_that_a_person_settled_without_an_id_is_incomparable_and_no_difference(
    cli: Cli, filed: Make, control: SandboxControl, journal: Journal
) -> None:
    """Mail lists no keys, and has no look-up by one: the message may be there under an id that nobody here knows."""
    claim = submitted(cli, filed)
    control.fault("emails", "drop_after", match=claim.claim_id, times=3)
    cli("approve", approval_of(cli, claim), *AS, code=4)
    [record] = [one for one in journal.effects.list(thread_id=claim.thread_id) if one.effect == "notify"]
    cli("effects", "resolve", record.key, "--happened", '"the claimant has it"', "--as", "operator-3")

    said = cli("reconcile", *NOW, "--json").document

    assert (said["agrees"], said["differences"], said["incomparable"]) == (True, 0, 1)
    [finding] = said["findings"]
    assert (finding["kind"], finding["key"]) == ("incomparable", record.key)
    assert "without the receiver's id" in finding["why"]
    assert f"  counterfoil effects show {record.key}\n" in cli("reconcile", *NOW).stdout


def test_what_a_receiver_says_does_not_steer_the_terminal(cli: Cli, filed: Make, sandbox: ForkedSandbox) -> None:
    paid(cli, filed)
    client = stripe.StripeClient("sk_test_1", base_addresses={"api": sandbox.url}, max_network_retries=0)
    metadata = {"claim_id": "else", "counterfoil_key": "\x1b[31mRED\x1b]0;t\x07\n$(reboot)\u202e"}
    client.v1.transfers.create({"amount": 1, "currency": "eur", "destination": "acct_else", "metadata": metadata})

    said = cli("reconcile", *NOW, code=1).stdout

    assert not {one for one in said if not one.isprintable()} - {"\n"}
    assert "\\x1b[31mRED" in said


@pytest.mark.parametrize("odd", [{"metadata": None}, {"created": "2026"}, {"amount": None}, {"currency": None}])
def test_a_list_that_cannot_be_read_is_no_difference_and_nothing_is_fixed(
    cli: Cli, filed: Make, control: SandboxControl, change: Callable[..., None], journal: Journal, odd: dict[str, Any]
) -> None:
    claim = in_doubt(cli, filed, control)
    change(paid(cli, filed), **odd)

    said = cli("reconcile", *FIX, "--json", code=4)

    assert said.document.keys() == {"error"}
    assert pay_of(journal, claim).state == "in_doubt"


def test_one_key_executed_twice_is_found(cli: Cli, filed: Make, control: SandboxControl, journal: Journal) -> None:
    claim = submitted(cli, filed)
    control.fault("transfers", "drop_after", match=claim.claim_id)
    control.fault("transfers", "forget_key", match=claim.claim_id, times=2)
    cli("approve", approval_of(cli, claim), *AS)
    assert len(control.payments(claim.claim_id)) == 2

    said = cli("reconcile", "--json", code=1)

    assert found(said) == [("twice", "settled")]
    assert said.document["findings"][0]["executed"]["id"] != pay_of(journal, claim).outcome["id"]


def test_two_executions_of_a_key_in_doubt_are_adopted_once_and_stay_found(
    cli: Cli, filed: Make, control: SandboxControl, journal: Journal
) -> None:
    claim = submitted(cli, filed)
    control.fault("transfers", "drop_after", match=claim.claim_id, times=3)
    control.fault("transfers", "forget_key", match=claim.claim_id, times=2)
    cli("approve", approval_of(cli, claim), *AS, code=4)

    assert sorted(found(cli("reconcile", *FIX, "--json", code=1))) == [("twice", "in_doubt"), ("unsettled", "settled")]
    assert found(cli("reconcile", *FIX, "--json", code=1)) == [("twice", "settled")]
    assert "is done: paid" in cli("resume", claim.thread_id).stdout
    assert len(control.payments(claim.claim_id)) == 2


def test_one_claim_paid_under_two_keys_is_found(
    cli: Cli, filed: Make, sandbox: ForkedSandbox, journal: Journal
) -> None:
    claim = paid(cli, filed)
    other = by_hand(sandbox, pay_of(journal, claim).arguments, key="by-hand-1")

    [finding] = cli("reconcile", *FIX, "--json", code=1).document["findings"]

    assert (finding["kind"], finding["executed"]["id"], finding["thread_id"]) == ("twice", other["id"], claim.thread_id)


def test_a_payment_after_a_decline_is_found(
    cli: Cli, filed: Make, control: SandboxControl, sandbox: ForkedSandbox, journal: Journal
) -> None:
    claim = submitted(cli, filed)
    control.set_balance(1)
    cli("approve", approval_of(cli, claim), *AS)
    record = pay_of(journal, claim)
    assert record.declined
    control.set_balance(99_999_999)
    control.fault("transfers", "forget_key", match=claim.claim_id)
    by_hand(sandbox, record.arguments, key=record.key)

    said = cli("reconcile", *FIX, "--json", code=1)

    assert found(said) == [("differs", "settled")]
    assert "declined" in said.document["findings"][0]["why"]


def test_an_unknown_payment_is_reported_and_never_adopted(
    cli: Cli, filed: Make, sandbox: ForkedSandbox, journal: Journal
) -> None:
    claim = paid(cli, filed)
    by_hand(sandbox, pay_of(journal, claim).arguments, claim_id="elsewhere", key="another-journals-key")

    assert found(cli("reconcile", "--json")) == [("in_progress", None)]
    said = cli("reconcile", *FIX, code=1).stdout
    assert "Executed there, unknown here (1)" in said
    assert "another-journals-key" in said
    assert "It cannot be adopted" in said
    assert "  counterfoil --url URL effects show another-journals-key\n" in said
    assert len(journal.effects.list()) == 3


def test_two_unknown_payments_of_one_claim_are_one_too_many(
    cli: Cli, filed: Make, sandbox: ForkedSandbox, journal: Journal
) -> None:
    claim = paid(cli, filed)
    for number in range(2):
        by_hand(sandbox, pay_of(journal, claim).arguments, claim_id="elsewhere", key=f"elsewhere-{number}")

    assert sorted(found(cli("reconcile", *NOW, "--json", code=1))) == [("twice", None), ("unknown", None)]


def test_other_peoples_transfers_are_counted_and_no_difference(cli: Cli, filed: Make, sandbox: ForkedSandbox) -> None:
    paid(cli, filed)
    client = stripe.StripeClient("sk_test_1", base_addresses={"api": sandbox.url}, max_network_retries=0)
    client.v1.transfers.create({"amount": 1, "currency": "eur", "destination": "acct_else"})

    listed = [{"effect": "pay", "executed": 2, "unidentified": 1}]
    assert cli("reconcile", "--effect", "pay", *NOW, "--json").document["listed"] == listed
    assert "1 of them without a key or an identity" in cli("reconcile", "--effect", "pay", *NOW).stdout


@pytest.mark.parametrize("older", ["the execution", "the record"])
def test_at_the_edge_of_the_window_nothing_is_missing(
    cli: Cli, filed: Make, change: Callable[..., None], journal: Journal, older: str
) -> None:
    claim = paid(cli, filed)
    if older == "the execution":
        change(claim, created=int(datetime.now(UTC).timestamp()) - 10 * 86_400)
    else:
        settled_earlier(journal, claim, timedelta(days=10))

    said = cli("reconcile", "--since", "7d", *NOW, "--json")

    assert found(said) == []
    assert said.document["listed"][0]["executed"] == (0 if older == "the execution" else 1)


def test_only_what_is_in_the_window_is_compared(
    cli: Cli, filed: Make, change: Callable[..., None], journal: Journal
) -> None:
    claim = paid(cli, filed)
    change(claim)
    assert found(cli("reconcile", "--since", "7d", *NOW, "--json", code=1)) == [("missing", "settled")]
    settled_earlier(journal, claim, timedelta(days=10))

    assert found(cli("reconcile", "--since", "7d", *NOW, "--json")) == []
    assert found(cli("reconcile", "--since", "2w", *NOW, "--json", code=1)) == [("missing", "settled")]


def test_a_second_execution_in_the_window_is_told_from_the_first_before_it(
    cli: Cli,
    filed: Make,
    control: SandboxControl,
    sandbox: ForkedSandbox,
    change: Callable[..., None],
    journal: Journal,
) -> None:
    claim = paid(cli, filed)
    change(claim, created=int(datetime.now(UTC).timestamp()) - 10 * 86_400)
    control.fault("transfers", "forget_key", match=claim.claim_id)
    by_hand(sandbox, pay_of(journal, claim).arguments, key=pay_of(journal, claim).key)

    assert found(cli("reconcile", "--since", "7d", *NOW, "--json", code=1)) == [("twice", "settled")]


def settled_earlier(journal: Journal, claim: Filed, by: timedelta) -> None:
    age(journal, claim.thread_id, "pay", by)
    with journal.store.transaction("test.age") as tx:
        tx.all(
            "update effects set settled_ms = settled_ms - :by where key = :key",
            by=int(by.total_seconds() * 1000),
            key=pay_of(journal, claim).key,
        )


def test_a_list_that_breaks_off_reports_nothing_and_changes_nothing(
    cli: Cli,
    filed: Make,
    control: SandboxControl,
    sandbox: ForkedSandbox,
    journal: Journal,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    claim = in_doubt(cli, filed, control)
    record = pay_of(journal, claim)
    for number in range(100):
        by_hand(sandbox, record.arguments, claim_id=f"elsewhere-{number}", key=f"elsewhere-{number}")

    def break_it_after_a_page(_status: object) -> Callable[[str, int], None]:
        return lambda _what, count: control.fault("transfers", "drop_before", method="GET") if count == 100 else None

    monkeypatch.setattr(command, "_teller", break_it_after_a_page)
    said = cli("reconcile", *FIX, "--json", code=4)

    assert said.document["error"]["type"] == "Unreachable"
    assert said.document.keys() == {"error"}
    assert pay_of(journal, claim).state == "in_doubt"


def test_a_receiver_that_falls_silent_after_its_list_leaves_nothing_reported_as_missing(
    cli: Cli, filed: Make, control: SandboxControl, change: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    change(paid(cli, filed))
    other = in_doubt(cli, filed, control)

    def break_it_after_the_list(_status: object) -> Callable[[str, int], None]:
        return lambda what, _count: control.fault("transfers", "drop_before", method="GET") if "pay" in what else None

    monkeypatch.setattr(command, "_teller", break_it_after_the_list)
    said = cli("reconcile", "--effect", "pay", *FIX, "--json", code=4)

    assert said.document.keys() == {"error"}
    assert [one["state"] for one in cli("effects", other.thread_id, "--json").document if one["effect"] == "pay"] == [
        "in_doubt"
    ]


def test_two_repairs_at_once_adopt_once(
    url: str, cli: Cli, filed: Make, control: SandboxControl, sandbox: ForkedSandbox, journal: Journal, tmp_path: Path
) -> None:
    claims = [in_doubt(cli, filed, control) for _ in range(3)]
    barrier = context().Barrier(2)

    racers = [start(repair, url, sandbox.url, tmp_path, barrier, f"operator-{number}") for number in range(2)]
    for racer in racers:
        finish(racer)

    for claim in claims:
        assert len(resolutions(journal, claim)) == 1
        assert "is done: paid" in cli("resume", claim.thread_id).stdout
        assert len(control.payments(claim.claim_id)) == 1
    assert list(journal.audit.verify()) == []


def test_a_payment_that_happened_after_all_and_was_made_again_is_found(
    cli: Cli, filed: Make, control: SandboxControl, journal: Journal
) -> None:
    """Somebody said that nothing happened, and had it tried again under a new key."""
    claim = in_doubt(cli, filed, control)
    key = pay_of(journal, claim).key
    cli("effects", "resolve", key, "--nothing-happened", "--as", "operator-3")
    cli("effects", "reissue", key, "--as", "operator-3", "--spoilt")
    assert len(control.payments(claim.claim_id)) == 2
    said = cli("reconcile", *FIX, "--json", code=1)

    assert [kind for kind, _ in found(said)] == ["twice"]
    assert "was reissued as" in said.document["findings"][0]["why"]


def test_a_payment_that_happened_after_all_is_told_before_it_is_made_again(
    cli: Cli, filed: Make, control: SandboxControl, journal: Journal
) -> None:
    claim = in_doubt(cli, filed, control)
    key = pay_of(journal, claim).key
    cli("effects", "resolve", key, "--nothing-happened", "--as", "operator-3")
    journal.effects.reissue(key, principal="operator-3", max_key_length=255, spoilt=True)
    said = cli("reconcile", *FIX, "--json", code=1)

    assert [kind for kind, _ in found(said)] == ["differs"]
    assert "whoever asks for it next executes it again" in said.document["findings"][0]["why"]
    assert len(control.payments(claim.claim_id)) == 1


def repair(url: str, outside: str, folder: Path, barrier: Any, who: str) -> None:
    """Repair, once the other one is as far: both have found the same."""
    original = command._fix

    def together(*arguments: Any) -> None:
        barrier.wait(timeout=60)
        original(*arguments)

    command._fix = together
    in_process(environment(url, outside, folder))("reconcile", "--fix", "--as", who, "--grace", "0s")


@pytest.mark.parametrize("point", ["before effect.adopt", "after effect.adopt"])
def test_a_repair_that_was_killed_is_finished_by_the_next(
    url: str,
    cli: Cli,
    filed: Make,
    control: SandboxControl,
    sandbox: ForkedSandbox,
    journal: Journal,
    tmp_path: Path,
    point: str,
) -> None:
    claims = [in_doubt(cli, filed, control) for _ in range(2)]
    killed(start(repair_and_die, url, sandbox.url, tmp_path, point))
    assert sum(len(resolutions(journal, claim)) for claim in claims) == (1 if point.startswith("after") else 0)

    cli("reconcile", *FIX)

    assert [resolutions(journal, claim) for claim in claims] == [["operator-3"], ["operator-3"]]
    assert list(journal.audit.verify()) == []


def repair_and_die(url: str, outside: str, folder: Path, point: str) -> None:
    die_at(point)
    in_process(environment(url, outside, folder))("reconcile", *FIX)


def test_a_repair_needs_somebody_who_answers_for_it(cli: Cli, filed: Make, control: SandboxControl) -> None:
    in_doubt(cli, filed, control)

    assert "needs --as NAME" in cli("reconcile", "--fix", code=2).line


@pytest.mark.parametrize(
    "wrong",
    [
        ("--since", "yesterday"),
        ("--since", "2999-01-01"),
        ("--since", "7"),
        ("--since", "999999w"),
        ("--since", "0001-01-01T00:00+14:00"),
        ("--grace", "soon"),
        ("--grace", "-1d"),
    ],
)
def test_what_is_no_time_is_bad_input(cli: Cli, filed: Make, control: SandboxControl, wrong: tuple[str, str]) -> None:
    submitted(cli, filed)

    assert wrong[0] in cli("reconcile", *wrong, code=2).line


def test_a_receiver_that_does_not_answer_is_no_difference(cli: Cli, filed: Make, sandbox: ForkedSandbox) -> None:
    paid(cli, filed)
    sandbox.stop()

    assert cli("reconcile", code=4).line.startswith("counterfoil: Stripe gave no answer; is it running, ")


def test_a_receiver_that_does_not_answer_keeps_nobody_from_comparing_the_other(
    cli: Cli, filed: Make, settings: dict[str, str]
) -> None:
    paid(cli, filed)
    no_mail = in_process({**settings, "COUNTERFOIL_MAIL_URL": "http://127.0.0.1:1"})

    assert "got no answer" in no_mail("reconcile", code=4).line
    assert "agree" in no_mail("reconcile", "--effect", "pay").stdout


def test_a_message_that_is_settled_here_and_missing_there_is_found(
    cli: Cli, filed: Make, sandbox: ForkedSandbox, journal: Journal
) -> None:
    paid(cli, filed)
    paid(cli, filed)
    sandbox.stop()
    with sqlite3.connect(sandbox.database) as connection:
        connection.execute("delete from emails where number = 1")
    connection.close()
    sandbox.start()

    said = cli("reconcile", *NOW, "--json", code=1)

    assert [(one["kind"], one["effect"]) for one in said.document["findings"]] == [("missing", "notify")]


def test_a_payment_that_was_taken_back_is_told_and_one_too_many_is_mended_by_it(
    cli: Cli, filed: Make, sandbox: ForkedSandbox, change: Callable[..., None], journal: Journal
) -> None:
    claim = paid(cli, filed)
    other = by_hand(sandbox, pay_of(journal, claim).arguments, key="by-hand-1")
    change(claim, transfer_id=other["id"], reversed=True)
    assert found(cli("reconcile", *NOW, "--json")) == []
    change(claim, transfer_id=pay_of(journal, claim).outcome["id"], reversed=True)

    [finding] = cli("reconcile", *NOW, "--json", code=1).document["findings"]
    assert finding["differences"] == [{"field": "taken_back", "here": False, "there": True}]


def test_a_payment_without_a_key_for_a_claim_that_was_paid_is_one_too_many(
    cli: Cli, filed: Make, sandbox: ForkedSandbox
) -> None:
    claim = paid(cli, filed)
    client = stripe.StripeClient("sk_test_1", base_addresses={"api": sandbox.url}, max_network_retries=0)
    metadata = {"claim_id": claim.claim_id}
    client.v1.transfers.create({"amount": 1, "currency": "eur", "destination": "acct_else", "metadata": metadata})

    assert found(cli("reconcile", *NOW, "--json", code=1)) == [("twice", "settled")]


def test_a_key_that_no_engine_can_store_is_only_unknown(cli: Cli, filed: Make, sandbox: ForkedSandbox) -> None:
    paid(cli, filed)
    client = stripe.StripeClient("sk_test_1", base_addresses={"api": sandbox.url}, max_network_retries=0)
    metadata = {"claim_id": "else\0where", "counterfoil_key": "odd\0key"}
    client.v1.transfers.create({"amount": 1, "currency": "eur", "destination": "acct_else", "metadata": metadata})

    assert found(cli("reconcile", *NOW, "--json", code=1)) == [("unknown", None)]


def test_a_journal_that_is_not_there_is_bad_input(settings: dict[str, str]) -> None:
    nowhere = in_process({**settings, "COUNTERFOIL_URL": "sqlite:///nowhere.db"})

    assert "no journal at" in nowhere("reconcile", code=2).line


def test_people_see_the_first_of_many_and_programs_all(
    cli: Cli, filed: Make, sandbox: ForkedSandbox, journal: Journal
) -> None:
    claim = paid(cli, filed)
    for number in range(51):
        by_hand(sandbox, pay_of(journal, claim).arguments, claim_id=f"elsewhere-{number}", key=f"elsewhere-{number}")

    said = cli("reconcile", *NOW, code=1).stdout

    assert "Executed there, unknown here (51)" in said
    assert "These are the first 50; --json has them all." in said
    assert len(cli("reconcile", *NOW, "--json", code=1).document["findings"]) == 51
    assert max(len(line) for line in said.splitlines()) <= 100
