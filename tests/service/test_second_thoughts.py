"""Trying a declined payment again, and taking a question or a decision back, from the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from checkpointing import Journal
from graph import thread
from tests.service.conftest import Cli, Filed, approval_of
from tests.support import short_claim
from tools.sandbox import SandboxControl

Make = Callable[..., Filed]
AS = ("--as", "adjuster-17")
OPERATOR = ("--as", "operator-3")
BALANCE = 10_000_000_00


def declined(cli: Cli, filed: Make, control: SandboxControl) -> tuple[Filed, str]:
    """Have a payment declined for want of money; return the claim and the effect's key."""
    claim = filed()
    cli(*claim.submit)
    control.set_balance(1)
    cli("approve", approval_of(cli, claim), *AS)
    [pay] = [e for e in cli("effects", claim.thread_id, "--json").document if e["effect"] == "pay"]
    assert "declined" in pay["outcome"]
    return claim, str(pay["key"])


def test_a_declined_payment_is_reissued_under_a_new_key(cli: Cli, filed: Make, control: SandboxControl) -> None:
    """The provider keeps its no under the old key even when the money is there."""
    claim, key = declined(cli, filed, control)
    control.set_balance(BALANCE)
    hint = f"  counterfoil effects reissue {key} --as NAME\n"
    assert cli("show", claim.thread_id).stdout.endswith(hint)
    assert cli("effects", "show", key).stdout.startswith(f"{key} is declined\n")
    said = cli("effects", "reissue", key, *OPERATOR, "--reason", "funded", "--json")

    assert (said.document["state"], said.document["generation"]) == ("settled", 2)
    assert [(p.amount, p.key) for p in control.payments(claim.claim_id)] == [(1840_00, said.document["key"])]
    assert said.document["key"] != key
    assert f"reissued   as {said.document['key']}" in cli("effects", "show", key).stdout
    assert hint not in cli("show", claim.thread_id).stdout
    for listed in (cli("effects", COLUMNS="40").stdout, cli("effects", claim.thread_id, COLUMNS="40").stdout):
        assert f"{key}\n  declined: " in listed, "a key stands on a line of its own"
        assert f"{said.document['key']}\n  settled 1840.00 EUR tr_" in listed
    generations = [e["generation"] for e in cli("effects", "--json").document if e["effect"] == "pay"]
    assert generations == [1, 2]
    assert "whole" in cli("audit", "verify").stdout


def test_a_reissue_that_is_declined_again_says_so_and_ends_with_1(
    cli: Cli, filed: Make, control: SandboxControl
) -> None:
    claim, key = declined(cli, filed, control)
    said = cli("effects", "reissue", key, *OPERATOR, code=1)

    assert "outcome    declined" in said.stdout
    assert control.payments(claim.claim_id) == []
    control.set_balance(BALANCE)


def test_a_payment_that_was_made_is_not_reissued(cli: Cli, filed: Make, control: SandboxControl) -> None:
    control.set_balance(BALANCE)
    claim = filed()
    cli(*claim.submit)
    cli("approve", approval_of(cli, claim), *AS)
    [pay] = [e for e in cli("effects", claim.thread_id, "--json").document if e["effect"] == "pay"]
    said = cli("effects", "reissue", pay["key"], *OPERATOR, code=3)

    assert "happened; there is nothing to try again" in said.stderr
    assert len(control.payments(claim.claim_id)) == 1


def test_a_reissue_names_who_asks_and_what_exists(cli: Cli, filed: Make, control: SandboxControl) -> None:
    control.set_balance(BALANCE)
    claim = filed()
    cli(*claim.submit)
    [assess] = cli("effects", claim.thread_id, "--json").document

    assert "--as" in cli("effects", "reissue", assess["key"], code=2).stderr
    assert "no tool for" in cli("effects", "reissue", assess["key"], *OPERATOR, code=3).stderr
    assert "no effect with key" in cli("effects", "reissue", "mistyped", *OPERATOR, code=2).stderr


def test_a_question_that_is_withdrawn_ends_the_claim_undecided(cli: Cli, filed: Make, control: SandboxControl) -> None:
    claim = filed()
    cli(*claim.submit)
    approval_id = approval_of(cli, claim)
    said = cli("withdraw", approval_id, *AS, "--reason", "asked twice")

    assert "Recorded: withdrawn by adjuster-17." in said.stdout
    assert f"{claim.thread_id} is done: undecided" in said.stdout
    assert control.payments(claim.claim_id) == []
    [letter] = control.messages(claim.claim_id)
    assert "could not decide" in letter["text"]
    assert "withdrawn by 'adjuster-17': asked twice" in cli("approve", approval_id, "--as", "b", code=3).stderr
    assert "payout: withdrawn by adjuster-17" in cli("show", claim.thread_id).stdout


def test_an_approval_that_was_used_is_not_withdrawn(cli: Cli, filed: Make, control: SandboxControl) -> None:
    control.set_balance(BALANCE)
    claim = filed()
    cli(*claim.submit)
    approval_id = approval_of(cli, claim)
    cli("approve", approval_id, *AS)
    said = cli("withdraw", approval_id, *AS, code=3)

    assert "acted under it" in said.stderr
    assert len(control.payments(claim.claim_id)) == 1


@pytest.mark.parametrize("row", [True, False], ids=["a graph of one's own", "a graph without run rows"])
def test_a_withdrawal_of_another_graphs_question_is_recorded_and_says_who_carries_it_on(
    cli: Cli, journal: Journal, tmp_path: Path, *, row: bool
) -> None:
    """An Agent Server's threads have no rows of runs."""
    graph = short_claim.claim(journal, tmp_path)
    if row:
        short_claim.submit(graph, 1)
    else:
        graph.compiled.invoke({"claim_id": "1"}, {"configurable": {"thread_id": "claim-1"}})
    [asked] = journal.approvals.pending()
    said = cli("withdraw", asked.id, *AS, "--reason", "asked in error")

    assert said.stdout.splitlines() == [
        "Recorded: withdrawn by adjuster-17.",
        "This run is carried on by its own graph: graph.invoke(None, thread('claim-1')); or by the Agent Server: a run with input=None.",
    ]
    assert journal.approvals.get(asked.id).state == "withdrawn"
    if row:
        graph.invoke(None, thread("claim-1"))
        assert journal.runs.get("claim-1").state == "done"


def test_another_graphs_run_is_carried_on_in_python(cli: Cli, journal: Journal, tmp_path: Path) -> None:
    short_claim.submit(short_claim.claim(journal, tmp_path), 1)
    [asked] = journal.approvals.pending()

    for command in (("resume", "claim-1"), ("approve", asked.id, *AS)):
        assert cli(*command, code=1).line.endswith("carry it on in Python: graph.invoke(None, thread('claim-1'))")
    [run] = cli("list", "--json").document
    assert run["next"]["commands"] == ["graph.invoke(approve(request), thread('claim-1', principal=NAME))"]
    with journal.store.transaction("test.die") as tx:
        tx.all("update runs set state = 'dead', reason = 'attempts' where thread_id = 'claim-1'")
    said = cli("redrive", "claim-1", *OPERATOR)
    assert " ".join(said.stdout.split()).endswith(
        "A worker takes it up (counterfoil worker --graph MODULE:FUNCTION). "
        "To carry it on in Python: graph.invoke(None, thread('claim-1'))"
    )
    assert journal.approvals.get(asked.id).state == "pending"
