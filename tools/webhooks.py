"""
The effect `webhook`: one message a slot to an endpoint, as Standard Webhooks 1.0 writes it.

    2xx                                        the outcome
    410                                        Declined: this endpoint wants no more
    408, 429, 5xx, no connection, no answer    Unreachable
    everything else, a redirect too            Rejected

`webhook-id` follows from the effect's key, the same on every repeat: a consumer handles an id once. Endpoints are named in the ledger and never written out
there, because their URLs may hold a secret. The standard: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import socket
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any
from urllib.parse import urlsplit

from checkpointing.clock import Clock, system_clock
from checkpointing.errors import Declined, Rejected, Unreachable
from tools.effect import Effect, effect
from tools.receiver import Receiver
from tools.receivers import WEBHOOKS
from tools.wire import send

SECRET = "whsec_"  # noqa: S105  # what one begins with
SHORTEST, LONGEST = 24, 64
"""How many bytes a secret has, as the standard says."""
GONE = 410


@dataclass(frozen=True, slots=True)
class Endpoint:
    """
    Where messages go.

    Attributes:
        url: `https`, or `http` to this machine.
        secrets: What they are signed with; several while one takes the place of another.
    """

    url: str = field(repr=False)
    secrets: tuple[bytes, ...] = field(repr=False)

    @property
    def name(self) -> str:
        """What the ledger calls it: its host, and a few digits of the URL's digest."""
        return f"{urlsplit(self.url).hostname}-{hashlib.sha256(self.url.encode()).hexdigest()[:8]}"


def endpoint(url: str, secrets: Collection[str]) -> Endpoint:
    """
    Return the endpoint; *secrets* as the standard writes them, `whsec_` and base64.

    Raises:
        ValueError: the message says what is wanted, and has nothing of what was given.
    """
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and (parts.port or 1) > 0 and not parts.username and not parts.fragment
    except ValueError:
        parts, usable = urlsplit(""), False
    if not usable or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("an endpoint is a URL without user and fragment")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_here(parts.hostname or "")):
        raise ValueError("an endpoint is called by https; by http only on this machine")
    if not secrets:
        raise ValueError("an endpoint has at least one secret, whsec_… behind its URL")
    return Endpoint(url, tuple(map(_secret, secrets)))


def webhook_effect(
    endpoints: Collection[Endpoint],
    *,
    timeout_s: float = 10.0,
    receiver: Receiver = WEBHOOKS,
    clock: Clock = system_clock,
) -> Effect:
    """
    Return the effect `webhook`.

    Its keywords are `endpoint` (the name of one of the *endpoints*), `event` (`approval.open`), `at` (when it happened, in ISO 8601), `data` (a small
    mapping) and `key`; it answers `{"id", "status"}`, the message's id and what the consumer said. *clock* stamps each call: a consumer refuses what is minutes old.
    """
    by_name = {one.name: one for one in endpoints}

    @effect(receiver=receiver, name="webhook")
    def webhook(*, endpoint: str, event: str, at: str, data: dict[str, Any], key: str) -> dict[str, Any]:
        if endpoint not in by_name:
            # Not `Rejected`: another worker may know it already, or know it still.
            raise Unreachable(f"this worker has no endpoint {endpoint!r}: see COUNTERFOIL_WEBHOOKS")
        to = by_name[endpoint]
        _check_place(to)
        body = json.dumps({"type": event, "timestamp": at, "data": data}, sort_keys=True).encode()
        headers = signed(to, key, body, clock())
        status = send(to.url, body, called=f"endpoint {endpoint!r}", headers=headers, timeout_s=timeout_s)
        _check_taken(endpoint, status)
        return {"id": webhook_id(key), "status": status}

    return webhook


def signed(to: Endpoint, key: str, body: bytes, now: datetime) -> dict[str, str]:
    """Return the headers of a message, with a signature by each of the endpoint's secrets."""
    message_id, seconds = webhook_id(key), str(int(now.timestamp()))
    content = f"{message_id}.{seconds}.".encode() + body
    signatures = (base64.b64encode(hmac.digest(secret, content, "sha256")).decode() for secret in to.secrets)
    return {
        "content-type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": seconds,
        "webhook-signature": " ".join(f"v1,{one}" for one in signatures),
    }


def webhook_id(key: str) -> str:
    """Return the key as a message's id, which has no full stop: it would move the border between id and time in what is signed."""
    return key if "." not in key else f"cf_{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def is_here(host: str) -> bool:
    """Tell whether *host* is written as this machine's own."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _secret(text: str) -> bytes:
    try:
        found = base64.b64decode(text.removeprefix(SECRET), validate=True)
    except (binascii.Error, ValueError):
        found = b""
    if not text.startswith(SECRET) or not SHORTEST <= len(found) <= LONGEST:
        raise ValueError(f"a secret is whsec_ and the base64 of {SHORTEST} to {LONGEST} bytes")
    return found


def _check_place(to: Endpoint) -> None:
    """Refuse a name that leads to where no consumer is: this machine under another name, or a neighbour that knows a cloud's secrets."""
    host = urlsplit(to.url).hostname or ""
    try:
        found = [] if is_here(host) else socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return  # a proxy may know it; else the call says so
    if wrong := next((place for one in found if _is_no_consumers(place := ip_address(str(one[4][0])))), None):
        raise Rejected(f"endpoint {to.name!r} is at {wrong}, where no consumer is")


def _is_no_consumers(place: IPv4Address | IPv6Address) -> bool:
    plain = place.ipv4_mapped or place if isinstance(place, IPv6Address) else place
    return plain.is_loopback or plain.is_link_local or plain.is_multicast or plain.is_unspecified


def _check_taken(name: str, status: int) -> None:
    if 200 <= status < 300:
        return
    if status == GONE:
        raise Declined(f"endpoint {name!r} answered 410: it wants no more messages")
    if 300 <= status < 400:
        raise Rejected(f"endpoint {name!r} answered {status}: a redirect is not followed, give its URL as it is now")
    raise Rejected(f"endpoint {name!r} answered {status}")
