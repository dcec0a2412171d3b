"""
Problems: what a client is told when a request is not done as asked, as RFC 9457 has it.

Every error of ours has one place in `KINDS`, and with it a status and a type that does not change. The error's own words come with it where the
client can act on them; where the fault is here, neither its words nor anything of the request is repeated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from checkpointing import errors
from checkpointing.errors import AlreadyDecided, CounterfoilError, KeyBusy, KeyReused
from service import submission
from service.http.asks import (
    SHOWN,
    AskedAnew,
    CursorInvalid,
    HeaderInvalid,
    NotThere,
    QueryUnknown,
    RightsMissing,
    ThreadTaken,
)
from service.who.refusals import NotAuthenticated, TooManyLogins
from tools.claim_models import ClaimFileInvalid

MEDIA_TYPE = "application/problem+json"
TYPES = "https://counterfoil.example/problems/"
"""How the types begin; they are names, and nothing is to be fetched there (`docs/api.md` lists them)."""
AGAIN_S = 2
"""After how many seconds a client asks again, where that helps."""


@dataclass(frozen=True, slots=True)
class Kind:
    """
    What errors of one class are told as.

    Attributes:
        name: The end of the type's URI.
        title: The same for every problem of this kind.
        detail: Told instead of the error's own words, where those are nobody's business.
    """

    status: int
    name: str
    title: str
    detail: str | None = None


AWAY = Kind(
    503,
    "journal-away",
    "The journal does not answer",
    "Nothing is certain of what the request was to change; ask again.",
)
FAULT = Kind(500, "fault", "A fault of this server", "It is in the server's log under the request's id.")
INVALID = Kind(422, "request-invalid", "The request does not have the form that is wanted")
INVALID_HEADER = Kind(400, "header-invalid", "A header is missing or malformed")
KINDS: tuple[tuple[type[Exception], Kind], ...] = (
    (NotAuthenticated, Kind(401, "not-authenticated", "Nobody is let in by this")),
    (TooManyLogins, Kind(429, "too-many-logins", "Too many failed logins")),
    (RightsMissing, Kind(403, "role-missing", "Your roles do not allow that")),
    (errors.NotAllowed, Kind(403, "not-allowed", "You may not do that")),
    (NotThere, Kind(404, "not-found", "There is no such thing")),
    (errors.UnknownThread, Kind(404, "unknown-run", "There is no such run")),
    (errors.UnknownApproval, Kind(404, "unknown-approval", "There is no such approval")),
    (errors.UnknownEffect, Kind(404, "unknown-effect", "There is no such effect")),
    (errors.UnknownToken, Kind(404, "unknown-token", "There is no such token")),
    (errors.UnknownArtefact, Kind(404, "unknown-artefact", "There is no such document")),
    (CursorInvalid, Kind(400, "cursor-invalid", "This is no cursor of this list")),
    (QueryUnknown, Kind(422, "query-unknown", "A query parameter is not known")),
    (HeaderInvalid, INVALID_HEADER),
    (KeyReused, Kind(422, "key-reused", "The idempotency key was used for another request")),
    (KeyBusy, Kind(409, "key-busy", "The request under this idempotency key is still being answered")),
    (AlreadyDecided, Kind(409, "already-decided", "Somebody was faster")),
    (errors.ApprovalExpired, Kind(409, "approval-expired", "The time to decide is over")),
    (errors.PayloadChanged, Kind(409, "payload-changed", "What was to be approved has changed")),
    (errors.DecisionInvalid, Kind(422, "decision-invalid", "This decision cannot be taken")),
    (errors.InputChanged, Kind(409, "input-changed", "The thread was submitted with other input")),
    (ThreadTaken, Kind(409, "thread-taken", "The thread is somebody else's")),
    (submission.AlreadySubmitted, Kind(409, "already-submitted", "The claim was submitted with other content")),
    (submission.ClaimTaken, Kind(409, "claim-taken", "The claim is filed for another thread, or with other content")),
    (errors.InputRefused, Kind(422, "input-refused", "That is not taken here")),
    (ClaimFileInvalid, Kind(422, "claim-invalid", "This is no claim that can be submitted")),
    (submission.ClaimNotTaken, Kind(422, "claim-refused", "The claims system does not take the claim")),
    (errors.ArgumentsNotJson, Kind(422, "not-json", "Something in the request is not JSON")),
    (errors.AlreadySettled, Kind(409, "already-settled", "The effect has its outcome")),
    (errors.ReissueRefused, Kind(409, "reissue-refused", "The effect is not to be tried again")),
    (errors.RunDiscarded, Kind(409, "run-discarded", "The dead letter was given up")),
    (errors.RunDead, Kind(409, "run-dead", "The run is a dead letter")),
    (errors.GraphChanged, Kind(409, "graph-changed", "This server's graph cannot do that for the run")),
    (
        errors.EffectInDoubt,
        Kind(409, "effect-in-doubt", "The run waits for somebody to say what happened to an effect"),
    ),
    (errors.StoreUnreachable, AWAY),
    (errors.JournalUnusable, AWAY),
    (
        submission.DocumentNotStored,
        Kind(503, "documents-away", "Documents cannot be stored", "Submit the claim again."),
    ),
    (errors.RunBusy, Kind(503, "run-busy", "Another call holds the run")),
    (errors.EffectBusy, Kind(503, "effect-busy", "The effect is being executed")),
    (errors.TryAgain, Kind(503, "try-again", "Not now")),
    (errors.Stop, Kind(503, "try-again", "Not now", "Somebody else carries the run on; ask again.")),
    (
        errors.Unreachable,
        Kind(503, "claims-system-away", "The claims system does not answer", "Submit the claim again."),
    ),
    (errors.KeyInUse, Kind(503, "claims-system-away", "The claims system does not answer", "Submit the claim again.")),
    (errors.ToolError, Kind(502, "claims-system-refused", "The claims system refused", "The server's log has more.")),
)
"""The first that fits counts; whatever fits none is a fault of this server."""


class Problem(BaseModel):
    """A request that was not done as asked (RFC 9457); further members depend on the type."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(
        description="Which kind of problem it is: a URI that does not change.", examples=[TYPES + "already-decided"]
    )
    title: str = Field(description="The kind in words.")
    status: int = Field(description="The HTTP status.")
    detail: str | None = Field(default=None, description="What is the matter this time, and what to do next.")


