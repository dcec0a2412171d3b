"""
One HTTP call of a tool, and what its failure means: either the receiver's answer, or `Unreachable`.

Whatever leaves open whether the receiver executed the call is `Unreachable`: no connection, no answer in time, a 5xx, a 429,
an answer that is no JSON. Every other answer is returned for the tool to judge. A connection lives for one call: a kept one
may be closed by the receiver at the very moment it is used, which cannot be told from a lost answer.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpx

from checkpointing.errors import Unreachable


@dataclass(frozen=True, slots=True)
class Answer:
    """What a receiver said: the status, and the body as JSON."""

    status: int
    body: Any

    def text(self, field: str) -> str:
        """Return the body's *field* as text, empty if there is none."""
        return str(self.body.get(field) or "") if isinstance(self.body, dict) else ""


def call(
    method: str,
    url: str,
    *,
    timeout_s: float,
    body: object = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """
    Send one request and return the answer.

    Raises:
        Unreachable: nobody knows whether it was executed.
    """
    try:
        response = httpx.request(method, url, json=body, headers=headers, timeout=timeout_s, verify=_trusted())
    except httpx.RequestError as error:
        raise Unreachable(f"{method} {url} got no answer: {type(error).__name__}: {error}") from error
    if response.status_code >= 500 or response.status_code == 429:
        raise Unreachable(f"{method} {url} answered {response.status_code}")
    try:
        return Answer(response.status_code, response.json())
    except ValueError as error:
        raise Unreachable(f"{method} {url} answered {response.status_code} with a body that is no JSON") from error


@cache
def _trusted() -> ssl.SSLContext:
    """Return the certificates we trust, read once: reading them takes longer than a call on this host."""
    return httpx.create_ssl_context()
