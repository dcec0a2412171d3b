"""
The API against its own OpenAPI document: schemathesis makes requests that fit it and requests that do not, and no answer is a fault or one that the
document does not have.

It works on SQLite and in this process: what is tried is the API's edge, and storage is tried elsewhere.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import CheckFunction, GenerationMode
from schemathesis.specs.openapi.checks import ignored_auth, negative_data_rejection, positive_data_acceptance

from checkpointing import open_journal
from service.http.server import listen, serve, url_of
from service.settings import load_settings
from service.who import ROLES
from service.who.rights import OPEN, RIGHTS
from service.worker.draining import Draining
from tests.support.desk import V1, Desk, full, make_desk
from tests.support.desk_graph import desk_graph
from tools.sandbox import SandboxProcess

SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)
DESCRIBED = sorted(one for one in {full(one) for one in RIGHTS} | OPEN if not one.endswith("/openapi.json"))


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, sandbox: SandboxProcess) -> Iterator[Desk]:
    """A desk with a claim that waits, and a claims system that answers."""
    folder = tmp_path_factory.mktemp("desk")
    url = f"sqlite:///{folder}/journal.db"
    with open_journal(url) as journal:
        given = load_settings(url).model_copy(update={"claims_url": sandbox.url})
        desk = make_desk(given, journal, desk_graph(journal, folder))
        desk.submit("waits")
        yield desk


@pytest.fixture(scope="module")
def places(desk: Desk) -> dict[str, str]:
    """What the names in a path stand for: what there is. Other names are tried in `test_injections.py`."""
    [asked] = desk.journal.approvals.pending()
    return {"thread_id": asked.thread_id, "approval_id": asked.id, "key": f"{asked.thread_id}:pay.0:pay:0"}


@pytest.fixture(scope="module")
def document(desk: Desk) -> Iterator[schemathesis.BaseSchema]:
    """The document of the API as it is served."""
    draining, listening = Draining(), listen("127.0.0.1", 0)
    server = threading.Thread(target=serve, args=(desk.api, listening, draining))
    at = url_of(listening)
    server.start()
    yield schemathesis.openapi.from_url(f"{at}{V1}/openapi.json")
    draining.ask()
    server.join()


@pytest.fixture(scope="module")
def token(desk: Desk) -> str:
    return desk.token("everybody", *ROLES)


@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize("operation", DESCRIBED)
def test_no_request_meets_a_fault_or_an_answer_that_is_not_described(
    document: schemathesis.BaseSchema, places: dict[str, str], token: str, operation: str, mode: GenerationMode
) -> None:
    method, _, path = operation.partition(" ")
    described = document[path][method]
    if mode is GenerationMode.NEGATIVE and not described.body and not described.query:
        pytest.skip("nothing in it can be wrong")
    named = {"path_parameters": {name: value for name, value in places.items() if f"{{{name}}}" in path}}
    headers = {} if operation in OPEN else {"authorization": f"Bearer {token}"}

    @settings(max_examples=8, deadline=None, suppress_health_check=SLOW, derandomize=True)
    @given(case=described.as_strategy(generation_mode=mode, **(named if "{" in path else {})))
    def holds(case: schemathesis.Case) -> None:
        if mode is GenerationMode.POSITIVE:
            case.query.pop("cursor", None)  # which fits only where it came from
        case.call_and_validate(headers=headers, excluded_checks=left_out(method))

    holds()


def left_out(method: str) -> list[CheckFunction]:
    """
    Return what is not held against an answer.

    What is shown at the door is tried in `test_roles.py`. In a query a number is text like any other; and that a body fits its schema is not enough: a
    claim has to hang together, and an input to be the graph's.
    """
    return [ignored_auth, negative_data_rejection if method == "GET" else positive_data_acceptance]
