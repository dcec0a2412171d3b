"""Every example claim, from its file to its end, on both engines: what is paid, what is told, what is on record."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from checkpointing import Journal
from checkpointing.errors import InputRefused
from graph import thread
from graph.claims import claims_graph
from service.cli.documents import run_document
from service.settings import load_settings
from service.situation import situation
from service.wiring import outside_of
from tests.service.conftest import EXAMPLES, Cli, Filed, environment, in_process
from tools.claim_models import EstimateLine
from tools.sandbox import SandboxControl, SandboxProcess


@dataclass(frozen=True)
class Expected:
    """
    How a claim ends.

    Attributes:
        paid: Minor units, or `None` where nothing is.
        approvals: How many decisions it takes.
        says: What the letter to the claimant says.
    """

    outcome: str
    paid: int | None
    approvals: int
    says: str


CLAIMS = {
    "0042": Expected("paid", 1840_00, 1, "paid 1840.00 EUR"),
    "0043": Expected("paid", 1840_00, 1, "paid 1840.00 EUR"),
    "0044": Expected("paid", 590_00, 0, "paid 590.00 EUR"),
    "0045": Expected("paid", 5000_00, 1, "paid 5000.00 EUR"),
    "0046": Expected("not_covered", None, 0, "does not cover"),
    "0047": Expected("paid", 900_00, 0, "paid 900.00 EUR"),
    "0048": Expected("withdrawn", None, 1, "withdrew"),
    "0049": Expected("paid", 2140_00, 2, "paid 2140.00 EUR"),
    "0050": Expected("payment_declined", None, 1, "did not take our payment"),
    "0051": Expected("paid", 1000_00, 0, "paid 1000.00 CHF"),
}


@pytest.fixture(scope="module")
def sandbox_of(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[str], SandboxProcess]]:
    """One sandbox an engine: the examples have the same keys on both, and a second payment must not hide behind the first."""
    started: dict[str, SandboxProcess] = {}

    def of(engine: str) -> SandboxProcess:
        if engine not in started:
            started[engine] = SandboxProcess(tmp_path_factory.mktemp(engine) / "sandbox.db")
            started[engine].start()
        return started[engine]

    yield of
    for sandbox in started.values():
        sandbox.stop()


@pytest.mark.parametrize("claim_id", CLAIMS)
def test_a_claim_ends_as_its_story_says(
    claim_id: str,
    engine: str,
    url: str,
    journal: Journal,
    sandbox_of: Callable[[str], SandboxProcess],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    expected, sandbox = CLAIMS[claim_id], sandbox_of(engine)
    cli = in_process(environment(url, sandbox.url, tmp_path))
    filed = Filed(EXAMPLES / claim_id / "claim.json", claim_id)

    cli(*filed.submit)
    decisions = _decide_until_it_ends(cli, filed, sandbox.control)

    assert decisions == expected.approvals
    shown = cli("show", filed.thread_id, "--json").document
    assert (shown["state"], shown["steps"][-1]["update"]["outcome"]) == ("done", expected.outcome)
    payments = sandbox.control.payments(claim_id)
    assert [payment.amount for payment in payments] == ([expected.paid] if expected.paid else [])
    (message,) = sandbox.control.messages(claim_id)
    assert expected.says in message["text"]
    asked = journal.approvals.of_thread(filed.thread_id)
    assert [one.replaces for one in asked] == [None, *(one.id for one in asked)][: len(asked)]
    assert list(journal.audit.verify()) == []
    assert {effect.state for effect in journal.effects.list()} == {"settled"}


def test_an_adjuster_is_shown_why_and_by_which_numbers(cli: Cli, filed: Callable[[], Filed], journal: Journal) -> None:
    claim = filed()
    cli(*claim.submit)
    [asked] = journal.approvals.pending()

    assert asked.about
    assert asked.about["title"] == f"Claim {claim.claim_id}"
    assert asked.about["why"] == "The payout is above 1000.00 EUR, up to which claims are paid without asking."
    assert asked.about["facts"]["Deductible"] == "250.00 EUR"
    assert "covered" in asked.about["said"][2]
    assert [journal.artefacts.get(one["sha256"]) for one in asked.about["documents"]]
    assert asked.amount == asked.payload["amount"]


def test_every_example_has_its_expectation() -> None:
    assert sorted(CLAIMS) == sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())


def test_the_documents_are_stored_and_the_state_holds_references(
    cli: Cli, filed: Callable[[], Filed], journal: Journal
) -> None:
    claim = filed()
    cli(*claim.submit)

    shown = cli("show", claim.thread_id, "--json").document
    run = journal.runs.get(claim.thread_id)
    kind, content = journal.runs.input_of(claim.thread_id)
    references = journal.saver.serde.loads_typed((kind, content))["documents"]
    assert [journal.artefacts.get(r["sha256"]) for r in references] == [
        f"{r['name']} {claim.claim_id}".encode() for r in references
    ]
    assert len(references) == 3
    assert run_document(run, situation(journal))["state"] == shown["state"] == "parked"


def _decide_until_it_ends(cli: Cli, filed: Filed, control: SandboxControl) -> int:
    """Approve whatever is asked; while the first question waits, the world goes on as `later.json` says."""
    decisions = 0
    while waiting := cli("approvals", "--json").document:
        if decisions == 0:
            _happen_later(filed, control)
        cli("approve", waiting[0]["id"], "--as", "adjuster-17")
        decisions += 1
        assert decisions < 5
    return decisions


def _happen_later(filed: Filed, control: SandboxControl) -> None:
    file = filed.path.with_name("later.json")
    later = json.loads(file.read_text()) if file.exists() else {}
    if later.get("withdraw"):
        control.withdraw(filed.claim_id)
    if "estimate" in later:
        control.grow_estimate(filed.claim_id, [EstimateLine.model_validate(line) for line in later["estimate"]])


def test_a_claim_does_not_bring_its_own_payment(journal: Journal) -> None:
    """What the state holds of a payment is what was paid, or a rejected claim is told that it was."""
    graph = claims_graph(journal, outside_of(load_settings("sqlite:///none.db")))
    brought = {"claim_id": "0042", "documents": [], "payment": {"id": "tr_x", "amount": 1, "currency": "EUR"}}
    with pytest.raises(InputRefused, match="no 'payment'"):
        graph.invoke(brought, thread("claim-0042"))

    assert journal.runs.find("claim-0042") is None
