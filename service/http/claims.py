"""
Submitting over HTTP: a claim with its documents, or any input of the graph. The run is a worker's; the answer comes as soon as it is admitted.

    checked whole ── filed at the claims system ── documents stored ── run admitted ── answered
                             │                            │                  │
    a crash after it:        the same request again completes it, under its key or another
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import quote

from fastapi import APIRouter
from pydantic import BeforeValidator, Field, ValidationError, model_validator
from starlette.responses import Response

from checkpointing import Run
from checkpointing.artefacts import Artefact
from checkpointing.errors import InputRefused, RunDead
from checkpointing.fitting import fault_in
from graph import thread
from service.http.answers import Once, Reply, UnderKey
from service.http.asks import SHOWN, Body, Json, Name, ThreadId, ThreadTaken, pure_json
from service.http.callers import Caller, Within
from service.http.shown import RunShown
from service.submission import AlreadySubmitted, Submission, accept, is_unfinished
from service.who import Visitor
from service.wiring import App
from tools.claim_file import ClaimFile
from tools.claim_models import Claim, ClaimFileInvalid, Document, Filing, Policy, Record

router = APIRouter(tags=["submissions"])
NOWHERE = Path()
VALUE_ERROR = "Value error, "
NOTICE = "notice:"
"""How the threads of notices begin (`service/notices/routes.py`). Their ids can be foreseen, and whoever had one taken would keep it from being told."""


def _strictly(model: type[Record]) -> BeforeValidator:
    """Read a record as a claim file's is read: from JSON, which alone may turn text into a date."""

    def read(value: object) -> Record:
        try:
            return model.model_validate_json(json.dumps(pure_json(value)))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            at = ".".join(str(part)[:SHOWN] for part in first["loc"])
            raise ValueError(f"{at}: {first['msg'].removeprefix(VALUE_ERROR)}" if at else first["msg"]) from None

    return BeforeValidator(read)


class ClaimBody(Body):
    """A claim file's content, with its documents."""

    claim: Annotated[Claim, _strictly(Claim)]
    policy: Annotated[Policy, _strictly(Policy)]
    contents: dict[str, str] = Field(
        default_factory=dict,
        description="Each document's content in base64, by the `path` that `claim.documents` gives it.",
        max_length=100,
    )
    thread_id: Name | None = Field(
        default=None, description="The thread that takes the claim; by default `claim-` and its id."
    )

    @model_validator(mode="after")
    def _hangs_together(self) -> Self:
        try:
            Filing(claim=self.claim, policy=self.policy)
        except ValidationError as error:
            raise ValueError(error.errors(include_url=False)[0]["msg"].removeprefix(VALUE_ERROR)) from None
        if self.contents.keys() != (paths := {document.path for document in self.claim.documents}):
            odd = min(self.contents.keys() ^ paths)[:SHOWN]
            raise ValueError(
                f"contents and claim.documents name different documents: {odd!r} stands in one of them only"
            )
        return self


class InputBody(Body):
    """An input of the graph."""

    input: dict[str, Json] = Field(description="What the graph takes: for claims `claim_id` and `documents`.")


@router.post("/claims", status_code=202, response_model=RunShown)
def submit_claim(app: Within, visitor: Caller, once: UnderKey, body: ClaimBody) -> Response:
    """
    Submit a claim: it is checked whole, filed at the claims system, its documents are stored, and a worker runs it.

    Whoever submits a claim never approves it. The same claim again for the same thread is the same run.
    """
    return once.answer(body, lambda _again: accepted(_submit_claim(app, visitor, body)))


@router.post("/threads/{thread_id}/runs", status_code=202, response_model=RunShown)
def submit_input(app: Within, visitor: Caller, once: UnderKey, thread_id: ThreadId, body: InputBody) -> Response:
    """
    Submit an input of the graph for a thread, and leave the run to the workers.

    The same input again for the same thread is the same run; another input is refused, unless the graph takes turns: then the idempotency key is
    the name of the turn.
    """
    return once.answer(body, lambda _again: accepted(_submit_input(app, visitor, once, thread_id, body)))


def accepted(run: Run) -> Reply:
    """Say that a worker has the run now, and where it is to be seen."""
    return Reply(202, RunShown.model_validate(run), {"location": f"/api/v1/runs/{quote(run.thread_id, safe='')}"})


def _submit_claim(app: App, visitor: Visitor, body: ClaimBody) -> Run:
    thread_id = body.thread_id or f"claim-{body.claim.id}"
    submission = _read(body)
    _check_own(app, visitor, thread_id)
    try:
        if not is_unfinished(app, submission, thread_id):
            accept(app, submission, thread_id)
            app.graph.submit(submission.input, thread(thread_id, principal=visitor.person))
    except AlreadySubmitted as already:
        if already.differs:
            raise
    return _own(app.journal.runs.get(thread_id), visitor)


def _submit_input(app: App, visitor: Visitor, once: Once, thread_id: str, body: InputBody) -> Run:
    _check_own(app, visitor, thread_id)
    _check_input(app, body.input)
    with suppress(RunDead):  # submitted before, and it says so itself
        app.graph.submit(body.input, thread(thread_id, principal=visitor.person, submission=once.key))
    return _own(app.journal.runs.get(thread_id), visitor)


def _read(body: ClaimBody) -> Submission:
    """Take the documents out of the body; nothing is stored."""
    documents = tuple(_document(one, body.contents[one.path]) for one in body.claim.documents)
    return Submission(ClaimFile(claim=body.claim, policy=body.policy, folder=NOWHERE), documents)


def _document(document: Document, content: str) -> tuple[Artefact, bytes]:
    try:
        read = base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ClaimFileInvalid(f"contents: {document.path!r} is not base64") from error
    return Artefact(hashlib.sha256(read).hexdigest(), document.name, document.media_type, len(read)), read


def _check_input(app: App, given: dict[str, Any]) -> None:
    """Refuse what the graph could only die of."""
    schema = app.graph.compiled.get_input_jsonschema()
    fault = fault_in(schema, given)
    if fault is not None:
        raise InputRefused(
            f"the input does not fit at {fault.json_path}: it is to be {fault.validator} {fault.validator_value!r:.80}"
        )


def _check_own(app: App, visitor: Visitor, thread_id: str) -> None:
    if thread_id.startswith(NOTICE):
        raise InputRefused(f"threads called {NOTICE}… are those of notices; use another thread id")
    run = app.journal.runs.find(thread_id)
    if run is not None:
        _own(run, visitor)


def _own(run: Run, visitor: Visitor) -> Run:
    """Return the run, which has to be the visitor's; whose it is else, and how it stands, they are not told."""
    if run.submitted_by != visitor.name:
        raise ThreadTaken(f"thread {run.thread_id!r} is taken; use another thread id for another job")
    return run
