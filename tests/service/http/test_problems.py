"""Problems: each error of ours has one, every answer that is no success is one, and a fault says nothing of the request or of us."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import checkpointing
import service
import tools
from checkpointing import Journal
from checkpointing.errors import Bug, CounterfoilError, GraphRefused, NotRetryable, StoreUnreachable, UnguardedEffect
from service.http.problems import FAULT, KINDS, TYPES, problem_of
from service.http.server import AddressUnusable
from tests.support.desk import V1, Desk

DOCUMENTED = Path(__file__).parents[3] / "docs" / "api.md"
REACHED = (
    "checkpointing",
    "tools.claim",
    "tools.wire",
    "nodes",
    "graph",
    "service.http",
    "service.who",
    "service.submission",
)
"""Where errors are from that a request can meet; commands have their own."""
PAYLOAD = "words of the claimant"


def errors(kind: type[CounterfoilError] = CounterfoilError) -> Iterator[type[CounterfoilError]]:
    """Yield every error of ours, after everything that may define one is imported."""
    for package in (checkpointing, tools, service):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__") and "sandbox" not in module.name:
                importlib.import_module(module.name)
    yield from _below(kind)


def _below(kind: type[CounterfoilError]) -> Iterator[type[CounterfoilError]]:
    for one in kind.__subclasses__():
        if one.__module__.startswith(REACHED):
            yield one
        yield from _below(one)


def told(kind: type[CounterfoilError]) -> Any:
    """Make an error of the kind, whatever it takes to, and return what is told of it."""
    error = kind.__new__(kind)
    Exception.__init__(error, PAYLOAD)
    for name in ("decision", "decided_by", "approval", "key", "wait"):
        setattr(error, name, timedelta() if name == "wait" else None)
    return problem_of(error)


def test_an_error_is_a_fault_of_ours_only_where_it_says_so() -> None:
    faults = {one for one in errors() if told(one).kind is FAULT}

    ours = (Bug, NotRetryable, GraphRefused)
    branches = {one for one in errors() if one.__subclasses__()}
    surprising = {one for one in faults - branches - {AddressUnusable} if not issubclass(one, ours)}
    assert {one.__name__ for one in surprising} == set()
    assert UnguardedEffect in faults


def test_what_is_our_fault_is_told_without_its_words() -> None:
    told_of = {one: told(one) for one in errors()}

    assert {
        one
        for one, problem in told_of.items()
        if problem.kind.status >= 500 and problem.kind.status != 503 and PAYLOAD in problem.body
    } == set()
    assert PAYLOAD not in told(StoreUnreachable).body


def test_every_type_is_documented_and_no_two_are_alike() -> None:
    kinds = {kind for _, kind in KINDS} | {FAULT}
    document = DOCUMENTED.read_text()

    assert {kind.name for kind in kinds if f"`{kind.name}`" not in document} == set()
    statuses: dict[str, set[int]] = {}
    for kind in kinds:
        statuses.setdefault(kind.name, set()).add(kind.status)
    assert {name: found for name, found in statuses.items() if len(found) > 1} == {}


@pytest.mark.parametrize(
    ("method", "place", "status", "name"),
    [
        ("GET", f"{V1}/nothing", 404, "not-found"),
        ("GET", "/..%2f..%2fetc/passwd", 404, "not-found"),
        ("DELETE", f"{V1}/runs", 405, "method-not-allowed"),
        ("GET", f"{V1}/runs?limit=0", 422, "request-invalid"),
        ("GET", f"{V1}/runs?limit=201", 422, "request-invalid"),
        ("GET", f"{V1}/runs?limit={'9' * 5000}", 422, "request-invalid"),
        ("POST", f"{V1}/threads/x/runs", 400, "header-invalid"),
        ("GET", f"{V1}/runs/none", 404, "unknown-run"),
    ],
)
def test_whatever_is_no_success_is_a_problem(desk: Desk, method: str, place: str, status: int, name: str) -> None:
    answer = desk.client("op", "operator", "submitter").request(method, place)

    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert (answer.json()["type"], answer.json()["status"]) == (TYPES + name, status)


@pytest.mark.parametrize("shown", [None, "Bearer", "Bearer cft_wrong", "Basic YTpi", "cft_x", "Bearer \N{BULLET}"])
def test_nobody_is_told_how_to_come_in_and_not_what_they_showed(desk: Desk, shown: str | None) -> None:
    headers = {} if shown is None else {b"authorization": shown.encode()}
    answer = desk.anonymous().get(f"{V1}/me", headers=headers)

    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert answer.json()["type"] == f"{TYPES}not-authenticated"
    assert "wrong" not in answer.text


def test_a_wrong_value_is_told_by_its_field_and_not_repeated(desk: Desk) -> None:
    asked = desk.asked("0042")

    answer = desk.client("ada", "approver").post(
        f"{V1}/approvals/{asked.id}/decision", json={"type": PAYLOAD, "principal": PAYLOAD}
    )

    assert {".".join(one["at"]) for one in answer.json()["errors"]} == {"body.type", "body.principal"}
    assert PAYLOAD not in answer.text


def test_a_fault_is_answered_without_its_words_and_logged_without_them(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(self: Journal, *args: object, **named: object) -> None:
        raise ValueError(PAYLOAD)

    monkeypatch.setattr(type(desk.journal.listing), "runs", broken)
    answer = desk.client("op", "operator").get(f"{V1}/runs?reason=hush")
    said = "".join(capsys.readouterr())

    assert (answer.status_code, answer.json()["type"]) == (500, f"{TYPES}fault")
    assert answer.json()["request"] == answer.headers["x-request-id"]
    assert answer.headers["x-request-id"] in said
    assert "ValueError" in said
    assert [one for one in (PAYLOAD, "hush") if one in said or one in answer.text] == []


def test_every_answer_has_the_headers_that_browsers_heed(desk: Desk) -> None:
    for answer in (desk.anonymous().get("/healthz"), desk.anonymous().get(f"{V1}/runs")):
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "no-referrer"


def test_the_log_says_who_asked_for_what_route_and_nothing_they_sent(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = desk.asked("0042")
    secret = desk.token("ada", "approver")
    client = desk.anonymous({"authorization": f"Bearer {secret}", "cookie": "session=hush-cookie"})
    capsys.readouterr()

    client.get(f"{V1}/approvals?name=hush-query")
    client.get(f"{V1}/hush-path")
    client.request("HUSH", f"{V1}/runs")
    client.post(
        f"{V1}/approvals/{asked.id}/decision", json={"type": "edit", "payload": {"claim_id": PAYLOAD, "amount": 5}}
    )
    client.post(
        f"{V1}/approvals/{asked.id}/decision", json={"type": "hush-type"}, headers={"idempotency-key": "hush-key"}
    )
    said = "".join(capsys.readouterr())

    assert "/approvals/{approval_id}/decision" in said
    assert [one for one in (secret, secret[4:], "hush", PAYLOAD, asked.id) if one.lower() in said.lower()] == []
