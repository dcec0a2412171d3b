"""The example claims are what their table says, and do what it says at the sandbox."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from checkpointing.errors import Declined
from tools.assessor import embedded_assessor
from tools.claim_file import ClaimFile, load_claim_file
from tools.claim_models import EstimateLine
from tools.claims_system import ClaimsSystem
from tools.payments import pay_effect
from tools.sandbox import SandboxControl, SandboxProcess

FOLDER = Path(__file__).parents[2] / "examples" / "claims"
IDS = [f"00{number}" for number in range(42, 52)]


def loaded(claim_id: str) -> ClaimFile:
    return load_claim_file(FOLDER / claim_id / "claim.json")


def payout(file: ClaimFile) -> int:
    claim, policy = file.claim.model_dump(mode="json"), file.policy.model_dump(mode="json")
    return int(embedded_assessor(claim=claim, policy=policy)["payout"])


def cents(text: str) -> int:
    return int(text.rsplit(maxsplit=1)[-1].replace(".", ""))


def table() -> dict[str, list[str]]:
    lines = (FOLDER / "README.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    return {row[0]: row for row in rows if row[0].isdigit()}


@pytest.mark.parametrize("claim_id", IDS)
def test_a_claim_is_what_the_table_says(claim_id: str) -> None:
    file, row = loaded(claim_id), table()[claim_id]

    first = row[5].split(", then ")[0]
    assert [file.claim.total, file.policy.deductible, file.policy.limit, payout(file)] == [
        cents(row[2]),
        cents(row[3]),
        cents(row[4]),
        cents(first),
    ]
    assert file.claim.id == claim_id
    assert file.documents


def test_the_table_has_every_claim_there_is() -> None:
    folders = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())

    assert folders == sorted(table()) == IDS


def test_what_happens_later_leads_to_the_second_payout(sandbox: SandboxProcess, control: SandboxControl) -> None:
    system = ClaimsSystem(sandbox.url)
    for claim_id, second in (("0048", 0), ("0049", 2140_00)):
        file = loaded(claim_id)
        system.file(file.claim, file.policy, reference="r")
        later: dict[str, Any] = json.loads((FOLDER / claim_id / "later.json").read_text())
        if later.get("withdraw"):
            control.withdraw(claim_id)
        else:
            control.grow_estimate(claim_id, [EstimateLine(**line) for line in later["estimate"]])

        now = ClaimFile(system.claim(claim_id), system.policy(file.policy.number), file.folder)
        assert payout(now) == second


def test_the_closed_account_declines(sandbox: SandboxProcess) -> None:
    file = loaded("0050")
    pay = pay_effect(api_key="sk_test_1", base_url=sandbox.url)

    with pytest.raises(Declined):
        pay.function(
            claim_id=file.claim.id,
            amount=payout(file),
            currency=file.claim.currency,
            payee=file.claim.claimant.payee,
            key="k-0050",
        )
