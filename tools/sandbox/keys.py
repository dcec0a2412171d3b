"""
Idempotency keys: one execution a key, and the first answer to everybody who repeats it.

    unknown ─▶ running ─▶ stored ─▶ unknown
                  └──────────────────▲  forgotten, or older than its life

`running` lives in memory: what was running when the sandbox died did not happen, because the answer is stored in the very
transaction that executes. A service's keys are its own: the same text at two services is two keys.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from tools.sandbox.calls import Answer, Call
from tools.sandbox.store import SandboxStore, now_ms

LIFE = timedelta(hours=24)
"""Stripe's and Resend's; both promise no more."""


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """The first answer under a key, with the fingerprint of the request it answered and that request's id."""

    fingerprint: str
    status: int
    body: bytes
    request_id: str


@dataclass(slots=True)
class Keys:
    """The keys of all services of one sandbox."""

    store: SandboxStore
    _running: set[tuple[str, str]] = field(default_factory=set)

    @contextmanager
    def running(self, service: str, call: Call) -> Iterator[None]:
        """Hold the call's key while it is executed; see `is_running` first."""
        held = (service, call.key or call.request_id)
        self._running.add(held)
        try:
            yield
        finally:
            self._running.discard(held)

    def is_running(self, service: str, key: str) -> bool:
        """Whether a call with *key* is being executed."""
        return (service, key) in self._running

    RECALL = """
        select fingerprint, status, body, request_id from keys
        where service = :service and key = :key and created_ms > :oldest_ms
    """

    def recall(self, service: str, key: str) -> StoredAnswer | None:
        """Return what is stored under *key*, `None` if nothing is or its life is over."""
        row = self.store.row(self.RECALL, service=service, key=key, oldest_ms=_oldest_ms())
        return _stored(row) if row else None

    REMEMBER = """
        insert or replace into keys (service, key, fingerprint, status, body, request_id, created_ms)
        values (:service, :key, :fingerprint, :status, :body, :request_id, :now_ms)
    """

    def remember(self, service: str, call: Call, fingerprint: str, answer: Answer) -> None:
        """Store *answer* under the call's key, if it has one; in the transaction that executes the call."""
        if call.key is None:
            return
        self.store.rows(
            self.REMEMBER,
            service=service,
            key=call.key,
            fingerprint=fingerprint,
            status=answer.status,
            body=answer.body,
            request_id=call.request_id,
            now_ms=now_ms(),
        )

    FORGET = "delete from keys where service = :service and key = :key"

    def forget(self, service: str, key: str) -> None:
        """Forget *key*: the next call with it executes again."""
        self.store.rows(self.FORGET, service=service, key=key)


def _oldest_ms() -> int:
    return now_ms() - int(LIFE.total_seconds() * 1000)


def _stored(row: sqlite3.Row) -> StoredAnswer:
    return StoredAnswer(row["fingerprint"], row["status"], row["body"], row["request_id"])
