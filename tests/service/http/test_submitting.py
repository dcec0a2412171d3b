"""Submitting over HTTP: once for each key, with the same answer, whoever dies on the way; and nobody else's thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient

from checkpointing.idempotency import PATIENCE
from tests.support.clock import MovingClock
from tests.support.desk import V1, Desk

INPUT = {"input": {"claim_id": "0042", "documents": []}}
PLACE = f"{V1}/threads/claim-0042/runs"


@pytest.fixture
def intake(desk: Desk) -> TestClient:
    return desk.client("intake", "submitter")


def post(client: TestClient, key: str | None = '"k-1"', body: Any = None, place: str = PLACE) -> Any:
    headers = {} if key is None else {"idempotency-key": key}
    return client.post(place, json=INPUT if body is None else body, headers=headers)


def kind(answer: Any) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == answer.status_code
    return answer.status_code, answer.json()["type"].removeprefix("https://counterfoil.example/problems/")


def test_an_input_is_admitted_as_the_callers_and_left_to_workers(desk: Desk, intake: TestClient) -> None:
    answer = post(intake)

    assert (answer.status_code, answer.headers["location"]) == (202, f"{V1}/runs/claim-0042")
    assert (answer.json()["state"], answer.json()["submitted_by"]) == ("admitted", "intake")
    assert desk.advance("claim-0042").state == "parked"


@pytest.mark.parametrize(("first", "second"), [('"k-1"', '"k-1"'), ("k-1", '"k-1"'), (r'"a\"b"', r'"a\"b"')])
def test_the_same_under_one_key_is_answered_the_same_later_too(
    desk: Desk, intake: TestClient, first: str, second: str
) -> None:
    answer = post(intake, first)
    desk.advance("claim-0042")
    again = post(intake, second)

    assert (again.status_code, again.content, again.headers["location"]) == (
        202,
        answer.content,
        answer.headers["location"],
    )
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in answer.headers


def test_a_refusal_is_answered_the_same_too(desk: Desk, intake: TestClient) -> None:
    post(intake)
    other = {"input": {"claim_id": "0043", "documents": []}}

    refused, again = post(intake, "k-2", other), post(intake, "k-2", other)

    assert kind(refused) == kind(again) == (409, "input-changed")
    assert again.content == refused.content
    assert again.headers["idempotent-replayed"] == "true"


@pytest.mark.parametrize("key", [None, "", '""', '"k', 'k"1', "k 1", "a" * 256, "\xe9", '"\t"', '"a\\b"'])
def test_without_a_key_that_is_one_nothing_is_submitted(desk: Desk, intake: TestClient, key: str | None) -> None:
    headers = {} if key is None else {b"idempotency-key": key.encode("latin-1")}
    answer = intake.post(PLACE, json=INPUT, headers=headers)

    assert kind(answer) == (400, "header-invalid")
    assert desk.journal.runs.find("claim-0042") is None


def test_two_keys_are_none(intake: TestClient) -> None:
    answer = intake.post(PLACE, json=INPUT, headers=[("idempotency-key", "k-1"), ("idempotency-key", "k-2")])

    assert kind(answer) == (400, "header-invalid")


@pytest.mark.parametrize(
    ("place", "body"),
    [(PLACE, {"input": {"claim_id": "0043", "documents": []}}), (f"{V1}/threads/claim-0043/runs", INPUT)],
)
def test_a_key_that_was_used_for_another_request_is_refused(intake: TestClient, place: str, body: Any) -> None:
    post(intake)

    assert kind(post(intake, body=body, place=place)) == (422, "key-reused")


def test_a_key_whose_request_is_being_answered_is_busy_and_a_server_that_died_frees_it_after_a_while(
    new_desk: Callable[..., Desk], clock: MovingClock
) -> None:
    """The first server dies after it has admitted the run and before it has kept its answer."""
    desk = new_desk(clock=clock)
    intake = desk.client("intake", "submitter")
    answer = post(intake)
    with desk.journal.store.transaction("test.lost") as tx:
        tx.all("update idempotency_keys set status = null, answer = null")

    busy = post(intake)
    clock.move(PATIENCE)
    again = post(intake)

    assert (kind(busy), busy.headers["retry-after"]) == ((409, "key-busy"), "2")
    assert (again.status_code, again.json()["thread_id"]) == (202, answer.json()["thread_id"])
    assert post(intake).headers["idempotent-replayed"] == "true"


def test_the_same_input_under_another_key_is_the_same_run(desk: Desk, intake: TestClient) -> None:
    post(intake)
    desk.advance("claim-0042")

    again = post(intake, "k-2")

    assert (again.status_code, again.json()["state"], again.json()["turn"]) == (202, "parked", 1)


def test_a_thread_of_somebody_else_is_taken_and_says_nothing_of_itself(desk: Desk, intake: TestClient) -> None:
    post(intake)
    other = desk.client("ada", "submitter")

    answer = post(other)

    assert kind(answer) == (409, "thread-taken")
    assert "intake" not in answer.text
    assert other.get(f"{V1}/runs/claim-0042").status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {"input": {}},
        {"input": {"claim_id": 42, "documents": []}},
        {"input": {"claim_id": "0042", "documents": [], "amount": 5}},
        {"input": {"claim_id": "0042", "documents": [], "approvals": {}}},
        {**INPUT, "principal": "root"},
        {**INPUT, "submitted_by": "root"},
        {"input": {"claim_id": "0042", "documents": [], "__counterfoil_principal": "root"}},
        {},
        [],
        "x",
    ],
)
def test_what_the_graph_does_not_take_is_refused_and_nothing_is_begun(
    desk: Desk, intake: TestClient, body: Any
) -> None:
    assert post(intake, body=body).status_code == 422
    assert desk.journal.runs.find("claim-0042") is None


def test_nobody_takes_the_thread_of_a_notice(desk: Desk, intake: TestClient) -> None:
    """It can be foreseen, and a notice whose thread is taken is never told."""
    answer = post(intake, place=f"{V1}/threads/notice%3Antc_0%3Amail-0/runs")

    assert kind(answer) == (422, "input-refused")
    assert desk.journal.runs.find("notice:ntc_0:mail-0") is None
