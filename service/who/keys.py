"""
The keys an identity provider publishes (RFC 7517), fetched when they are needed and kept for a while.

    known and young ─▶ used      known and older than `REFRESHED_AFTER` ─▶ fetched anew; if nobody answers, used until `DROPPED_AFTER`
    unknown ─▶ fetched anew: the provider may have rotated its keys
    fetched less than `APART` ago, with or without an answer ─▶ not fetched again

So a key that was withdrawn counts for an hour at most, a new one is found within half a minute, and whoever sends tokens with made-up key ids
does not make us ask the provider for each of them. One thread fetches; the others wait for it only if they have no key to go by.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import PyJWK, PyJWTError

from checkpointing.errors import ToolError
from service.who.refusals import KeysUnreachable
from tools.wire import call

ALGORITHMS = ("RS256", "ES256")
"""How a provider may sign. None of them takes a key that is public for a secret, and `none` is none of them."""
APART = timedelta(seconds=30)
REFRESHED_AFTER = timedelta(minutes=10)
DROPPED_AFTER = timedelta(hours=1)
TIMEOUT_S = 5
SMALLEST_RSA_BITS = 2048

Keys = Mapping[tuple[str, str], PyJWK]
"""By key id and algorithm."""


class PublishedKeys:
    """The keys at one URL, for every thread of a process."""

    def __init__(self, url: str, *, seconds: Callable[[], float] = time.monotonic) -> None:
        """Fetch nothing yet; *seconds* tells how time passes."""
        self.url = url
        self._seconds = seconds
        self._fetching = threading.Lock()
        self._keys: Keys = {}
        self._fetched_s = -DROPPED_AFTER.total_seconds()
        self._tried_s = -DROPPED_AFTER.total_seconds()
        self._answered = False

    def find(self, key_id: str, algorithm: str) -> PyJWK | None:
        """
        Return the key that signs by *algorithm* under *key_id*; `None` if the provider publishes none.

        Raises:
            KeysUnreachable: it cannot be asked, and what it said before is too old or has no such key.
        """
        wanted = (key_id, algorithm)
        usable = wanted in self._keys and self._age_s() <= DROPPED_AFTER.total_seconds()
        if not usable or self._age_s() > REFRESHED_AFTER.total_seconds():
            self._fetch_if_due(wait=not usable)
        known = wanted in self._keys
        if self._age_s() > DROPPED_AFTER.total_seconds() or not (known or self._answered):
            raise KeysUnreachable("the identity provider's keys cannot be read just now; see COUNTERFOIL_OIDC_JWKS_URL")
        return self._keys.get(wanted)

    def _age_s(self) -> float:
        return self._seconds() - self._fetched_s

    def _fetch_if_due(self, *, wait: bool) -> None:
        if not self._fetching.acquire(blocking=wait):
            return
        try:
            if self._seconds() - self._tried_s >= APART.total_seconds():
                self._tried_s = self._seconds()
                self._answered = self._fetch()
        finally:
            self._fetching.release()

    def _fetch(self) -> bool:
        """Fetch the keys, and tell whether there were any."""
        try:
            answer = call("GET", self.url, timeout_s=TIMEOUT_S)
        except ToolError:
            return False
        found = dict(_usable(answer.body)) if answer.status == 200 else {}
        if found:
            self._keys, self._fetched_s = found, self._seconds()
        return bool(found)


def _usable(published: Any) -> Iterator[tuple[tuple[str, str], PyJWK]]:
    """Yield the keys that sign by one of our algorithms; a provider publishes others too."""
    keys = published.get("keys") if isinstance(published, dict) else None
    for one in keys if isinstance(keys, list) else ():
        if not isinstance(one, dict) or one.get("kty") not in ("RSA", "EC") or one.get("use", "sig") != "sig":
            continue
        try:
            key = PyJWK(one)
        except (PyJWTError, ValueError, TypeError):
            continue
        weak = isinstance(key.key, RSAPublicKey) and key.key.key_size < SMALLEST_RSA_BITS
        if isinstance(key.key_id, str) and key.algorithm_name in ALGORITHMS and not weak:
            yield (key.key_id, key.algorithm_name), key
