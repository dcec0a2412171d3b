"""What commands print: for people within 100 columns, for programs one document; money, help, an empty journal."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import pytest

from checkpointing import Journal
from checkpointing.store import Store
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
    "dead",
    "redrive",
    "discard",
    "approvals",
    "approve",
    "reject",
    "edit",
    "demo",
    "sandbox",
    "sandbox later",
    "sandbox fault",
    "reconcile",
    "effects list",
    "effects show",
    "effects resolve",
    "audit show",
    "audit verify",
)


def test_a_parked_run_shows_what_it_waits_for_and_the_next_command(cli: Cli, filed: Make) -> None:
    claim = filed()
    cli(*claim.submit)

    said = cli("show", claim.thread_id)

    lines = said.stdout.splitlines()
    assert lines[0] == f"{claim.thread_id} is parked (approval)"
    assert any("payout: waits for a decision" in line for line in lines)
    (asked,) = cli("approvals", "--json").document
    assert lines[-3:-1] == [
        f"  counterfoil approve {asked['id']} --as NAME",
        f"  counterfoil reject {asked['id']} --as NAME",
    ]
    edit = shlex.split(lines[-1])
    assert edit[:-1] == ["counterfoil", "edit", asked["id"], "--as", "NAME", "--payload"]
    assert json.loads(edit[-1]) == asked["payload"], "ready to be changed"
    assert "starts" not in said.stdout
    assert max(len(line) for line in lines[:-1]) <= 100


def test_a_finished_run_shows_every_step_with_its_effects_and_its_approval(cli: Cli, filed: Make) -> None:
    claim = filed()
    cli(*claim.submit)
    cli("approve", approval_of(cli, claim), *AS)

    said = cli("show", claim.thread_id).stdout
    keys = {f"  {one['key']}" for one in cli("effects", claim.thread_id, "--json").document}

    assert len(keys) == 3
    assert keys <= set(cli("show", claim.thread_id, COLUMNS="40").stdout.splitlines()), "each on a line of its own"
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
    assert "taken: 9 of 100 supersteps, 1840.00 EUR, 0 of 200,000 tokens" in said
    document = cli("show", claim.thread_id, "--json").document
    assert document["taken"] | {"age": 0} == {"supersteps": 9, "money": 1840_00, "tokens": 0, "age": 0}
    assert document["caps"] == {"supersteps": 100, "money": None, "tokens": 200_000, "age": 90 * 86_400}
    assert [step["nodes"] for step in document["steps"]][-3:] == [["pay"], ["notify"], ["close"]]
    assert document["steps"][6]["update"]["payment"]["amount"] == 1840_00
    assert document["next"]["commands"] == []


def test_a_claim_that_would_be_paid_beyond_its_cap_says_so_and_is_paid_when_the_cap_is_raised(
    cli: Cli, filed: Make
) -> None:
    claim = filed()
    cli(*claim.submit)
    cap, raised = {"COUNTERFOIL_CAP_MONEY": "100000"}, {"COUNTERFOIL_CAP_MONEY": "184000"}
    cli("approve", approval_of(cli, claim), *AS, code=1, **cap)

    said = cli("show", claim.thread_id, **cap).stdout
    assert "is dead (its next payment would go beyond its cap on money)" in said
    assert "Raise the cap, then redrive it" in " ".join(said.split())
    assert "0.00 of 1000.00 EUR" in said
    cli("redrive", claim.thread_id, *AS, "--reason", "a dear van")
    cli("resume", claim.thread_id, **raised)
    assert "1840.00 of 1840.00 EUR" in cli("show", claim.thread_id, **raised).stdout


def test_a_changed_claim_shows_the_superseded_round(cli: Cli, filed: Make, control: SandboxControl) -> None:
    claim = filed()
    cli(*claim.submit)
    control.lapse(f"P-{claim.claim_id}")
    cli("approve", approval_of(cli, claim), *AS)

    assert "facts: lapsed" in cli("show", claim.thread_id).stdout


def test_an_edit_is_shown_as_old_and_new_with_its_reason(cli: Cli, filed: Make) -> None:
    claim = filed()
    cli(*claim.submit)
    (asked,) = cli("approvals", "--json").document
    payload = json.dumps({**asked["payload"], "amount": 1500_00})

    cli("edit", asked["id"], *AS, "--payload", payload, "--reason", "the door was dented before")

    said = cli("show", claim.thread_id).stdout
    assert "amount: 1840.00 EUR → 1500.00 EUR" in said
    assert "reason: the door was dented before" in said
    assert "payee: " not in said, "what was not edited is not repeated"
    for ids in ((), (claim.thread_id,)):
        assert "payout: edit by" in cli("approvals", "--all", *ids).stdout
    (decided,) = cli("approvals", "--all", "--json").document
    assert decided["decision"]["reason"] == "the door was dented before"
    assert cli("approvals", claim.thread_id, "--json").document == []


def test_a_rejection_is_shown_with_its_reason(cli: Cli, filed: Make) -> None:
    claim = filed()
    cli(*claim.submit)
    cli("reject", approval_of(cli, claim), *AS, "--reason", "Not this car.")

    assert "reason: Not this car." in cli("show", claim.thread_id).stdout


def test_an_unknown_thread_has_no_approvals_and_no_audit(cli: Cli, filed: Make) -> None:
    cli(*filed().submit)

    for command in (("approvals", "--all", "claim-0"), ("approvals", "claim-0"), ("audit", "show", "claim-0")):
        assert "there is no run for thread 'claim-0'" in cli(*command, code=2).line


def test_superseded_rounds_are_shown_where_they_were_asked(cli: Cli, filed: Make, journal: Journal) -> None:
    claim = filed()
    cli(*claim.submit)
    approval = approval_of(cli, claim)
    with journal.store.transaction("test.supersede") as tx:
        tx.all("update approvals set state = 'superseded' where id = :id", id=approval)

    assert "payout: superseded, the payload changed" in cli("show", claim.thread_id).stdout


def test_the_audit_says_who_did_what_when(cli: Cli, filed: Make) -> None:
    claim = filed()
    cli(*claim.submit)
    cli("approve", approval_of(cli, claim), *AS)

    said = cli("audit", "show", claim.thread_id).stdout
    entries = cli("audit", "show", claim.thread_id, "--json").document

    assert re.match(r"   1  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  run\.admit +intake\n", said)
    assert re.search(r"approval\.decide +adjuster-17\n +apr_", said)
    assert (entries[0]["seq"], entries[0]["event"], entries[0]["actor"]) == (1, "run.admit", "intake")
    assert ("approval.decide", "adjuster-17") in [(e["event"], e["actor"]) for e in entries]
    assert all(e["at"].endswith("+00:00") for e in entries)


def test_an_effect_is_shown_in_full(cli: Cli, filed: Make) -> None:
    claim = filed()
    cli(*claim.submit)
    approval = approval_of(cli, claim)
    cli("approve", approval, *AS)
    key = next(e["key"] for e in cli("effects", "--json").document if e["effect"] == "pay")

    said = cli("effects", "show", key).stdout

    assert said.startswith(f"{key} is settled\n")
    for shown in (
        '"amount": 184000',
        f"approval   {approval}",
        "calls      1",
        "replays    0",
        f"thread {claim.thread_id}",
    ):
        assert shown in said
    assert cli("effects", "show", key, "--json").document["key"] == key
    assert "there is no effect with key 'k'" in cli("effects", "show", "k", code=2).line


def test_a_declined_payment_says_why_uncut(cli: Cli, filed: Make) -> None:
    claim = filed(lambda content: content["claim"]["claimant"].update(payee="acct_closed1"))
    cli(*claim.submit)
    cli("approve", approval_of(cli, claim), *AS)

    said = " ".join(cli("effects").stdout.split())
    assert "declined: Stripe: " in said
    assert "…" not in said


def test_listing_as_json_takes_as_many_queries_for_many_runs_as_for_one(
    cli: Cli, filed: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    read = Store.reading
    monkeypatch.setattr(Store, "reading", lambda store: asked.append("") or read(store))
    counts = []
    for _ in range(2):
        cli(*filed().submit)
        asked.clear()
        runs = cli("list", "--json").document
        assert all(len(run["next"]["commands"]) == 3 for run in runs)
        counts.append(len(asked))

    assert counts[0] == counts[1]


def test_the_version_is_printed() -> None:
    assert in_process({})("--version").stdout == f"counterfoil {version('counterfoil')}\n"


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


@pytest.mark.usefixtures("journal")
def test_an_empty_journal_says_so_and_which_it_is(cli: Cli, url: str) -> None:
    place = url.removeprefix("sqlite:///")

    assert cli("list").stdout == f"There is no run in {place}.\n"
    assert cli("approvals").stdout == f"Nothing waits for a decision in {place}.\n"
    assert cli("approvals", "--all").stdout == f"Nothing was ever asked in {place}.\n"
    assert cli("effects").stdout == f"There is no effect yet in {place}.\n"
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
    "asked",
    [
        {
            "type": "tool_approval",
            "tool_call_id": "c",
            "name": "pay",
            "args": {"claim_id": "0042"},
            "description": "long",
        },
        {
            "action_requests": [{"name": "pay", "args": {"claim_id": "0042"}, "description": "long"}],
            "review_configs": [{"action_name": "pay", "allowed_decisions": ["approve"]}],
        },
    ],
)
def test_an_agents_question_is_its_tools_and_their_arguments(asked: dict[str, Any]) -> None:
    assert words.payload(asked) == ["pay", "  claim_id: 0042"]


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
        ("claim_id", "x" * 100, "x" * 100),
        ("payment", {"declined": "y" * 100}, "declined: " + "y" * 100),
        ("documents", [1, 2, 3], "3 entries"),
        ("payment", {"declined": "\x1b[31mred\x9b\u202e\ud800"}, "declined: \\x1b[31mred\\x9b\\u202e\\ud800"),
        ("claimant_id", "Zoë \u0915\u094d\u200d\u0937", "Zoë \u0915\u094d\u200d\u0937"),
    ],
)
def test_a_value_is_shown_in_a_few_words(key: str, value: Any, shown: str) -> None:
    assert words.value(key, value, "EUR") == shown
