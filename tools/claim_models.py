"""
What a claim is: the records the carrier's system keeps, strict and frozen, and nothing else passes.

    Filing ─▶ Claim ─▶ Claimant, EstimateLine, Document
           └▶ Policy

Money is an integer of minor units (cents). A category is a free word of the carrier's ("glass", "bodywork") that an estimate's
line and a policy's exclusions share. The records are plain JSON on the wire: `model_dump(mode="json")` is what the graph's
state, the assessor and the claims system pass around.

Control characters are refused everywhere but in a claim's description: they have no use in a name. There U+0000 alone is refused, which PostgreSQL
cannot store in JSON.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from checkpointing.errors import Refused

Currency: TypeAlias = Literal["CHF", "EUR", "GBP", "USD"]
"""ISO 4217 codes; all four have two decimals, so a minor unit is a hundredth."""

Amount: TypeAlias = Annotated[int, Field(ge=0, le=10**12)]
"""Minor units. The ceiling is far above any claim and far below 2^53, where JSON readers begin to disagree."""

Line: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]+$", min_length=1, max_length=200)]
"""One line of text."""

Category: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]*$", max_length=40)]
"""A lower-case word that estimates and policies share."""

ClaimId: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9-]*$", max_length=64)]
"""The carrier's number of a claim or a policy; it can stand in a URL as it is."""

RelativePath: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f\\]+$", max_length=200)]
"""A path with forward slashes; `load_claim_file` checks that it stays in the folder."""


class ClaimFileInvalid(Refused, ValueError):
    """The file is not a claim file; the message names the file, the field and what is wanted."""


class Record(BaseModel):
    """What all records share: no coercion, no unknown field, no NaN, no change after the making."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)


class EstimateLine(Record):
    """One line of the repairer's estimate."""

    description: Line
    category: Category
    amount: Amount


class Document(Record):
    """
    A document that belongs to a claim.

    Attributes:
        path: Where it lies, relative to the claim file's folder.
    """

    name: Line
    media_type: Annotated[str, StringConstraints(pattern=r"^[a-z]+/[a-z0-9.+-]+$", max_length=100)]
    path: RelativePath


class Claimant(Record):
    """Who claims, and the account that is paid."""

    name: Line
    email: Annotated[str, StringConstraints(pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$", max_length=254)]
    payee: Annotated[str, StringConstraints(pattern=r"^acct_[A-Za-z0-9_]+$", max_length=64)]


class Claim(Record):
    """
    A claim as the carrier's system keeps it.

    Attributes:
        estimate: At least one line, in the repairer's order.
        status: `withdrawn` once the claimant took it back; nothing is paid then.
    """

    id: ClaimId
    policy_number: ClaimId
    claimant: Claimant
    currency: Currency
    date_of_loss: date
    description: Annotated[str, StringConstraints(pattern=r"^[^\x00]+$", min_length=1, max_length=10_000)]
    estimate: tuple[EstimateLine, ...] = Field(min_length=1, max_length=500)
    documents: tuple[Document, ...] = Field(default=(), max_length=100)
    status: Literal["open", "withdrawn"] = "open"

    @property
    def total(self) -> int:
        """The sum of the estimate, in minor units."""
        return sum(line.amount for line in self.estimate)


class Policy(Record):
    """
    The policy a claim is made under.

    Attributes:
        deductible: What the holder bears of each claim, in minor units.
        limit: The most that is paid for one claim, in minor units.
        exclusions: The categories that are not covered.
        period_start: The first day of cover.
        period_end: The last day of cover, itself covered.
        status: `lapsed` once the carrier ended it; nothing is paid then.
    """

    number: ClaimId
    holder: Line
    currency: Currency
    deductible: Amount
    limit: Amount
    exclusions: tuple[Category, ...] = Field(default=(), max_length=100)
    period_start: date
    period_end: date
    status: Literal["active", "lapsed"] = "active"

    @model_validator(mode="after")
    def _period_runs_forward(self) -> Self:
        if self.period_end < self.period_start:
            raise ValueError("period_end is before period_start")
        return self


class Filing(Record):
    """A claim together with its policy: what is filed, and what a claim file says."""

    claim: Claim
    policy: Policy

    @model_validator(mode="after")
    def _claim_fits_policy(self) -> Self:
        if self.claim.policy_number != self.policy.number:
            raise ValueError("claim.policy_number is not the number of the policy beside it")
        if self.claim.currency != self.policy.currency:
            raise ValueError(
                f"the claim is in {self.claim.currency} and its policy in {self.policy.currency}; both must agree"
            )
        return self
