"""
What an adjuster is shown beside the payment: why they are asked, what the assessor said, the policy's numbers, the documents.

It is written into the question when it is asked, so it is what they saw; it binds nothing. The texts are the claimant's and the model's: whoever shows
them shows them as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOST_LINES = 20
"""How many lines of the estimate are said; a claim may have hundreds, and its documents have them all."""


def about_payment(state: Mapping[str, Any], *, limit: int) -> dict[str, Any]:
    """Return what is shown beside the payment of the claim in *state*; payouts up to *limit* minor units are not asked about."""
    claim, policy, assessment = state["claim"], state["policy"], state["assessment"]
    currency = claim["currency"]
    facts = {
        "Claimant": claim["claimant"]["name"],
        "Date of loss": claim["date_of_loss"],
        "Estimate": amount(assessment["estimate_total"], currency),
        "Covered": amount(assessment["covered_total"], currency),
        "Excluded": amount(assessment["excluded_total"], currency),
        "Deductible": amount(assessment["deductible"], currency),
        "Policy limit": amount(assessment["limit"], currency),
        "Policy": f"{policy['number']}, {policy['status']}",
        "Cover": f"{policy['period_start']} to {policy['period_end']}",
        "Holder": policy["holder"],
    }
    return {
        "title": f"Claim {claim['id']}",
        "why": f"The payout is above {amount(limit, currency)}, up to which claims are paid without asking.",
        "said": [claim["description"], assessment["summary"], *_lines(assessment["lines"], currency)],
        "facts": facts,
        "documents": list(state.get("documents") or []),
    }


def amount(minor: int, currency: str) -> str:
    """Return minor units as people write them; every currency of a claim has two decimals."""
    return f"{minor // 100}.{minor % 100:02} {currency}"


def _lines(lines: list[dict[str, Any]], currency: str) -> list[str]:
    said = [
        f"{line['description']}: {amount(line['amount'], currency)}, {'covered' if line['covered'] else 'not covered'}: {line['reason']}"
        for line in lines[:MOST_LINES]
    ]
    return [*said, f"and {len(lines) - MOST_LINES} more lines"] if len(lines) > MOST_LINES else said
