"""
Answers under an idempotency key: the same request again is answered the same, and carried out once.

    request ── key ── begun before? ──no──▶ carried out ──▶ its answer kept, success or refusal ──▶ sent
                          │
                          ├─ answered: the same answer, with `Idempotent-Replayed: true`
                          ├─ another request: 422
                          └─ being answered: 409, ask again

What a client is told to try again (503), and a fault of ours (500), is not kept: the key is free again. A request that is refused for its form or for
who asks (400, 401, 403 of the roles, 422 of a field) never gets as far as its key.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Header, Request
from pydantic import BaseModel
from starlette.responses import Response

from checkpointing.errors import CounterfoilError, StoreUnreachable
from checkpointing.idempotency import Answer, Begun
from service.http.asks import HeaderInvalid
from service.http.callers import Caller, Within
from service.http.problems import MEDIA_TYPE, problem_of
from service.who import Visitor
from service.wiring import App

REPLAYED = "idempotent-replayed"
KEY = r'^("([ !#-\[\]-~]|\\["\\]){1,255}"|[!#-\[\]-~]{1,255})$'
"""A quoted string of structured fields (RFC 9651), or the same without quotes, as many clients send it."""
SAID = "A name of your own for this request, as a quoted string or bare, at most 255 characters. The same again is answered the same."

Needed = Annotated[
    str,
    Header(
        alias="Idempotency-Key", pattern=KEY, max_length=600, description=SAID, examples=['"8e03978e-40d5-43e8-bc93"']
    ),
]
Welcome = Annotated[str | None, Header(alias="Idempotency-Key", pattern=KEY, max_length=600, description=SAID)]


@dataclass(frozen=True, slots=True)
class Reply:
    """
    An answer before it is sent.

    Attributes:
        headers: Headers that go with it, a repeated answer too.
    """

    status: int
    shown: BaseModel
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Once:
    """
    One request that is answered once.

    Attributes:
        key: Without quotes; `None` where none was given.
        asked: The method and path.
    """

    app: App
    visitor: Visitor
    key: str | None
    asked: str

    def answer(self, body: BaseModel, act: Callable[[bool], Reply]) -> Response:
        """
        Return the answer to this request, from the record or by calling *act*, which is told whether it may have been done before.

        Raises:
            KeyReused, KeyBusy: as `Idempotency.begin`.
            CounterfoilError: what *act* raised.
        """
        if self.key is None:
            return sent(act(False))
        keys = self.app.journal.idempotency
        begun = keys.begin(self.visitor.name, self.key, self._fingerprint(body))
        if isinstance(begun, Answer):
            return Response(begun.body, begun.status, {**begun.headers, REPLAYED: "true"}, _media_type(begun.status))
        try:
            reply = act(begun.again)
        except CounterfoilError as error:
            told = problem_of(error)
            if told.kind.status >= 500:
                self._forget(begun)
            else:
                keys.finish(begun, Answer(told.kind.status, told.body, dict(told.headers)))
            raise
        except BaseException:
            self._forget(begun)
            raise
        keys.finish(begun, Answer(reply.status, reply.shown.model_dump_json(), dict(reply.headers)))
        return sent(reply)

    def _fingerprint(self, body: BaseModel) -> str:
        return hashlib.sha256(f"{self.asked}\n{body.model_dump_json()}".encode()).hexdigest()

    def _forget(self, begun: Begun) -> None:
        with suppress(StoreUnreachable):  # whoever asks again takes it over
            self.app.journal.idempotency.forget(begun)


def sent(reply: Reply) -> Response:
    """Return the reply as a response."""
    return Response(reply.shown.model_dump_json(), reply.status, dict(reply.headers), "application/json")


def needed(request: Request, app: Within, visitor: Caller, key: Needed) -> Once:
    """Return the request under its key."""
    return _once(request, app, visitor, key)


def welcome(request: Request, app: Within, visitor: Caller, key: Welcome = None) -> Once:
    """Return the request under its key, where it has one."""
    return _once(request, app, visitor, key)


UnderKey = Annotated[Once, Depends(needed)]
MaybeUnderKey = Annotated[Once, Depends(welcome)]


def _once(request: Request, app: App, visitor: Visitor, key: str | None) -> Once:
    if len(request.headers.getlist("idempotency-key")) > 1:
        raise HeaderInvalid("Idempotency-Key stands there twice")
    if key is not None and key.startswith('"'):
        key = re.sub(r"\\(.)", r"\1", key[1:-1])
    return Once(app, visitor, key, f"{request.method} {request.scope['path']}")


def _media_type(status: int) -> str:
    return MEDIA_TYPE if status >= 400 else "application/json"
