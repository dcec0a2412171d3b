"""
The graph `notices`: one message, sent once, as an effect of a run.

A message that arrives twice harms nobody: a webhook has its id, by which a consumer knows it again, and a second mail reminds. So doubt never takes a
person here, and a place that does not answer costs attempts, with growing waits; after about a day of them the run is a dead letter.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta
from typing import Any

from langgraph.graph import END, START, StateGraph

from checkpointing import Journal
from checkpointing.clock import Clock, system_clock
from graph import DurableGraph, DurableState, durable
from graph.backoff import Backoff
from nodes import effect_node
from service.notices.patience import patient
from service.notices.routes import Kind
from tools.mail import MailServer, mail_effect
from tools.receiver import Receiver
from tools.receivers import SMTP, WEBHOOKS
from tools.webhooks import Endpoint, webhook_effect

NAME = "notices"
ATTEMPTS = 24
BACKOFF = Backoff(first=timedelta(seconds=5), longest=timedelta(hours=2))
"""Five seconds, ten, and so on; the last are two hours apart, and 24 attempts take 13 to 27 hours."""


class Input(DurableState):
    """One message: the effect that sends it, and its arguments."""

    kind: Kind
    arguments: dict[str, Any]


class State(Input):
    """One message, and what came of it."""

    outcome: dict[str, Any]


def notices_graph(
    journal: Journal,
    *,
    endpoints: Collection[Endpoint] = (),
    server: MailServer | None = None,
    sender: str = "",
    timeout_s: float = 10.0,
    clock: Clock = system_clock,
    attempts: int = ATTEMPTS,
    backoff: Backoff = BACKOFF,
) -> DurableGraph:
    """Return the graph that sends messages to these *endpoints* and by this *server*; its input is `{"kind", "arguments"}`."""
    webhook = webhook_effect(endpoints, timeout_s=timeout_s, receiver=_harmless(WEBHOOKS), clock=clock)
    mail = mail_effect(server, sender=sender, timeout_s=timeout_s, receiver=_harmless(SMTP), clock=clock)
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State, input_schema=Input)
    for effect in (webhook, mail):
        one = patient(effect, place_of=_place, timeout_s=timeout_s, clock=journal.store.clock)
        builder.add_node(one.name, effect_node(one, journal, arguments=lambda s: s["arguments"], into="outcome"))
        builder.add_edge(one.name, END)
    builder.add_conditional_edges(START, lambda s: s["kind"], ["webhook", "mail"])
    return durable(builder, journal, name=NAME, attempts=attempts, backoff=backoff)


def _harmless(receiver: Receiver) -> Receiver:
    """Return the profile with repeats allowed, and one call an attempt: a run that waits holds nobody's place."""
    return replace(receiver, repeatable=True, attempts=1)


def _place(arguments: dict[str, Any]) -> str:
    return f"endpoint {arguments['endpoint']!r}" if "endpoint" in arguments else "the mail server"