@dataclass(frozen=True, slots=True)
class Told:
    """
    A problem as it is sent.

    Attributes:
        more: Members beside those that every problem has.
        headers: Headers that go with it.
    """

    kind: Kind
    detail: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def body(self) -> str:
        """The problem's JSON."""
        members = {"type": TYPES + self.kind.name, "title": self.kind.title, "status": self.kind.status}
        said = {} if self.detail is None else {"detail": self.detail}
        return json.dumps({**members, **said, **jsonable_encoder(dict(self.more))})

    def response(self) -> Response:
        """Return what is sent."""
        again = {"retry-after": str(AGAIN_S)} if self.kind.status == 503 or self.kind.name == "key-busy" else {}
        return Response(self.body, self.kind.status, {**again, **self.headers}, MEDIA_TYPE)


def problem_of(error: CounterfoilError) -> Told:
    """Return what a client is told of *error*."""
    kind = next((kind for of, kind in KINDS if isinstance(error, of)), FAULT)
    detail = kind.detail or storable_words(error)
    return Told(kind, detail, _more(error), _headers(error))


def problem_of_status(status: int, detail: object = None, headers: Mapping[str, str] | None = None) -> Told:
    """Return what a client is told of a *status* that HTTP itself has a name for."""
    phrase = HTTPStatus(status).phrase
    kind = Kind(status, phrase.lower().replace(" ", "-"), phrase)
    return Told(kind, detail if isinstance(detail, str) and detail != phrase else None, headers=headers or {})


def problem_of_fields(error: RequestValidationError) -> Told:
    """Return what a client is told whose request does not have the form that is wanted: which field, and what is wanted of it; no value of theirs."""
    found = [
        {"at": [part if isinstance(part, int) else str(part)[:SHOWN] for part in one["loc"]], "wanted": one["msg"]}
        for one in error.errors()
    ]
    kind = INVALID_HEADER if any(one["at"][0] == "header" for one in found) else INVALID
    first = f"{'.'.join(map(str, found[0]['at']))}: {found[0]['wanted']}" if found else None
    return Told(kind, first, {"errors": found})


def storable_words(error: Exception) -> str:
    """Return the error's words as JSON can hold them."""
    return str(error).encode("utf-8", "backslashreplace").decode() or type(error).__name__


def _more(error: CounterfoilError) -> dict[str, Any]:
    """Return what a program can act on, beside the words."""
    match error:
        case AlreadyDecided():
            return {"decision": error.decision, "decided_by": error.decided_by}
        case AskedAnew():
            return {"approval": error.approval}
        case errors.EffectInDoubt():
            return {"effect": error.key}
        case _:
            return {}


def _headers(error: CounterfoilError) -> dict[str, str]:
    match error:
        case NotAuthenticated():
            return {"www-authenticate": "Bearer"}
        case TooManyLogins():
            return {"retry-after": str(error.wait_s)}
        case _:
            return {}
