"""A run that pays in several branches at once, at a bank that counts, so that two of them may want the last of a budget."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import Send

from checkpointing import Journal
from graph import DurableGraph, DurableState, durable
from nodes import effect_node
from tests.support.bank import Bank
from tools import Effect


class State(DurableState):
    amounts: list[int]
    payments: Annotated[list[Any], operator.add]


class One(TypedDict):
    amount: int


def amount_of(arguments: Any) -> int:
    """Return what a payment costs: what is paid."""
    found: int = arguments["amount"]
    return found


def paying(bank: Bank, **options: Any) -> Effect:
    """Return the effect that costs what it pays."""
    return bank.effect(**{"cost": amount_of, **options})


def branches(journal: Journal, pay: Effect, **options: Any) -> DurableGraph:
    """Pay every amount in a branch of its own, all in one superstep."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node(
        "pay", effect_node(pay, journal, arguments=lambda s: {"claim_id": s["claim"], "amount": s["amount"]})
    )
    builder.add_conditional_edges(START, _sends, ["pay"])
    return durable(builder, journal, **options)


def in_turn(journal: Journal, pay: Effect, **options: Any) -> DurableGraph:
    """Pay one amount after the other, a superstep each."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    pays = effect_node(
        pay, journal, arguments=lambda s: {"claim_id": "0042", "amount": s["amounts"][len(s["effects"])]}
    )
    builder.add_node("pay", pays)
    builder.add_edge(START, "pay")
    builder.add_conditional_edges("pay", lambda s: "pay" if len(s["effects"]) < len(s["amounts"]) else "__end__")
    return durable(builder, journal, **options)


def paid(folder: Path) -> list[int]:
    """Return what the bank executed, in order."""
    return [call["amount"] for call in Bank(folder / "bank").executed]


def _sends(state: State) -> list[Send]:
    return [Send("pay", {"amount": amount, "claim": f"{n}"}) for n, amount in enumerate(state["amounts"])]
