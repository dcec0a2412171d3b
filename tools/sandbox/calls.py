"""
Calls and answers as the sandbox sees them, and the log of every call it got.

    running ─▶ answered | replayed | refused | failed | rate_limited | dropped
       └─▶ held ─┘

A call is logged when it arrives, so one that never ends (the sandbox was killed) is in the log too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from starlette.requests import Request

from tools.sandbox.ids import new_id
from tools.sandbox.store import SandboxStore, now_ms

Outcome: TypeAlias = Literal["running", "held", "answered", "replayed", "refused", "failed", "rate_limited", "dropped"]
"""How a call ended; `refused` is a 4xx of the service, `failed` an injected 500."""


@dataclass(frozen=True, slots=True)
class Call:
    """
    One request.

    Attributes:
        headers: With lower-case names.
        key: The idempotency key; `None` without one, and for what the service takes no keys for.
        query: The query string's last value of each name.
    """

    request_id: str
    method: str
    path: str
    headers: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes
    key: str | None

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Answer:
    """
    What goes back.

    Attributes:
        executed: The world is another one now.
    """

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    executed: bool = False


class Refusal(Exception):
    """The service answers this before it begins to execute; it is never stored under a key."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


def json_answer(
    status: int, value: object, *, executed: bool = False, headers: Mapping[str, str] | None = None
) -> Answer:
    """Return *value* as an answer in JSON."""
    return Answer(status, json.dumps(value, indent=2, ensure_ascii=False).encode(), headers or {}, executed)


async def received(request: Request, *, takes_keys: bool) -> Call:
    """Read the whole of *request*."""
    key = request.headers.get("idempotency-key") if takes_keys and request.method == "POST" else None
    return Call(
        request_id=new_id("req_", 14),
        method=request.method,
        path=request.url.path,
        headers=dict(request.headers),
        query=dict(request.query_params),
        body=await request.body(),
        key=key or None,
    )


class CallLog:
    """Every call in the order of arrival."""

    def __init__(self, store: SandboxStore) -> None:
        self._store = store

    BEGIN = """
        insert into calls (at_ms, request_id, method, path, key, outcome, executed)
        values (:at_ms, :request_id, :method, :path, :key, 'running', 0)
    """

    def begin(self, call: Call) -> None:
        """Log the arrival of *call*."""
        self._store.rows(
            self.BEGIN,
            at_ms=now_ms(),
            request_id=call.request_id,
            method=call.method,
            path=call.path,
            key=call.key,
        )

    OUTCOME = """
        update calls set outcome = :outcome, status = coalesce(:status, status), executed = max(executed, :executed)
        where request_id = :request_id
    """

    def note(self, call: Call, outcome: Outcome, *, status: int | None = None, executed: bool = False) -> None:
        """Log how far *call* is; what was executed stays so."""
        self._store.rows(
            self.OUTCOME,
            request_id=call.request_id,
            outcome=outcome,
            status=status,
            executed=int(executed),
        )

    ALL = "select at_ms, request_id, method, path, key, outcome, status, executed from calls order by number"

    def all(self) -> list[dict[str, Any]]:
        """Return all calls, first come first."""
        return [{**dict(row), "executed": bool(row["executed"])} for row in self._store.rows(self.ALL)]
