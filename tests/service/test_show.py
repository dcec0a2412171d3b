"""What commands print: for people within 100 columns, for programs one document; money, help, an empty journal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from service.cli import words
from tests.service.conftest import Cli, Filed, approval_of, in_process
from tools.sandbox import SandboxControl

Make = Callable[..., Filed]
AS = ("--as", "adjuster-17")


@pytest.fixture
def engine() -> str:
    """One engine is enough: this is about what is printed, and both give the same records."""
    return "sqlite"


COMMANDS = (
    "submit",
    "list",
    "show",
    "resume",
    "redrive",
    "approvals",
    "approve",
    "reject",
    "edit",
    "demo",
    "sandbox",
    "effects list",
    "effects resolve",
    "audit verify",
)


def test_a_parked_run_shows_what_it_waits_for_and_the_next_command(cli: Cli, filed: Make) -> None:
    claim = filed()
    cli(*claim.submit)

    said = cli("show", claim.thread_id)

    lines = said.stdout.splitlines()
    assert lines[0] == f"{claim.thread_id} is parked (approval)"
    assert any("payout: waits for a decision" in line for line in lines)
    assert lines[-2] == f"  counterfoil approve {approval_of(cli, claim)} --as NAME"
    assert max(len(line) for line in lines) <= 100


def test_a_finished_run_shows_every_step_with_its_effects_and_its_approval(cli: Cli, filed: Make) -> None:
    claim = filed()
    cli(*claim.submit)
    cli("approve", approval_of(cli, claim), *AS)

    said = cli("show", claim.thread_id).stdout

    assert said.splitlines()[0] == f"{claim.thread_id} is done: paid"
    for shown in (
        "6  pay",
        "payout: approve by adjuster-17",
        "pay: settled, 1 call",
        f"{claim.thread_id}:pay.0:pay:",
        "payment: 1840.00 EUR",
        "waited ",
        "submitted by intake",
    ):
        assert shown in said
    document = cli("show", claim.thread_id, "--json").document
    assert [step["nodes"] for step in document["steps"]][-3:] == [["pay"], ["notify"], ["close"]]
    assert document["steps"][6]["update"]["payment"]["amount"] == 1840_00
    assert document["next"]["commands"] == []


def test_a_changed_claim_shows_the_superseded_round(cli: Cli, filed: Make, control: SandboxControl) -> None:
    claim = filed()
    cli(*claim.submit)
    control.lapse(f"P-{claim.claim_id}")
    cli("approve", approval_of(cli, claim), *AS)

    assert "facts: lapsed" in cli("show", claim.thread_id).stdout


def test_approvals_show_money_and_their_json_has_minor_units(cli: Cli, filed: Make) -> None:
    claim = filed()
    cli(*claim.submit)

    said = cli("approvals").stdout
    (document,) = cli("approvals", "--json").document

    assert "amount: 1840.00 EUR" in said
    assert "in 3 d" in said
    assert document["payload"]["amount"] == 1840_00
    assert document["expires_at"].endswith("+00:00")
    assert {"id", "thread_id", "name", "allowed", "payload_hash"} <= document.keys()


def test_runs_are_listed_by_state(cli: Cli, filed: Make) -> None:
    claim = filed()
    cli(*claim.submit)

    assert claim.thread_id in cli("list").stdout
    assert claim.thread_id in cli("list", "--state", "parked").stdout
    assert "There is no run in state done in " in cli("list", "--state", "done").stdout
    assert [run["state"] for run in cli("list", "--json").document] == ["parked"]
    assert "'sleeping' is not one of" in cli("list", "--state", "sleeping", code=2).stderr


def test_effects_are_listed_with_and_without_the_word_list(cli: Cli, filed: Make) -> None:
    claim = filed()
    cli(*claim.submit)

    listed = [
        cli(*arguments).stdout
        for arguments in (
            ("effects",),
            ("effects", "list"),
            ("effects", claim.thread_id),
            ("effects", "list", claim.thread_id),
        )
    ]

    assert f"{claim.thread_id}:assess.0:assess:" in listed[0]
    assert len(set(listed)) == 1
    assert cli("effects", "--json").document == cli("effects", "list", "--json").document


def test_an_empty_journal_says_so(cli: Cli) -> None:
    assert cli("list").stdout.startswith("There is no run in ")
    assert cli("approvals").stdout == "Nothing waits for a decision.\n"
    assert cli("effects").stdout == "There is no effect yet.\n"
    assert [cli(c, "--json").document for c in ("list", "approvals", "effects")] == [[], [], []]


def test_the_help_has_every_command_and_the_exit_codes() -> None:
    said = in_process({"COLUMNS": "100"})("--help").stdout

    for command in COMMANDS:
        assert f" {command.split()[0]} " in said
    for code in range(5):
        assert f"\n {code}  " in said


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_has_an_example(command: str) -> None:
    said = in_process({"COLUMNS": "100"})(*command.split(), "--help").stdout

    assert f"Example: counterfoil {command.removesuffix(' list')}" in said
    assert f"Usage: counterfoil {command} " in said


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (184_000, "1840.00 EUR"),
        (5, "0.05 EUR"),
        (-250, "-2.50 EUR"),
        (10**12, "10000000000.00 EUR"),
    ],
)
def test_money_has_its_decimals(amount: int, shown: str) -> None:
    assert words.money(amount, "EUR") == shown


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("payout", 184_000, "1840.00 EUR"),
        ("payment", {"amount": 1, "currency": "EUR", "id": "tr_1"}, "0.01 EUR tr_1"),
        ("payment", {"declined": "closed\naccount"}, "declined: closed account"),
        ("claim", {"id": "0042", "status": "open", "currency": "EUR"}, "0042 open"),
        ("note", "x" * 100, "x" * 39 + "…"),
        ("documents", [1, 2, 3], "3 entries"),
    ],
)
def test_a_value_is_shown_in_a_few_words(key: str, value: Any, shown: str) -> None:
    assert words.value(key, value, "EUR") == shown
