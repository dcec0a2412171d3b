"""
A changed payload never reaches a receiver: the ledger compares before anything is sent.

The receivers here answer the old result to another payload, as Qonto and Worldline do, so nobody could tell from the answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from langgraph.graph import START, StateGraph

from checkpointing import Journal
from checkpointing.errors import EffectConflict, EffectUnsettled
from graph import DurableGraph, DurableState, durable, thread
from nodes import effect_node
from tests.support.clock import MovingClock
from tools import Effect
from tools.messages import notify_effect
from tools.payments import pay_effect
from tools.sandbox import SandboxControl, SandboxProcess

NUMBERS = itertools.count(1)


class State(DurableState):
    outcome: dict[str, Any]


@pytest.fixture
def claim_id() -> str:
    return f"changed-{next(NUMBERS)}"


@pytest.fixture
def pay(sandbox: SandboxProcess) -> Effect:
    return pay_effect(api_key="sk_test_1", base_url=sandbox.url)


@pytest.fixture
def notify(sandbox: SandboxProcess) -> Effect:
    return notify_effect(api_key="re_1", sender="claims@carrier.example", base_url=sandbox.url)


def graph_of(effect: Effect, journal: Journal, arguments: dict[str, Any]) -> DurableGraph:
    """One node whose arguments a test may change, as a deployed bug would."""
    builder = StateGraph(State)
    builder.add_node("act", effect_node(effect, journal, arguments=lambda s: arguments, into="outcome"))
    builder.add_edge(START, "act")
    return durable(builder, journal)


def order_of(at: str, claim_id: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return arguments of the effect whose service is *at*, and what a bug makes of them."""
    if at == "transfers":
        return {"claim_id": claim_id, "amount": 500, "currency": "EUR", "payee": "acct_a"}, {"amount": 900}
    letter = {"claim_id": claim_id, "to": "mara@example.com", "subject": "Your claim", "text": "It was paid."}
    return letter, {"text": "It was not paid."}


def posts(control: SandboxControl) -> int:
    return sum(call["method"] == "POST" for call in control.calls())


def test_a_second_thread_that_pays_the_claim_another_amount_is_refused_before_sending(
    journal: Journal, pay: Effect, control: SandboxControl, claim_id: str
) -> None:
    order = {"claim_id": claim_id, "amount": 500, "currency": "EUR", "payee": "acct_a"}
    graph_of(pay, journal, order).invoke({}, thread("first"))
    control.fault("transfers", "old_answer")
    sent = posts(control)

    with pytest.raises(EffectConflict):
        graph_of(pay, journal, {**order, "amount": 900}).invoke({}, thread("second"))
    assert posts(control) == sent
    assert [fault["left"] for fault in control.faults()] == [1]
    assert [payment.amount for payment in control.payments(claim_id)] == [500]
    assert journal.runs.get("second").reason == "effect_conflict"


@pytest.mark.parametrize("at", ["transfers", "emails"])
def test_a_payload_that_changed_while_in_doubt_is_refused_before_sending(
    opened: Callable[..., Journal],
    clock: MovingClock,
    pay: Effect,
    notify: Effect,
    control: SandboxControl,
    claim_id: str,
    at: str,
) -> None:
    """The answers are lost; the next process has another payload, and would be answered the result of the first."""
    journal = opened(clock=clock, lease=timedelta(seconds=30))
    effect = pay if at == "transfers" else notify
    order, changed = order_of(at, claim_id)
    graph = graph_of(effect, journal, order)
    control.fault(at, "drop_after", match=claim_id, times=effect.receiver.attempts)
    with pytest.raises(EffectUnsettled):
        graph.invoke({}, thread("claim"))
    control.fault(at, "old_answer")
    sent = posts(control)

    order.update(changed)
    with pytest.raises(EffectConflict):
        graph.invoke(None, thread("claim"))
    assert posts(control) == sent
    assert control.faults()[-1]["left"] == 1
    assert len(control.payments(claim_id)) + len(control.messages(claim_id)) == 1
