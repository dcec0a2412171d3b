"""The small claim whose life is told of, and a worker that tells it, which may be told where to die."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from checkpointing import Journal, open_journal
from graph.backoff import Backoff
from service.notices.graph import notices_graph
from service.notices.posting import Posting
from service.notices.routes import Routes
from service.notices.texts import EVENTS
from service.worker import Draining, work
from service.worker.signals import drained_by_signals
from tests.support.consumer import SECRET
from tests.support.points import die_at
from tests.support.small_claim import LEASE, small_claim
from tests.support.workers import DRAIN, POLL_S, RHYTHM
from tools.mail import mail_server
from tools.webhooks import endpoint

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
