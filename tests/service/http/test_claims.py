"""Claims over HTTP, with their documents: checked whole before anything is filed, and safe to send again."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from checkpointing import Journal
from service.http.app import make_app
from service.settings import load_settings
from service.wiring import claims, doors_of
from tests.service.conftest import Filed
from tests.support.desk import V1, Desk
from tests.support.served import claim_body
from tools.sandbox import SandboxControl, SandboxProcess


@pytest.fixture
def desk(journal: Journal, url: str, sandbox: SandboxProcess, tmp_path: Path) -> Desk:
    """A desk with the claims graph, and a claims system that answers."""
    settings = load_settings(url).model_copy(update={"claims_url": sandbox.url})
    app = claims(settings, journal)
    return Desk(app, make_app(app, doors_of(settings, journal)))


def post(desk: Desk, body: Any, key: str = "k-1", by: str = "intake") -> Any:
    content, headers = json.dumps(body), {"content-type": "application/json", "idempotency-key": key}
    return desk.client(by, "submitter").post(f"{V1}/claims", content=content, headers=headers)


def test_a_claim_is_filed_with_its_documents_and_its_run_is_ready(
    desk: Desk, filed: Callable[..., Filed], control: SandboxControl
) -> None:
    claim = filed()
    body = claim_body(claim.path)

    answer = post(desk, body)

    assert (answer.status_code, answer.json()["thread_id"], answer.json()["state"]) == (
        202,
        claim.thread_id,
        "admitted",
    )
    assert desk.app.outside.claims.claim(claim.claim_id).id == claim.claim_id
    kind, given = desk.journal.runs.input_of(claim.thread_id)
    documents = desk.journal.saver.serde.loads_typed((kind, given))["documents"]
    stored = {one["name"]: desk.journal.artefacts.get(one["sha256"]) for one in documents}
    paths = {one["name"]: one["path"] for one in body["claim"]["documents"]}
    assert stored == {name: base64.b64decode(body["contents"][path]) for name, path in paths.items()}


def test_a_claim_again_under_another_key_is_the_same_run_however_far_it_is(
    desk: Desk, filed: Callable[..., Filed], control: SandboxControl
) -> None:
    claim = filed()
    post(desk, claim_body(claim.path))
    desk.advance(claim.thread_id)

    again = post(desk, claim_body(claim.path), "k-2")

    assert (again.status_code, again.json()["state"]) == (202, "parked")


def test_a_claim_with_other_content_for_the_same_thread_is_refused(
    desk: Desk, filed: Callable[..., Filed], control: SandboxControl
) -> None:
    body = claim_body(filed().path)
    post(desk, body)
    other = copy.deepcopy(body)
    other["claim"]["description"] = "Something else."

    answer = post(desk, other, "k-2")

    assert (answer.status_code, answer.json()["type"].rpartition("/")[2]) == (409, "already-submitted")


def test_a_claim_that_somebody_else_submitted_is_not_shown(
    desk: Desk, filed: Callable[..., Filed], control: SandboxControl
) -> None:
    body = claim_body(filed().path)
    post(desk, body)

    answer = post(desk, body, by="ada")

    assert (answer.status_code, answer.json()["type"].rpartition("/")[2]) == (409, "thread-taken")


def changed(at: str, value: Any) -> Callable[[dict[str, Any]], None]:
    *way, last = at.split(".")

    def change(body: dict[str, Any]) -> None:
        for step in way:
            body = body[step]
        body[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (changed("claim.currency", "XXX"), "currency"),
        (changed("claim.date_of_loss", "yesterday"), "date_of_loss"),
        (changed("claim.principal", "root"), "principal"),
        (changed("claim.claimant.name", "a\nb"), "name"),
        (changed("claim.description", "a\0b"), "claim"),
        (changed("claim.description", "\ud800"), "claim"),
        (changed("claim.policy_number", "other"), "policy_number"),
        (changed("claim.estimate", []), "estimate"),
        (changed("contents", {}), "contents"),
        (changed("contents.of/another", "AA=="), "contents"),
        (changed("policy.limit", 10**40), "limit"),
        (changed("policy.limit", 1.5), "limit"),
        (changed("claim", None), "claim"),
        (changed("submitted_by", "root"), "submitted_by"),
    ],
)
def test_a_claim_that_is_none_is_refused_by_its_field_and_nothing_is_filed(
    desk: Desk, filed: Callable[..., Filed], control: SandboxControl, change: Callable[..., None], said: str
) -> None:
    claim = filed()
    body = claim_body(claim.path)
    change(body)

    answer = post(desk, body)

    assert answer.status_code == 422
    assert said in answer.text
    assert desk.journal.runs.find(claim.thread_id) is None


@pytest.mark.parametrize("content", ["?", "A", "é", "AA==\n", "AA=A"])
def test_a_document_that_is_not_base64_is_refused(
    desk: Desk, filed: Callable[..., Filed], control: SandboxControl, content: str
) -> None:
    body = claim_body(filed().path)
    body["contents"] = dict.fromkeys(body["contents"], content)

    assert post(desk, body).status_code == 422


def test_a_claims_system_that_does_not_answer_keeps_no_key(
    desk: Desk, filed: Callable[..., Filed], control: SandboxControl
) -> None:
    claim = filed()
    away = desk.app.outside.claims
    object.__setattr__(desk.app.outside, "claims", type(away)("http://127.0.0.1:9", 1))
    refused = post(desk, claim_body(claim.path))
    object.__setattr__(desk.app.outside, "claims", away)

    assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
    assert post(desk, claim_body(claim.path)).status_code == 202
