"""Questions whose life is told of, and a worker that tells of them, which may be told where to die."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from langgraph.graph import START, StateGraph

from checkpointing import Journal, open_journal
from checkpointing.tiers import Tier
from graph import DurableGraph, DurableState, durable
from graph.backoff import Backoff
from nodes import approval_node
from service.notices.graph import notices_graph
from service.notices.posting import Posting
from service.notices.routes import Routes
from service.notices.texts import EVENTS
from service.worker import Draining, work
from service.worker.advancing import advance
from service.worker.signals import drained_by_signals
from tests.support.consumer import SECRET
from tests.support.points import die_at
from tests.support.small_claim import LEASE, small_claim
from tests.support.workers import DRAIN, POLL_S, RHYTHM
from tools.mail import mail_server
from tools.webhooks import endpoint

LADDER = (
    Tier("adjusters", ("ada",), ttl=timedelta(days=2), remind=timedelta(hours=12)),
    Tier("heads", ("group:heads",), ttl=timedelta(days=1)),
)
AT_ONCE = Backoff(first=timedelta(milliseconds=20), longest=timedelta(milliseconds=20))


def posting(
    journal: Journal, *places: str, attempts: int = 5, backoff: Backoff = AT_ONCE, timeout_s: float = 5
) -> Posting:
    """Post to these endpoints (`http://…`), and by this mail server (`smtp://…`)."""
    endpoints = tuple(endpoint(one, [SECRET]) for one in places if one.startswith("http"))
    servers = [mail_server(one) for one in places if one.startswith("smtp")]
    graph = notices_graph(
        journal,
        endpoints=endpoints,
        server=servers[0] if servers else None,
        sender="Claims <claims@carrier.example>",
        timeout_s=timeout_s,
        attempts=attempts,
        backoff=backoff,
    )
    addresses = {"*": "desk@carrier.example", "group:heads": "heads@carrier.example"} if servers else {}
    return Posting(journal, graph, Routes(endpoints, addresses, base_url="https://inbox.example", mail_events=EVENTS))


def tells(url: str, folder: Path, place: str, point: str | None = None, nth: int = 1) -> None:
    """Be a worker of the small claim that tells of it, until SIGTERM, and die at *point* if one is given."""
    if point:
        die_at(point, nth=nth)
    draining = Draining()
    with drained_by_signals(draining, within=DRAIN), open_journal(url, lease=LEASE) as journal:
        notices = posting(journal, place)
        graph = small_claim(journal, folder)
        work([graph], concurrency=2, draining=draining, rhythm=RHYTHM, poll_s=POLL_S, notices=notices)


class Asking(DurableState):
    amount: int


def asking(journal: Journal, *, name: str = "payout", tiers: tuple[Tier, ...] = LADDER) -> DurableGraph:
    """A graph that asks, first the adjusters and then their heads, and does nothing else."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(Asking)
    builder.add_node("ask", approval_node(name, journal, payload=lambda s: {"amount": s["amount"]}, tiers=tiers))
    builder.add_edge(START, "ask")
    return durable(builder, journal, name="asking")


def carry_on(graph: DurableGraph, notices: Posting) -> None:
    """Do what a worker would until nothing is due."""
    journal, by_name = graph.journal, {one.name: one for one in (graph, notices.graph)}
    notices.look()
    while due := [thread_id for name in by_name for thread_id in journal.runs.due(name, limit=100)]:
        for thread_id in due:
            advance(by_name, journal, thread_id, Draining())
        notices.look()
