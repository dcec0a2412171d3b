"""
The claims of a soak: what each of them is and how it must end follows from its number alone, so that no record of ours has to be asked.

Of ten, six are small and paid at once. Two large ones are approved, one is edited or rejected, and one is left waiting.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from tests.support.real_claim import EXAMPLE
from tools.claim_file import ClaimFile, load_claim_file
from tools.claim_models import Claim, EstimateLine, Policy

Kind = Literal["small", "approved", "edited", "rejected", "left"]

DEDUCTIBLE = 25_000
"""The example policy's."""
SMALL, LARGE = 35_000, 184_000
"""Payouts below and above what takes an adjuster; each claim's own number is added, so that no two are alike."""
CUT = 50_000
"""By how much an edit lowers a payment."""


@dataclass(frozen=True, slots=True)
class Case:
    """One claim."""

    number: int

    @property
    def claim_id(self) -> str:
        """Its number at the carrier."""
        return f"soak-{self.number:05}"

    @property
    def thread_id(self) -> str:
        """Its thread."""
        return f"claim-{self.claim_id}"

    @property
    def kind(self) -> Kind:
        """What becomes of it."""
        match self.number % 10:
            case 6 | 7:
                return "approved"
            case 8:
                return "edited" if self.number % 20 == 8 else "rejected"
            case 9:
                return "left"
            case _:
                return "small"

    @property
    def asked(self) -> int:
        """What the policy's arithmetic comes to, in minor units."""
        return (SMALL if self.kind == "small" else LARGE) + self.number

    @property
    def paid(self) -> int | None:
        """What must be paid; `None`: nothing."""
        match self.kind:
            case "small" | "approved":
                return self.asked
            case "edited":
                return self.asked - CUT
            case _:
                return None

    @property
    def payee(self) -> str:
        """Who must be paid."""
        return f"acct_soak{self.number}"

    @property
    def rests(self) -> Literal["done", "parked"]:
        """Where its run must be at the end."""
        return "parked" if self.kind == "left" else "done"

    def decision(self, payload: dict[str, Any]) -> dict[str, Any] | None:
        """Return what an adjuster says to the payment asked about; `None`: nothing yet."""
        match self.kind:
            case "approved":
                return {"type": "approve"}
            case "edited":
                return {"type": "edit", "payload": {**payload, "amount": payload["amount"] - CUT}}
            case "rejected":
                return {"type": "reject", "reason": "The photos are of another car."}
            case _:
                return None

    def file(self) -> tuple[Claim, Policy]:
        """Return the records to be filed."""
        example = _example()
        line = EstimateLine(description="Bodywork", category="bodywork", amount=self.asked + DEDUCTIBLE)
        policy_number = f"P-{self.claim_id}"
        claim = example.claim.model_copy(
            update={
                "id": self.claim_id,
                "policy_number": policy_number,
                "claimant": example.claim.claimant.model_copy(update={"payee": self.payee}),
                "estimate": (line,),
                "documents": (),
            }
        )
        return claim, example.policy.model_copy(update={"number": policy_number})


def case_of(claim_id: str) -> Case:
    """Return the case of a claim."""
    return Case(int(claim_id.removeprefix("soak-")))


@cache
def _example() -> ClaimFile:
    return load_claim_file(EXAMPLE)
