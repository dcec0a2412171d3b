"""
From a call's arrival to its answer, the same for every service: faults, keys, execution, log.

    arrival ──▶ may this caller? ──▶ key: stored? running? ──▶ valid? ──▶ execute + store + log ──▶ answer
       │                               │                         │          one transaction           │
    drop_before, rate_limit     forget_key, old_answer    hold_before, error_500(_after)      drop_after, hold_after

Between the look at a key and `running` nothing is awaited, so of two calls with one key exactly one executes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tools.sandbox.calls import Answer, Call, CallLog, Outcome, Refusal, received
from tools.sandbox.faults import At, Faults, Kind
from tools.sandbox.gate import Gate
from tools.sandbox.keys import Keys, StoredAnswer
from tools.sandbox.store import SandboxStore

Execution: TypeAlias = Callable[[], Answer]
"""A valid request, ready to be executed inside a transaction. It may answer a business no, which is stored."""

Preparation: TypeAlias = Callable[[Call], Execution]
"""Checks a request: returns its execution, or raises `Refusal`."""


class Service(Protocol):
    """What differs between the services the sandbox stands in for."""

    at: At
    takes_keys: bool
    stores_errors: bool

    def admit(self, call: Call) -> None:
        """Raise `Refusal` unless the caller is known and the key is one."""
        ...

    def fingerprint(self, call: Call) -> str:
        """Return what makes two requests under one key the same."""
        ...

    def mismatch(self, call: Call) -> Answer:
        """The key is stored with another request."""
        ...

    def in_use(self, call: Call) -> Answer:
        """The key is being executed."""
        ...

    def failed(self, call: Call) -> Answer:
        """The service broke."""
        ...

    def rate_limited(self, call: Call) -> Answer:
        """Too many calls."""
        ...

    def headers(self, call: Call, replayed: StoredAnswer | None) -> dict[str, str]:
        """Return what every answer carries."""
        ...


class Dropped(Response):
    """The connection is closed and nothing is answered."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Close the socket, and wait until the server has noticed: it would take a silent return for a fault of ours."""
        del send
        scope["state"]["transport"].abort()
        while (await receive())["type"] != "http.disconnect":
            pass


class ConnectionDropped(Exception):
    """The call gets no answer: a fault says so, or the sandbox ends while the call is held."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """The parts of one sandbox that every call passes."""

    store: SandboxStore
    keys: Keys
    faults: Faults
    log: CallLog
    gate: Gate

    def endpoint(self, service: Service, prepare: Preparation) -> Callable[[Request], Awaitable[Response]]:
        """Return the endpoint of a route."""

        async def endpoint(request: Request) -> Response:
            return await self.answer(request, service, prepare)

        return endpoint

    async def answer(self, request: Request, service: Service, prepare: Preparation) -> Response:
        """Take *request* the whole way."""
        call = await received(request, takes_keys=service.takes_keys)
        self.log.begin(call)
        try:
            return await self._answered(call, service, prepare)
        except ConnectionDropped:
            self.log.note(call, "dropped")
            return Dropped()

    async def _answered(self, call: Call, service: Service, prepare: Preparation) -> Response:
        self._drop_if(service, "drop_before", call)
        replayed, answer, outcome = await self._executed(service, call, prepare)
        await self._hold(service, "hold_after", call)
        self._drop_if(service, "drop_after", call)
        self.log.note(call, outcome, status=answer.status)
        headers = {**service.headers(call, replayed), **answer.headers}
        return Response(answer.body, answer.status, headers, media_type="application/json")

    async def _executed(
        self, service: Service, call: Call, prepare: Preparation
    ) -> tuple[StoredAnswer | None, Answer, Outcome]:
        """Return what was stored under the key if it was, the answer, and what it counts as."""
        if self._hit(service, "rate_limit", call):
            return None, service.rate_limited(call), "rate_limited"
        if call.key and self._hit(service, "forget_key", call):
            self.keys.forget(service.at, call.key)
        try:
            service.admit(call)
            if stored := self._recalled(service, call):
                return stored, Answer(stored.status, stored.body), "replayed"
            with self.keys.running(service.at, call):
                answer, outcome = await self._execute(service, call, prepare(call))
        except Refusal as refusal:
            return None, refusal.answer, "refused"
        return None, answer, outcome

    def _recalled(self, service: Service, call: Call) -> StoredAnswer | None:
        if call.key is None:
            return None
        if self.keys.is_running(service.at, call.key):
            raise Refusal(service.in_use(call))
        stored = self.keys.recall(service.at, call.key)
        if stored and stored.fingerprint != service.fingerprint(call) and not self._hit(service, "old_answer", call):
            raise Refusal(service.mismatch(call))
        return stored

    async def _execute(self, service: Service, call: Call, execution: Execution) -> tuple[Answer, Outcome]:
        await self._hold(service, "hold_before", call)
        broken_before = self._hit(service, "error_500", call)
        broken_after = not broken_before and self._hit(service, "error_500_after", call)
        with self.store.transaction():
            made = service.failed(call) if broken_before else execution()
            answer = service.failed(call) if broken_after else made
            # A service that does not store errors stores what was made: the caller who comes again is told the truth.
            stored = answer if service.stores_errors else made
            if service.stores_errors or stored.status < 400:
                self.keys.remember(service.at, call, service.fingerprint(call), stored)
            outcome = _outcome(answer, broken=broken_before or broken_after)
            self.log.note(call, outcome, status=answer.status, executed=made.executed)
        return answer, outcome

    async def _hold(self, service: Service, kind: Kind, call: Call) -> None:
        if not (fault := self.faults.take(service.at, kind, call)):
            return
        self.log.note(call, "held")
        if not await self.gate.hold(fault.seconds):
            raise ConnectionDropped
        self.log.note(call, "running")

    def _drop_if(self, service: Service, kind: Kind, call: Call) -> None:
        if self._hit(service, kind, call):
            raise ConnectionDropped

    def _hit(self, service: Service, kind: Kind, call: Call) -> bool:
        return self.faults.take(service.at, kind, call) is not None


def _outcome(answer: Answer, *, broken: bool) -> Outcome:
    if broken:
        return "failed"
    return "answered" if answer.status < 400 else "refused"
