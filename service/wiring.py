"""
Wiring: the only place that constructs what the processes work with, from the settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from checkpointing import Journal, open_journal
from checkpointing.errors import JournalUnusable
from checkpointing.journal import look_at
from checkpointing.standing import Standing
from graph import DurableGraph
from graph.accepting import Compiled
from graph.claims import claims_graph, raw_claims_graph
from nodes.claims import Outside
from service.notices.graph import notices_graph
from service.notices.posting import Posting
from service.notices.routes import Routes, read_addresses, read_endpoints, read_events
from service.notices.texts import EVENTS
from service.settings import Settings
from service.who import Doors
from service.who.assertions import ByProvider, BySecret
from service.who.claims import ClaimNames
from service.who.keys import PublishedKeys
from tools.assessor import estimated_tokens, make_assessor
from tools.claims_system import ClaimsSystem
from tools.effect import Effect
from tools.mail import mail_server
from tools.messages import notify_effect
from tools.payments import pay_effect


class JournalMissing(JournalUnusable):
    """There is no file where the journal should be; looking does not make one."""


@dataclass(frozen=True, slots=True)
class App:
    """An open journal and the claims graph over it."""

    settings: Settings
    journal: Journal
    outside: Outside
    graph: DurableGraph


@dataclass(frozen=True, slots=True)
class Served:
    """What an Agent Server works with: an open journal, and LangGraph's own graph whose effects and approvals are kept in it."""

    journal: Journal
    graph: Compiled


@contextmanager
def opened(settings: Settings, *, must_exist: bool = False) -> Iterator[Journal]:
    """
    Open the journal alone, for commands that need nothing else; errors as `open_journal`.

    Raises:
        JournalMissing: it *must_exist*, and there is no such file.
    """
    url = settings.url.get_secret_value()
    if must_exist:
        _check_there(settings, url)
    with _open(settings) as journal:
        yield journal


@contextmanager
def wired(settings: Settings, *, must_exist: bool = False) -> Iterator[App]:
    """Open the journal and build the claims graph over it; errors as `opened`."""
    with opened(settings, must_exist=must_exist) as journal:
        yield claims(settings, journal)


def claims(settings: Settings, journal: Journal) -> App:
    """Build the claims graph over an open journal."""
    outside = outside_of(settings)
    return App(settings, journal, outside, claims_graph(journal, outside, asking=settings.asking, caps=settings.caps))


def doors_of(settings: Settings, journal: Journal) -> Doors:
    """Return by what people may come in: tokens and sessions of the journal, and what the settings name beside them."""
    provider = _provider(settings)
    secret = settings.proxy_secret
    by_proxy = BySecret(secret, audience=settings.proxy_audience) if secret.get_secret_value() else provider
    return Doors(
        journal,
        provider=provider,
        proxy=(settings.proxy_header, by_proxy) if settings.proxy_header and by_proxy else None,
        names=ClaimNames(settings.name_claim, settings.roles_claim, settings.groups_claim, settings.limit_claim),
        lasting=settings.session,
    )


def serve(settings: Settings) -> Served:
    """Open the journal for as long as the process lives; errors as `open_journal`."""
    journal = _open(settings)
    return Served(journal, raw_claims_graph(journal, outside_of(settings), asking=settings.asking))


def notices_of(settings: Settings, journal: Journal) -> Posting:
    """Return what posts notices to where the settings say; to nobody where they say nothing."""
    webhooks, smtp = settings.webhooks.get_secret_value(), settings.smtp_url.get_secret_value()
    endpoints = read_endpoints(webhooks)
    graph = notices_graph(
        journal,
        endpoints=endpoints,
        server=mail_server(smtp) if smtp else None,
        sender=settings.notice_sender,
        timeout_s=settings.timeout_seconds,
    )
    routes = Routes(
        endpoints=endpoints,
        addresses=read_addresses(settings.notice_to),
        base_url=settings.base_url,
        webhook_events=read_events(settings.webhook_events) or EVENTS,
        mail_events=read_events(settings.notice_events),
    )
    return Posting(journal, graph, routes)


def looked_at(settings: Settings) -> tuple[Standing, Standing]:
    """Return how far the journal's tables are and how far this code would bring them; nothing is made, not even a file; errors as `opened`."""
    url = settings.url.get_secret_value()
    if sqlite_file(url):
        _check_there(settings, url)
    return look_at(url, schema=settings.schema_name)


def outside_of(settings: Settings) -> Outside:
    """Return the clients of everything outside."""
    return Outside(
        claims=ClaimsSystem(settings.claims_url, settings.timeout_seconds),
        assess=make_assessor(settings.model),
        pay=_payments(settings),
        notify=_messages(settings),
        assess_tokens=estimated_tokens if settings.model else None,
    )


def effects_of(settings: Settings) -> dict[str, Effect]:
    """Return the effects of the claims agent by name, for commands that need nothing else of it."""
    return {effect.name: effect for effect in (_payments(settings), _messages(settings))}


def _payments(settings: Settings) -> Effect:
    return pay_effect(
        api_key=settings.stripe_key.get_secret_value(),
        base_url=settings.stripe_url,
        timeout_s=settings.timeout_seconds,
    )


def _provider(settings: Settings) -> ByProvider | None:
    if not (settings.oidc_jwks_url and settings.oidc_issuer and settings.oidc_audience):
        return None
    return ByProvider(
        PublishedKeys(settings.oidc_jwks_url), issuer=settings.oidc_issuer, audience=settings.oidc_audience
    )


def _messages(settings: Settings) -> Effect:
    return notify_effect(
        api_key=settings.mail_key.get_secret_value(),
        sender=settings.mail_sender,
        base_url=settings.mail_url,
        timeout_s=settings.timeout_seconds,
    )


def _open(settings: Settings) -> Journal:
    return open_journal(
        settings.url.get_secret_value(),
        lease=settings.lease,
        artefacts=settings.artefacts,
        schema=settings.schema_name,
        connections=settings.connections,
    )


def _check_there(settings: Settings, url: str) -> None:
    file = sqlite_file(url)
    missing = not file.exists() if file else look_at(url, schema=settings.schema_name)[0] == Standing()
    if missing:
        raise JournalMissing(
            f"no journal at {settings.place}: counterfoil submit makes one; COUNTERFOIL_URL or --url says where it is"
        )


def sqlite_file(url: str) -> Path | None:
    """Return the file of a SQLite journal; `None` for anything that `open_journal` takes otherwise, or refuses."""
    parts = urlsplit(url)
    name = unquote(parts.path.removeprefix("/"))
    return Path(name) if parts.scheme == "sqlite" and not parts.netloc and name and "\0" not in name else None
