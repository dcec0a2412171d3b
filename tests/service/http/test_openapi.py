"""The document of the API: every operation says what it does, what it takes, who is let in, and how it is refused."""

from __future__ import annotations

from typing import Any

import pytest

from service.who.rights import OPEN, RIGHTS
from tests.support.desk import V1, Desk, full


@pytest.fixture
def document(desk: Desk) -> dict[str, Any]:
    found: dict[str, Any] = desk.anonymous().get(f"{V1}/openapi.json").json()
    return found


def described(document: dict[str, Any]) -> dict[str, Any]:
    return {f"{how.upper()} {path}": one for path, ways in document["paths"].items() for how, one in ways.items()}


def test_every_operation_is_described_and_no_page(document: dict[str, Any]) -> None:
    found = described(document)

    assert found.keys() == {full(one) for one in RIGHTS} | OPEN - {f"GET {V1}/openapi.json"}
    assert [one for one, said in found.items() if not said.get("tags") or not said.get("description")] == []
    names = [said["operationId"] for said in found.values()]
    assert sorted(names) == sorted(set(names))


def test_every_operation_says_who_is_let_in_and_how_it_is_refused(document: dict[str, Any]) -> None:
    for one, said in described(document).items():
        assert ("security" in said) == (one not in OPEN), one
        problem = said["responses"]["default"]["content"]["application/problem+json"]["schema"]
        assert problem == {"$ref": "#/components/schemas/Problem"}
    assert document["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"


def test_a_body_has_no_place_for_who_is_acting(document: dict[str, Any]) -> None:
    bodies = {name: one for name, one in document["components"]["schemas"].items() if name.endswith("Body")}

    assert len(bodies) >= 7
    assert {name for name, one in bodies.items() if one["additionalProperties"] is not False} == set()
    acting = {"principal", "by", "as", "decided_by", "submitted_by", "user", "actor"}
    assert {name for name, one in bodies.items() if acting & one["properties"].keys()} == set()


def test_a_submission_needs_a_key_and_a_decision_may_have_one(document: dict[str, Any]) -> None:
    needed = {
        one: parameter["required"]
        for one, said in described(document).items()
        for parameter in said.get("parameters", ())
        if parameter["name"] == "Idempotency-Key"
    }

    assert needed == {
        f"POST {V1}/claims": True,
        f"POST {V1}/threads/{{thread_id}}/runs": True,
        f"POST {V1}/approvals/{{approval_id}}/decision": False,
    }
