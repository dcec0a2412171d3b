"""
Whatever is sent in a field, it is stored and shown as text, or refused; nothing of it is carried out, and no answer is a fault.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import anyio
import pytest
from fastapi.testclient import TestClient

from checkpointing.principals import Person
from service.who import ROLES, Visitor
from tests.support.desk import V1, Desk

TEXTS = (
    "'; drop table runs; --",
    "x' or '1'='1",
    "%'; select pg_sleep(9); --",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{7*7}}${7*7}",
    "a\r\nSet-Cookie: owned=1",
    "../../../../etc/passwd",
    "..\\..\\windows",
    "%2e%2e%2f",
    "a/b/c",
    "a\0b",
    "\ud800",
    "\u202egnp.exe",
    "\N{PILE OF POO}" * 100,
    ":now",
    "%(limit)s",
    "group:admins",
    "\x1f",
    "\x7f",
    "9" * 400,
    "null",
    " ",
)
KEYS = {"idempotency-key": "k-1"}


@pytest.fixture
def everybody(desk: Desk) -> TestClient:
    return desk.client("everybody", *ROLES)


def sound(answer: Any) -> Any:
    """Return the answer, which is no fault, sets nothing, and is what it says it is."""
    assert answer.status_code < 500, answer.text
    assert "set-cookie" not in answer.headers
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["status"] == answer.status_code
    assert answer.headers["x-content-type-options"] == "nosniff"
    return answer


def posted(client: TestClient, place: str, body: Any, headers: dict[str, str] | None = None) -> Any:
    """Post JSON as some client writes it: lone surrogates as escapes."""
    content = json.dumps(body)
    return sound(client.post(place, content=content, headers={"content-type": "application/json", **(headers or {})}))


def in_a_path(text: str) -> str:
    return quote(text.encode("utf-8", "surrogatepass"), safe="")


@pytest.mark.parametrize("text", TEXTS)
def test_in_a_path_it_is_a_name_that_nothing_has(desk: Desk, everybody: TestClient, text: str) -> None:
    for place in ("runs", "approvals", "effects", "dead-letters"):
        assert sound(everybody.get(f"{V1}/{place}/{in_a_path(text)}")).status_code in (404, 422)
    for place in ("timeline", "audit", "events"):
        assert sound(everybody.get(f"{V1}/runs/{in_a_path(text)}/{place}")).status_code in (404, 422)
    posted(everybody, f"{V1}/dead-letters/{in_a_path(text)}/discard", {"reason": "x"})


@pytest.mark.parametrize("text", TEXTS)
def test_in_a_query_it_finds_nothing(desk: Desk, everybody: TestClient, text: str) -> None:
    desk.submit("0042")
    shown = text.encode("utf-8", "replace").decode()
    for place, names in (
        ("runs", ("graph", "reason")),
        ("approvals", ("name", "thread_id")),
        ("effects", ("thread_id",)),
        ("dead-letters", ("reason",)),
    ):
        for name in names:
            answer = sound(everybody.get(f"{V1}/{place}", params={name: shown}))
            assert answer.status_code == 422 or answer.json()["items"] == []
        for name in ("cursor", "limit", "min_amount", "state"):
            assert sound(everybody.get(f"{V1}/{place}", params={name: shown})).status_code in (400, 422)


@pytest.mark.parametrize("text", TEXTS)
def test_a_thread_may_be_called_nearly_anything_and_keeps_its_name(
    desk: Desk, everybody: TestClient, text: str
) -> None:
    place = f"{V1}/threads/{in_a_path(text)}/runs"
    answer = posted(everybody, place, {"input": {"claim_id": "0042", "documents": []}}, KEYS)

    if answer.status_code == 202:
        there = sound(everybody.get(answer.headers["location"]))
        assert there.json()["thread_id"] == answer.json()["thread_id"] == text
        desk.advance(text)
        assert sound(everybody.get(f"{V1}/runs/{in_a_path(text)}/timeline")).json()["run"]["state"] == "parked"
        assert (
            sound(everybody.get(f"{V1}/approvals", params={"thread_id": text})).json()["items"][0]["thread_id"] == text
        )
    assert answer.status_code in (202, 404, 422)


def test_a_slash_in_a_name_is_part_of_it(desk: Desk, everybody: TestClient) -> None:
    place = f"{V1}/threads/a%2Faudit/runs"

    answer = posted(everybody, place, {"input": {"claim_id": "0042", "documents": []}}, KEYS)

    assert answer.status_code == 202
    assert answer.json()["thread_id"] == "a/audit"
    assert everybody.get(answer.headers["location"]).json()["thread_id"] == "a/audit"
    assert everybody.get(f"{V1}/runs/a/audit").status_code == 404


@pytest.mark.parametrize("text", TEXTS)
def test_in_a_claim_it_is_what_is_asked_and_decided_about(desk: Desk, everybody: TestClient, text: str) -> None:
    place = f"{V1}/threads/claim-0042/runs"
    answer = posted(everybody, place, {"input": {"claim_id": text, "documents": [{"name": text}]}}, KEYS)
    if answer.status_code == 422:
        assert text in ("\ud800", "a\0b")  # which cannot be stored
        return
    desk.advance("claim-0042")
    adjuster = desk.client("ada", "approver")
    [asked] = sound(adjuster.get(f"{V1}/approvals")).json()["items"]

    assert asked["payload"]["claim_id"] == text
    body = {"type": "edit", "payload": {**asked["payload"], "claim_id": text + text}, "reason": text}
    decided = posted(adjuster, f"{V1}/approvals/{asked['id']}/decision", body, KEYS)
    assert decided.json()["decision"] == body
    assert desk.advance("claim-0042").state == "done"
    [paid] = sound(everybody.get(f"{V1}/effects")).json()["items"]
    assert paid["arguments"]["claim_id"] == text + text
    assert list(desk.journal.audit.verify()) == []


@pytest.mark.parametrize("text", TEXTS)
def test_as_a_reason_it_is_kept_as_it_came_or_refused(desk: Desk, everybody: TestClient, text: str) -> None:
    asked = desk.asked("0042")
    place = f"{V1}/approvals/{asked.id}"
    for body, verb in (
        ({"hours": 1, "reason": text}, "extend"),
        ({"to": [text], "reason": "x"}, "reassign"),
        ({"to": ["somebody"], "reason": text}, "reassign"),
    ):
        assert posted(everybody, f"{place}/{verb}", body).status_code in (200, 422)
    other = desk.asked("0043")  # whoever chose who decides takes nothing back
    assert posted(everybody, f"{V1}/approvals/{other.id}/withdraw", {"reason": text}).status_code in (200, 422)
    entries = sound(everybody.get(f"{V1}/runs/claim-0042/audit")).json()["items"]
    reasons = {one["body"].get("reason") for one in entries if one["event"] == "approval.extend"}
    assert reasons <= {text}
    assert list(desk.journal.audit.verify()) == []


@pytest.mark.parametrize("text", TEXTS)
def test_as_a_key_or_a_token_it_opens_nothing(desk: Desk, everybody: TestClient, text: str) -> None:
    shown = text.encode("utf-8", "replace")
    if not any(character in text for character in "\r\n\0"):  # which no client can send in a header
        place = f"{V1}/threads/claim-0042/runs"
        body = {"input": {"claim_id": "0042", "documents": []}}
        sound(everybody.post(place, json=body, headers={b"idempotency-key": shown}))
        assert (
            sound(desk.anonymous().get(f"{V1}/me", headers={b"authorization": b"Bearer " + shown})).status_code == 401
        )
        sound(everybody.get(f"{V1}/runs", headers={b"last-event-id": shown, b"x-forwarded-for": shown, b"host": shown}))


BODIES = (
    b"",
    b"{",
    b"null",
    b"[]",
    b'"x"',
    b"1" * 5000,
    b"NaN",
    b'{"type": "approve", "payload_hash": NaN}',
    b'{"type": "edit", "payload": {"amount": 1e999}}',
    b'{"type": "edit", "payload": {"amount": ' + b"9" * 4000 + b"}}",
    b'{"type": "edit", "payload": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    b"[" * 200_000,
    b'{"type": "approve", "principal": "root"}',
    b'{"type": "approve", "decided_by": "root", "as": "root"}',
    b'{"type": "approve", "type": "reject", "x": 1}',
    b'{"type": {"$ne": null}}',
    b'{"type": "approve", "payload_hash": "' + b"0" * 63 + b'\xff"}',
    b"\xff\xfe{}",
    b'{"type": "edit", "payload": {"claim_id": "\\ud800", "amount": 5}}',
    b'{"type": "respond", "value": 1}',
    b'{"type": "edit", "payload": {"claim_id": "a\\u0000b", "amount": 5}}',
)


@pytest.mark.parametrize("body", BODIES)
def test_a_body_that_is_none_decides_nothing(desk: Desk, body: bytes) -> None:
    asked = desk.asked("0042")
    client, place = desk.client("ada", "approver"), f"{V1}/approvals/{asked.id}/decision"

    answer = sound(client.post(place, content=body, headers={"content-type": "application/json"}))

    assert answer.status_code in (400, 422)
    assert desk.journal.approvals.get(asked.id).state == "pending"


def test_a_form_of_another_page_decides_nothing(desk: Desk) -> None:
    """A page may send a form, or text, to any server; JSON it may not."""
    asked = desk.asked("0042")
    client, place = desk.client("ada", "approver"), f"{V1}/approvals/{asked.id}/decision"
    body = b'{"type": "approve"}'

    for content_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        assert sound(client.post(place, content=body, headers={"content-type": content_type})).status_code == 422
    crossed = client.post(place, json={"type": "approve"}, headers={"sec-fetch-site": "cross-site"})

    assert sound(crossed).status_code == 403
    assert desk.journal.approvals.get(asked.id).state == "pending"


def test_a_body_that_is_too_large_is_not_read(desk: Desk) -> None:
    asked = desk.asked("0042")
    client, place = desk.client("ada", "approver"), f"{V1}/approvals/{asked.id}/decision"
    body = b'{"type": "reject", "reason": "' + b"x" * 2**20 + b'"}'

    assert sound(client.post(place, content=body, headers={"content-type": "application/json"})).status_code == 413
    pieces = (body[begin : begin + 9999] for begin in range(0, len(body), 9999))
    assert sound(client.post(place, content=pieces, headers={"content-type": "application/json"})).status_code == 413
    assert desk.journal.approvals.get(asked.id).state == "pending"


@pytest.mark.parametrize(("role", "status"), [(None, 401), ("approver", 403)])
def test_nothing_is_read_of_a_claim_whose_sender_may_submit_none(desk: Desk, role: str | None, status: int) -> None:
    """What is parsed of a claim's 16 MiB takes many times as much."""
    headers = [] if role is None else [(b"authorization", f"Bearer {desk.token('ada', role)}".encode())]
    path = f"{V1}/claims"
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
    answered: list[int] = []

    async def receive() -> Any:
        raise AssertionError("the body was read")

    async def send(message: Any) -> None:
        answered.extend([message["status"]] if "status" in message else [])

    anyio.run(desk.api, {**scope, "headers": headers, "scheme": "http", "root_path": ""}, receive, send)

    assert answered == [status]


def test_a_page_of_another_place_changes_nothing_through_a_proxy(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser passes the proxy on behalf of other sites' pages, and old ones and those without TLS do not say `Sec-Fetch-Site`."""
    desk.asked("0042")
    operator = Visitor(Person("op"), frozenset({"operator"}), "proxy")
    monkeypatch.setattr(desk.api.state.doors, "visitor", lambda *_, **__: operator)
    client, place = desk.anonymous(), f"{V1}/runs/claim-0042/resume"

    assert sound(client.post(place, headers={"origin": "https://evil.example"})).status_code == 403
    assert sound(client.post(place, headers={"origin": "null"})).status_code == 403
    assert sound(client.post(place, headers={"origin": "http://testserver"})).status_code == 202
