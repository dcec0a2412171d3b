"""
Two errands at services without keys, a ticket and a chat message, run in a process that may be told where to die or to stand still.
"""

from __future__ import annotations

import itertools
import signal
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from langgraph.graph import START, StateGraph

from checkpointing import Journal, open_journal
from graph import DurableGraph, DurableState, durable, thread
from nodes import effect_node
from tests.support.clock import MovingClock
from tests.support.points import signal_at
from tools.chat import chat_effect
from tools.receiver import Receiver
from tools.receivers import SLACK
from tools.tickets import CHECKED, ticket_effect

THREAD = "claim-0042"
LEASE = timedelta(seconds=30)
NUMBERS = itertools.count(1)


class State(DurableState):
    ticket: dict[str, Any]
    message: dict[str, Any]


@dataclass(frozen=True)
class Outside:
    """
    The services: where they are, and what tells this test's errands from another's.

    Attributes:
        channel: The chat channel, this test's own.
        subject: The ticket's subject, this test's own.
    """

    url: str
    channel: str
    subject: str


def outside_at(url: str) -> Outside:
    """Return the services at *url*, with a channel and a subject nobody else uses."""
    number = next(NUMBERS)
    return Outside(url, f"C{number:09}", f"Claim {number}")


def errands(
    journal: Journal, outside: Outside, *, desk: Receiver = CHECKED, chat: Receiver = SLACK, timeout_s: float = 60
) -> DurableGraph:
    """Open a ticket, then post that it is open."""
    open_ticket = ticket_effect(api_key="zd_1", base_url=outside.url, timeout_s=timeout_s, receiver=desk)
    post_message = chat_effect(api_key="xoxb-1", base_url=outside.url, timeout_s=timeout_s, receiver=chat)
    builder = StateGraph(State)
    builder.add_node(
        "ticket",
        effect_node(
            open_ticket,
            journal,
            arguments=lambda s: {"subject": outside.subject, "text": "A photo is missing."},
            into="ticket",
        ),
    )
    builder.add_node(
        "message",
        effect_node(
            post_message,
            journal,
            arguments=lambda s: {"channel": outside.channel, "text": f"Ticket {s['ticket']['id']} is open."},
            into="message",
        ),
    )
    builder.add_edge(START, "ticket")
    builder.add_edge("ticket", "message")
    return durable(builder, journal)


def run_errands(
    url: str, outside: Outside, clock: MovingClock, point: str | None = None, nth: int = 1, stops: bool = False
) -> None:
    """Run both errands, and die (or with *stops* stand still) at *point* if one is given."""
    with open_journal(url, clock=clock, lease=LEASE) as journal:
        graph = errands(journal, outside)
        if point:
            signal_at(point, signal.SIGSTOP if stops else signal.SIGKILL, nth=nth)
        graph.invoke({}, thread(THREAD))
