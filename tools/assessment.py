"""
What an assessment says, and the arithmetic that decides about money: the same whoever assessed.

    payout = 0                                       withdrawn, lapsed, or lost outside the period
           = min(max(covered - deductible, 0), limit)    else
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tools.claim_models import Amount, Category, Claim, ClaimId, Currency, Line, Policy, Record


class AssessedLine(Record):
    """A line of the estimate, and whether the policy covers it."""

    description: Line
    category: Category
    amount: Amount
    covered: bool
    reason: Annotated[str, Field(min_length=1, max_length=300)]


class Assessment(Record):
    """
    What an assessor says of a claim. All amounts are minor units.

    Attributes:
        lines: One for each line of the estimate, in its order.
        in_period: The loss happened on a day of cover.
        payable: The claim is open, the policy active, and the loss in its period.
        payout: What is to be paid.
        summary: One sentence for the adjuster.
    """

    claim_id: ClaimId
    currency: Currency
    # Not strict: a model's tool call arrives as Python values, where a JSON array is a list.
    lines: tuple[AssessedLine, ...] = Field(min_length=1, max_length=500, strict=False)
    in_period: bool
    payable: bool
    estimate_total: int
    covered_total: int
    excluded_total: int
    deductible: Amount
    limit: Amount
    payout: int
    summary: Annotated[str, Field(min_length=1, max_length=500)]


def assessed(claim: Claim, policy: Policy, lines: tuple[AssessedLine, ...], summary: str) -> Assessment:
    """Return the assessment that follows from which *lines* are covered."""
    covered = sum(line.amount for line in lines if line.covered)
    total = sum(line.amount for line in lines)
    return Assessment(
        claim_id=claim.id,
        currency=claim.currency,
        lines=lines,
        in_period=in_period(claim, policy),
        payable=payable(claim, policy),
        estimate_total=total,
        covered_total=covered,
        excluded_total=total - covered,
        deductible=policy.deductible,
        limit=policy.limit,
        payout=payout(claim, policy, covered),
        summary=summary,
    )


def in_period(claim: Claim, policy: Policy) -> bool:
    """Whether the loss happened on a day of cover; both ends are."""
    return policy.period_start <= claim.date_of_loss <= policy.period_end


def payable(claim: Claim, policy: Policy) -> bool:
    """Whether anything may be paid at all."""
    return claim.status == "open" and policy.status == "active" and in_period(claim, policy)


def payout(claim: Claim, policy: Policy, covered: int) -> int:
    """Return what is to be paid when *covered* minor units of the estimate are covered."""
    return min(max(covered - policy.deductible, 0), policy.limit) if payable(claim, policy) else 0
