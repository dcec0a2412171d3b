"""Who may call what: every route of the app against every role, and against nobody."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi import APIRouter
from fastapi.routing import iter_route_contexts
from fastapi.testclient import TestClient

from service.http.callers import Caller
from service.who import ROLES
from service.who.rights import OPEN, RIGHTS
from tests.support.desk import ROOTS, V1, Desk, full

NOBODY = "nobody"
PLACES = {"{thread_id}": "claim-1", "{approval_id}": "apr_0", "{key}": "claim-1:pay.0:pay:0"}


def operations(desk: Desk) -> Iterator[str]:
    """Yield each method and path of the app, but for the pages."""
    for route in iter_route_contexts(desk.api.routes):
        path = route.path or ""
        if path.startswith(V1) or path in ROOTS:
            yield from (f"{method} {path}" for method in route.methods or () if method != "HEAD")


def called(client: TestClient, operation: str) -> int:
    """Call an operation with an empty body, and return the status."""
    method, _, path = operation.partition(" ")
    for name, value in PLACES.items():
        path = path.replace(name, value)
    return client.request(method, path, json={} if method == "POST" else None).status_code


def test_every_route_stands_in_the_table_and_nothing_else_does(desk: Desk) -> None:
    assert set(operations(desk)) == {full(one) for one in RIGHTS} | OPEN


@pytest.mark.parametrize("role", [*ROLES, NOBODY])
def test_each_role_gets_in_where_the_table_says_and_nowhere_else(desk: Desk, role: str) -> None:
    client = desk.anonymous() if role == NOBODY else desk.client("ada", role)

    found = {one: called(client, one) for one in operations(desk)}

    assert {one: kind_of(status) for one, status in found.items()} == {one: expected(one, role) for one in found}


def kind_of(status: int) -> str:
    """Return what a status says of who asked; everything that is no refusal of theirs is `in`, as long as it is no fault."""
    return {401: "who?", 403: "shut", 500: "fault"}.get(status, "in")


def expected(operation: str, role: str) -> str:
    """Return what the table says."""
    if operation in OPEN:
        return "in"
    if role == NOBODY:
        return "who?"
    return "in" if role in RIGHTS[operation.replace(V1, "")] else "shut"


def test_a_route_that_nobody_entered_in_the_table_is_open_to_nobody(desk: Desk) -> None:
    forgotten = APIRouter()

    @forgotten.get("/forgotten")
    def get_forgotten(_visitor: Caller) -> None: ...

    desk.api.include_router(forgotten, prefix=V1)

    assert desk.client("root", *ROLES).get(f"{V1}/forgotten").status_code == 403
    assert set(operations(desk)) - {full(one) for one in RIGHTS} - OPEN == {f"GET {V1}/forgotten"}
