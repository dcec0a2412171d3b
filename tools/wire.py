"""
One HTTP call of a tool, and what its failure means: either the receiver's answer, or `Unreachable`.

Whatever leaves open whether the receiver executed the call is `Unreachable`: no connection, no answer in time, a 5xx, a 408, a 429,
an answer that is no JSON where one is wanted. Every other answer is returned for the tool to judge. A connection lives for one call: a kept
one may be closed by the receiver at the very moment it is used, which cannot be told from a lost answer. A redirect is an answer, and is not followed.

What an error says stands in the audit and on terminals, so it never has a URL's user, password or query, nor a header.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpx

from checkpointing.errors import Rejected, Unreachable

PLAIN_ERRORS = (httpx.NetworkError, httpx.TimeoutException, httpx.RemoteProtocolError)
"""Those whose words are about the connection; others repeat a header, a proxy or a URL."""


class NoConnection(Unreachable):
    """Nobody took the connection, so nothing was executed: the receiver does not run, or the URL is another's."""


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
        NoConnection: nobody is there.
        Unreachable: nobody knows whether it was executed.
        Rejected: this is no URL to call.
    """
    asked = f"{method} {shown(url)}"
    with _telling(asked):
        response = httpx.request(method, url, json=body, headers=headers, timeout=timeout_s, verify=_trusted())
    _check_answered(asked, response)
    try:
        return Answer(response.status_code, response.json())
    except ValueError as error:
        raise Unreachable(f"{asked} answered {response.status_code} with a body that is no JSON") from error


def send(url: str, content: bytes, *, called: str, timeout_s: float, headers: Mapping[str, str]) -> int:
    """
    Post *content* and return the answer's status; what else it says is not read.

    Errors as `call`, of a place that is *called* so: nothing of the URL is in them, whose path may be a secret too.
    """
    asked = f"POST to {called}"
    with (
        _telling(asked),
        httpx.stream("POST", url, content=content, headers=headers, timeout=timeout_s, verify=_trusted()) as response,
    ):
        _check_answered(asked, response)
        return response.status_code


@contextmanager
def _telling(asked: str) -> Iterator[None]:
    """Turn the client's errors into ours."""
    try:
        yield
    except httpx.InvalidURL:
        raise Rejected(f"{asked} was not sent: not a URL that can be called") from None
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise NoConnection(f"{asked} got no answer: {type(error).__name__}: {error}") from error
    except PLAIN_ERRORS as error:
        raise Unreachable(f"{asked} got no answer: {type(error).__name__}: {error}") from error
    except httpx.RequestError as error:
        raise Unreachable(f"{asked} got no answer: {type(error).__name__}") from None


def _check_answered(asked: str, response: httpx.Response) -> None:
    """Refuse an answer that leaves open whether the call was executed."""
    if response.status_code >= 500 or response.status_code in {408, 429}:
        raise Unreachable(f"{asked} answered {response.status_code}")


def shown(url: str) -> str:
    """Return *url* for people: without user, password, query and fragment, also where those were not percent-encoded."""
    scheme, _, rest = url.partition("://")
    place, *hidden = re.split(r"[?#]", rest, maxsplit=1)
    if any(
        "@" in part for part in hidden
    ):  # a password with a question mark, or a query with an at sign: nobody can tell
        return f"{scheme}://…"
    return f"{scheme}://{place.rpartition('@')[2]}"


@cache
def _trusted() -> ssl.SSLContext:
    """Return the certificates we trust, read once: reading them takes longer than a call on this host."""
    return httpx.create_ssl_context()
