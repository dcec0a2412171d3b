"""
The nine steps of a claim, and what each decides.

    load_claim ─▶ fetch_policy ─▶ assess ─▶ compute_payout ─▶ approve ─▶ revalidate ─▶ pay ─▶ notify ─▶ close
                                     ▲            │              │           │                  ▲
                                     │            ├─ small ──────┼──────────▶│                  │
                                     │            └─ nothing ────┴─ rejected ┼─ withdrawn ──────┤
                                     └──────────────── changed ──────────────┘                  │

Only `pay` and `notify` change the world; only they are effects. The reads are repeated after every wait, by `revalidate`, and a claim that changed
meanwhile goes back to its assessment and is asked about anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, Protocol

from checkpointing import Journal
from checkpointing.budget import Spend
from checkpointing.tiers import Tier
from nodes.approval import ApprovalNode, approval_node
from nodes.claim_facts import about_payment
from nodes.effect import EffectNode, effect_node
from nodes.model import model_node
from nodes.state import DurableState
from tools.assessor import Assessor
from tools.claims_system import ClaimsSystem
from tools.effect import Effect

APPROVAL = "payout"
APPROVAL_LIMIT = 100_000
"""Payouts above this many minor units take an adjuster."""
APPROVAL_TTL = timedelta(days=3)

Facts = Literal["unchanged", "changed", "withdrawn", "lapsed"]
Outcome = Literal[
    "paid",
    "payment_declined",
    "withdrawn",
    "policy_lapsed",
    "expired",
    "handed_over",
    "rejected",
    "undecided",
    "not_covered",
]


class ClaimInput(DurableState):
    """What a claim is submitted with; what else the state holds is for its steps to find out."""

    claim_id: str
    documents: list[dict[str, Any]]


class ClaimState(DurableState):
    """
    What the next step of a claim needs.

    Channels:
        documents: references to artefacts (`Artefact.as_json`), never their content.
        claim, policy: as the claims system had them when they were last read.
        assessment: `Assessment` as JSON.
        payout: minor units, by the policy's arithmetic; an adjuster may approve another amount.
        facts: what `revalidate` found.
        payment: what `pay` returned, or `{"declined": reason}`.
    """

    claim_id: str
    documents: list[dict[str, Any]]
    claim: dict[str, Any]
    policy: dict[str, Any]
    assessment: dict[str, Any]
    payout: int
    facts: Facts
    payment: dict[str, Any]
    notice: dict[str, Any]
    outcome: Outcome


class Step(Protocol):
    """A step that only reads, as LangGraph takes it."""

    def __call__(self, state: ClaimState) -> dict[str, Any]:
        """Return what it writes."""
        ...


@dataclass(frozen=True, slots=True)
class Asking:
    """
    Of whom a payment is asked, and until when.

    Attributes:
        ttl: How long an adjuster has, where there are no tiers.
        remind: How long before that they are reminded; `None`: never.
        tiers: A ladder in place of both.
        four_eyes: An amount that an adjuster changed takes a second one who wants the same.
        on_expiry: What it counts as when nobody has answered: `reject`, or `hand_over` to people outside.
    """

    ttl: timedelta = APPROVAL_TTL
    remind: timedelta | None = None
    tiers: tuple[Tier, ...] = ()
    four_eyes: bool = False
    on_expiry: str = "reject"


@dataclass(frozen=True, slots=True)
class Outside:
    """
    Everything outside that the claims graph talks to.

    Attributes:
        assess_tokens: What one assessment may use of a model's tokens; `None` for an assessor that uses none.
    """

    claims: ClaimsSystem
    assess: Assessor
    pay: Effect
    notify: Effect
    assess_tokens: Callable[[Mapping[str, Any]], int] | None = None


def load_claim(outside: Outside) -> Step:
    """Read the claim from the claims system."""

    def read(state: ClaimState) -> dict[str, Any]:
        return {"claim": outside.claims.claim(state["claim_id"]).model_dump(mode="json")}

    return read


def fetch_policy(outside: Outside) -> Step:
    """Read the policy the claim is made under."""

    def read(state: ClaimState) -> dict[str, Any]:
        return {"policy": outside.claims.policy(state["claim"]["policy_number"]).model_dump(mode="json")}

    return read


def assess(outside: Outside, journal: Journal) -> EffectNode:
    """Ask the assessor, whose answer is recorded."""

    def arguments(state: Any) -> dict[str, Any]:
        return {"claim": state["claim"], "policy": state["policy"]}

    return model_node(
        outside.assess,
        journal,
        name="assess",
        arguments=arguments,
        into="assessment",
        tokens=outside.assess_tokens,
        spent=lambda _arguments, told: Spend(tokens=getattr(told, "tokens", None)),
    )


def compute_payout(state: ClaimState) -> dict[str, Any]:
    """Take the payout from the assessment; its arithmetic is the policy's, whoever assessed."""
    return {"payout": int(state["assessment"]["payout"])}


