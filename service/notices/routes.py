"""
Routes: which notice goes to whom, as data from the settings.

    webhooks    every endpoint hears of every event, or of those that are listed
    mails       the approvers hear of what asks them, each by their own address, or `*` for whoever has none

Each place a notice goes to is a `Message` of its own, with an id that follows from the notice's and the place's: one that does not answer keeps no other
from hearing, and whoever routes the same notice twice names the same messages.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from checkpointing.notices import Notice
from service.notices.texts import EVENTS, data, letter
from tools.mail import check_address
from tools.webhooks import Endpoint, endpoint

ANYBODY = "*"
MAILED = ("approval.open", "approval.remind", "approval.escalate", "approval.reassign", "approval.expire")
"""What is mailed unless the settings say otherwise: what asks, and what happened because nobody did anything."""
Kind = Literal["webhook", "mail"]


@dataclass(frozen=True, slots=True)
class Message:
    """
    One notice to one place.

    Attributes:
        thread_id: Of the run that sends it.
        arguments: Those of the effect of this *kind*, as JSON.
    """

    thread_id: str
    kind: Kind
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Routes:
    """
    Who hears of what.

    Attributes:
        endpoints: Where webhooks go.
        addresses: Who has which mail address: a name, `group:NAME`, or `*` for everybody else.
        base_url: What the links in notices begin with; mails need it.
        webhook_events, mail_events: What each kind tells of.
    """

    endpoints: tuple[Endpoint, ...] = ()
    addresses: Mapping[str, str] | None = None
    base_url: str | None = None
    webhook_events: Collection[str] = EVENTS
    mail_events: Collection[str] = MAILED

    def __bool__(self) -> bool:
        """Tell whether there is any place."""
        return bool(self.endpoints or self.addresses)

    def of(self, notice: Notice) -> list[Message]:
        """Return the messages that tell of *notice*."""
        return [*self._webhooks(notice), *self._mails(notice)]

    def _webhooks(self, notice: Notice) -> list[Message]:
        if notice.event not in self.webhook_events:
            return []
        told = {"event": notice.event, "at": notice.at.isoformat(), "data": data(notice, self.base_url)}
        return [
            Message(f"notice:{notice.id}:{one.name}", "webhook", {"endpoint": one.name, **told})
            for one in self.endpoints
        ]

    def _mails(self, notice: Notice) -> list[Message]:
        if notice.event not in self.mail_events or not self.base_url:
            return []
        said = letter(notice, self.base_url)
        return [
            Message(
                f"notice:{notice.id}:mail-{hashlib.sha256(to.encode()).hexdigest()[:8]}",
                "mail",
                {"to": to, "subject": said.subject, "text": said.text},
            )
            for to in self.reached(notice.body["approvers"])
        ]

    def reached(self, approvers: Collection[str] | None) -> list[str]:
        """Return the addresses of *approvers*, each once; `None` is whoever may decide, and has the address of everybody."""
        known = self.addresses or {}
        found = (known.get(one, known.get(ANYBODY)) for one in approvers or (ANYBODY,))
        return sorted({one for one in found if one is not None})


def read_addresses(text: str) -> dict[str, str]:
    """
    Read `adjuster-17=ada@carrier.example, group:adjusters=desk@carrier.example, claims@carrier.example`; one without a name is for everybody else.

    Raises:
        ValueError: an entry has no address, or somebody has two.
    """
    found: dict[str, str] = {}
    for entry in filter(None, map(str.strip, text.split(","))):
        who, _, address = entry.rpartition("=")
        name = who.strip() or ANYBODY
        if name in found:
            raise ValueError("a name, or everybody else, has two addresses")
        found[name] = check_address(address.strip())
    return found


def read_events(text: str) -> tuple[str, ...]:
    """
    Read a list of events with commas between.

    Raises:
        ValueError: one is none.
    """
    found = tuple(filter(None, map(str.strip, text.split(","))))
    if not set(found) <= set(EVENTS):
        raise ValueError(f"of these, with commas between: {', '.join(EVENTS)}")
    return found


def read_endpoints(text: str) -> tuple[Endpoint, ...]:
    """
    Read `https://a.example/hook whsec_… whsec_…, https://b.example/hook whsec_…`: URLs with commas between, each with its secrets behind it.

    Raises:
        ValueError: as `endpoint`, or one is there twice.
    """
    found = [endpoint(url, secrets) for url, *secrets in map(str.split, filter(str.strip, text.split(",")))]
    if len({one.name for one in found}) < len(found):
        raise ValueError("an endpoint stands there twice")
    return tuple(found)
