"""
The whole of Counterfoil in forty lines of code: a claim that is paid once, after somebody said yes.

    uv run python examples/claim_in_forty_lines.py
"""

from datetime import timedelta

from langgraph.graph import START, StateGraph

from checkpointing import open_journal
from graph import DurableState, approve, durable, thread
from nodes import approval_node, effect_node
from tools import Receiver, effect

STRIPE_LIKE = Receiver(honours_keys=True, key_life=timedelta(hours=22))  # Stripe promises 24


@effect(receiver=STRIPE_LIKE, name="pay", once=lambda arguments: arguments["claim_id"])
def pay(*, claim_id: str, amount: int, key: str) -> dict:
    """Pay *amount* cents; a real tool sends *key* with the request."""
    print(f"paying {amount} cents for claim {claim_id} under key {key}")
    return {"paid": amount}


class State(DurableState):
    """What the claim's steps need."""

    claim_id: str
    amount: int
    payment: dict


def payout(state: State) -> dict:
    """Return what is asked about, and then paid."""
    return {"claim_id": state["claim_id"], "amount": state["amount"]}


def main(url: str = "sqlite:///claims.db") -> None:
    """Run one claim to its question, answer it, and run it to its end; all of it may be repeated."""
    with open_journal(url) as journal:
        asks = approval_node("payout", journal, payload=payout, ttl=timedelta(days=3), on_expiry="reject")
        builder = StateGraph(State)
        builder.add_node("assess", lambda state: {"amount": 184_000})
        builder.add_node("approve", asks)
        builder.add_node("pay", effect_node(pay, journal, into="payment", approval="payout"))
        builder.add_edge(START, "assess")
        builder.add_edge("assess", "approve")
        builder.add_edge("approve", "pay")
        graph = durable(builder, journal)

        parked = graph.invoke({"claim_id": "0042"}, thread("claim-0042", principal="intake"))
        if "__interrupt__" in parked:
            request = parked["__interrupt__"][0].value
            print(f"approval {request['id']} asks about {request['payload']}")
            graph.invoke(approve(request), thread("claim-0042", principal="adjuster-17"))
        done = graph.invoke({"claim_id": "0042"}, thread("claim-0042"))
        print(f"done: {done['payment']}")


if __name__ == "__main__":
    main()