def approve(journal: Journal, asking: Asking) -> ApprovalNode:
    """Ask an adjuster about the exact payment, of which only the amount is theirs to change, up to the policy's limit."""

    def about(state: Any) -> dict[str, Any]:
        return about_payment(state, limit=APPROVAL_LIMIT)

    def edits(state: Any) -> dict[str, Any]:
        fixed = {name: {"const": value} for name, value in payment_of(state).items()}
        return {
            "properties": {**fixed, "amount": {"type": "integer", "minimum": 1, "maximum": state["policy"]["limit"]}}
        }

    return approval_node(
        APPROVAL,
        journal,
        payload=payment_of,
        allowed=("approve", "edit", "reject"),
        edits=edits,
        about=about,
        amount="amount",
        ttl=None if asking.tiers else asking.ttl,
        remind=None if asking.tiers else asking.remind,
        tiers=asking.tiers,
        four_eyes=asking.four_eyes,
        on_expiry=asking.on_expiry,
    )


def revalidate(outside: Outside) -> Step:
    """Read claim and policy again, because days may have passed, and say whether the facts still are what was assessed."""

    def read_again(state: ClaimState) -> dict[str, Any]:
        claim = outside.claims.claim(state["claim_id"]).model_dump(mode="json")
        policy = outside.claims.policy(claim["policy_number"]).model_dump(mode="json")
        facts: Facts = "unchanged"
        if claim["status"] == "withdrawn":
            facts = "withdrawn"
        elif policy["status"] == "lapsed":
            facts = "lapsed"
        elif (claim, policy) != (state["claim"], state["policy"]):
            facts = "changed"
        return {"claim": claim, "policy": policy, "facts": facts}

    return read_again


def pay(outside: Outside, journal: Journal) -> EffectNode:
    """Pay what was approved, or a small payout without asking."""

    def approval(state: Any) -> str | None:
        return APPROVAL if needs_approval(state) else None

    def arguments(state: Any) -> dict[str, Any]:
        approved: dict[str, Any] = (
            state["approvals"][APPROVAL]["payload"] if needs_approval(state) else payment_of(state)
        )
        return approved

    return effect_node(outside.pay, journal, arguments=arguments, into="payment", approval=approval)


def notify(outside: Outside, journal: Journal) -> EffectNode:
    """Tell the claimant how it ended."""
    return effect_node(outside.notify, journal, arguments=_letter, into="notice")


def close(state: ClaimState) -> dict[str, Any]:
    """Write down how it ended."""
    return {"outcome": outcome_of(state)}


def needs_approval(state: ClaimState) -> bool:
    """Whether the payout takes an adjuster."""
    return state["payout"] > APPROVAL_LIMIT


def payment_of(state: Any) -> dict[str, Any]:
    """Return the exact payment: the arguments of `pay`, and what an adjuster approves."""
    claim = state["claim"]
    return {
        "claim_id": state["claim_id"],
        "amount": state["payout"],
        "currency": claim["currency"],
        "payee": claim["claimant"]["payee"],
    }


def outcome_of(state: ClaimState) -> Outcome:
    """Return how the claim ends, from what is in the state."""
    if payment := state.get("payment"):
        return "payment_declined" if "declined" in payment else "paid"
    if state.get("facts") == "withdrawn":
        return "withdrawn"
    if state.get("facts") == "lapsed":
        return "policy_lapsed"
    if state["payout"] == 0:
        return "not_covered"
    return _refused(state["approvals"][APPROVAL])


def _refused(asked: Mapping[str, Any]) -> Outcome:
    """Return how a claim ends whose payment nobody has approved."""
    match asked["type"]:
        case "withdrawn":
            return "undecided"
        case "hand_over":
            return "handed_over"
        case _:
            return "expired" if asked["expired"] else "rejected"


LETTERS: dict[Outcome, str] = {
    "paid": "We have paid {amount} {currency} to your account.",
    "payment_declined": "Your bank did not take our payment. Please send us another account.",
    "withdrawn": "You withdrew your claim, so we have closed it.",
    "policy_lapsed": "Your policy has ended, so we cannot pay this claim.",
    "expired": "We could not decide your claim in time. Please call us.",
    "handed_over": "A colleague of ours will call you about your claim.",
    "rejected": "We have looked at your claim and cannot pay it. {reason}",
    "undecided": "We could not decide your claim. Please call us.",
    "not_covered": "Your policy does not cover this loss. {summary}",
}


def _letter(state: Any) -> dict[str, Any]:
    claim, outcome = state["claim"], outcome_of(state)
    amount = state.get("payment", {}).get("amount", 0)
    text = LETTERS[outcome].format(
        amount=f"{amount // 100}.{amount % 100:02}",
        currency=state.get("payment", {}).get("currency", claim["currency"]),
        reason=(state.get("approvals", {}).get(APPROVAL) or {}).get("reason") or "",
        summary=state["assessment"]["summary"],
    )
    return {
        "claim_id": state["claim_id"],
        "to": claim["claimant"]["email"],
        "subject": f"Your claim {state['claim_id']}",
        "text": f"Dear {claim['claimant']['name']},\n\n{text.strip()}\n",
    }
