"""
The claims graph: nine steps, where it forks, and nothing else.
"""

from __future__ import annotations

from typing import Any, Literal

from langgraph.graph import END, START, StateGraph

from checkpointing import Journal
from checkpointing.budget import Caps
from graph.accepting import Compiled
from graph.checks import check_builder
from graph.durable import DurableGraph, durable
from nodes import claims as steps
from nodes.claims import APPROVAL, Asking, ClaimInput, ClaimState, Outside

NAME = "claims"
ATTEMPTS = 10
"""Starts at one and the same step: with the workers' waits between them they outlast some minutes without the claims system."""


def claims_graph(
    journal: Journal, outside: Outside, *, asking: Asking | None = None, caps: Caps | None = None
) -> DurableGraph:
    """
    Return the durable claims graph; its input is `{"claim_id": str, "documents": [Artefact.as_json(), ...]}`.

    Args:
        journal: where its runs are kept.
        outside: the systems it talks to.
        asking: of whom a payment is asked, and until when.
        caps: what one claim may take.
    """
    return durable(
        claims_builder(journal, outside, asking or Asking()), journal, name=NAME, caps=caps, attempts=ATTEMPTS
    )


def raw_claims_graph(journal: Journal, outside: Outside, *, asking: Asking | None = None) -> Compiled:
    """
    Return LangGraph's own graph of the same steps, for a server that brings its own checkpointer and keeps the runs itself.

    Its effects, questions and decisions are kept in the journal; it has no lease, no row of a run, and no caps.
    """
    builder = claims_builder(journal, outside, asking or Asking())
    check_builder(builder)
    return builder.compile(name=NAME)


def claims_builder(journal: Journal, outside: Outside, asking: Asking) -> StateGraph[Any, Any, Any, Any]:
    """Return the nine steps and their edges, not compiled."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(ClaimState, input_schema=ClaimInput)
    builder.add_node("load_claim", steps.load_claim(outside))
    builder.add_node("fetch_policy", steps.fetch_policy(outside))
    builder.add_node("assess", steps.assess(outside, journal))
    builder.add_node("compute_payout", steps.compute_payout)
    builder.add_node("approve", steps.approve(journal, asking))
    builder.add_node("revalidate", steps.revalidate(outside))
    builder.add_node("pay", steps.pay(outside, journal))
    builder.add_node("notify", steps.notify(outside, journal))
    builder.add_node("close", steps.close)

    builder.add_edge(START, "load_claim")
    builder.add_edge("load_claim", "fetch_policy")
    builder.add_edge("fetch_policy", "assess")
    builder.add_edge("assess", "compute_payout")
    builder.add_conditional_edges("compute_payout", after_payout)
    builder.add_conditional_edges("approve", after_approval)
    builder.add_conditional_edges("revalidate", after_facts)
    builder.add_edge("pay", "notify")
    builder.add_edge("notify", "close")
    builder.add_edge("close", END)
    return builder


def after_payout(state: ClaimState) -> Literal["approve", "revalidate", "notify"]:
    """Nothing to pay: tell the claimant. A large payout: ask. A small one: on."""
    if state["payout"] == 0:
        return "notify"
    return "approve" if steps.needs_approval(state) else "revalidate"


def after_approval(state: ClaimState) -> Literal["revalidate", "notify"]:
    """Approved, as shown or edited: on. Rejected or expired: tell the claimant."""
    return "revalidate" if state["approvals"][APPROVAL]["type"] in ("approve", "edit") else "notify"


def after_facts(state: ClaimState) -> Literal["pay", "assess", "notify"]:
    """Unchanged: pay. Changed: assess anew. Withdrawn or lapsed: tell the claimant."""
    match state["facts"]:
        case "unchanged":
            return "pay"
        case "changed":
            return "assess"
        case _:
            return "notify"
