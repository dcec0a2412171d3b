"""
Every public name, once: the effect with all its options, an approval, the four calls' arguments, and what the journal answers.

    uv run python examples/public_surface.py
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from langgraph.graph import START, StateGraph

from checkpointing import Journal, open_journal
from checkpointing.errors import AlreadyDecided, AlreadySettled, CounterfoilError
from graph import DurableGraph, DurableState, approve, durable, thread
from nodes import approval_node, effect_node, model_node
from tools import Declined, Receiver, effect

PAID: dict[str, dict[str, Any]] = {}
"""What the payment provider of this example remembers, by key."""

PROVIDER = Receiver(
    honours_keys=True,
    key_life=timedelta(hours=22),  # Stripe promises 24
    repeatable=False,
    settle_delay=timedelta(seconds=30),
    max_key_length=255,
    attempts=3,
    backoff=timedelta(milliseconds=500),
)


@effect(
    receiver=PROVIDER,
    name="pay",
    once=lambda arguments: arguments["claim_id"],
    volatile={"trace"},
    cost=lambda arguments: arguments["amount"],
)
def pay(*, claim_id: str, amount: int, key: str, trace: str = "") -> dict[str, Any]:
    """Pay once a key; refuse what no provider would pay."""
    if amount > 1_000_000:
        raise Declined(f"{amount} is above the limit")
    print(f"paying {amount} for claim {claim_id}{trace and f' ({trace})'}")
    return PAID.setdefault(key, {"claim_id": claim_id, "amount": amount})


@pay.lookup
def find_payment(*, key: str, **_arguments: Any) -> dict[str, Any] | None:
    """Return what the provider knows of this key."""
    return PAID.get(key)


def assess(*, claim_id: str) -> dict[str, Any]:
    """Stand in for a model; its answer is recorded, so it is asked once."""
    return {"claim_id": claim_id, "amount": 184_000}


class State(DurableState):
    """What the claim's steps need; `effects`, `approvals` and `turn` come with `DurableState`."""

    claim_id: str
    assessment: dict[str, Any]
    payout: dict[str, Any]
    payment: dict[str, Any]


def claims(journal: Journal) -> DurableGraph:
    """Assess, ask an adjuster, pay what was approved."""
    builder = StateGraph(State)
    builder.add_node(
        "assess", model_node(assess, journal, arguments=lambda s: {"claim_id": s["claim_id"]}, into="assessment")
    )
    builder.add_node(
        "approve",
        approval_node(
            "payout",
            journal,
            payload=lambda s: dict(s["assessment"]),
            allowed=("approve", "reject"),
            ttl=timedelta(days=3),
            on_expiry="reject",
            approvers=["adjuster-17", "adjuster-18"],
            into="payout",
        ),
    )
    builder.add_node(
        "pay",
        effect_node(pay, journal, arguments=lambda s: dict(s["assessment"]), into="payment", approval="payout"),
    )
    builder.add_edge(START, "assess")
    builder.add_edge("assess", "approve")
    builder.add_edge("approve", "pay")
    return durable(builder, journal, turns=False, attempts=5)


def main(url: str = "sqlite:///public-surface.db") -> None:
    """Run one claim, and look at everything that was recorded."""
    with open_journal(url, clock=lambda: datetime.now(UTC), lease=timedelta(seconds=30)) as journal:
        graph = claims(journal)
        done = graph.invoke({"claim_id": "0042"}, thread("claim-0042", principal="intake"))
        if "__interrupt__" in done:
            request = done["__interrupt__"][0].value
            print({name: request[name] for name in ("name", "payload", "allowed")})
            done = graph.invoke(approve(request), thread("claim-0042", principal="adjuster-17"))
        print(done["payout"]["type"], "by", done["payout"]["by"], "->", done["payment"])

        [paid] = [record for record in journal.effects.list(thread_id="claim-0042") if record.effect == "pay"]
        print(paid.key, paid.state, paid.outcome, f"{paid.calls} call, {paid.replays} replays, cost {paid.cost}")
        run = journal.runs.get("claim-0042")
        print(run.thread_id, run.state, f"attempts {run.attempts}, resumes {run.resumes}")
        approval = journal.approvals.get(done["payout"]["id"])
        print(approval.state, approval.decision, approval.decided_by, journal.approvals.pending())

        for refused in (
            lambda: journal.approvals.decide(approval.id, {"type": "reject"}, principal="adjuster-18"),
            lambda: journal.effects.resolve(paid.key, happened=False, principal="operator-1"),
        ):
            try:
                refused()
            except (AlreadyDecided, AlreadySettled) as error:
                print(f"{type(error).__name__}: {isinstance(error, CounterfoilError)}")
        print(list(journal.audit.verify()))


if __name__ == "__main__":
    main()
