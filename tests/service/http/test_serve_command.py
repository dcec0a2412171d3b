"""`counterfoil serve`: one process that serves and works, on a real socket; it ends when it is asked to, and its log says nothing of anybody's claim."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from checkpointing import Journal, open_journal
from service.cli.serve import EXPOSED
from tests.service.conftest import Cli, Filed
from tests.support.desk import V1
from tests.support.processes import until
from tests.support.served import claim_body, read, serving
from tools.sandbox import SandboxControl


def tokens(url: str) -> dict[str, str]:
    """Make a token for each of those who take part."""
    with open_journal(url) as journal:
        return {role: token(journal, role) for role in ("submitter", "approver", "operator")}


def token(journal: Journal, role: str) -> str:
    return journal.tokens.add(principal=f"{role}-1", roles=[role], by="test")[1]


def state_of(client: httpx.Client, thread_id: str) -> str:
    return str(client.get(f"{V1}/runs/{thread_id}").json()["state"])


def test_a_claim_goes_its_whole_way_through_one_process(
    filed: Callable[..., Filed], settings: dict[str, str], control: SandboxControl, url: str, tmp_path: Path
) -> None:
    claim, known = filed(), tokens(url)
    body = claim_body(claim.path)
    with serving(settings, tmp_path) as served:
        submitter, approver = served.client(known["submitter"]), served.client(known["approver"])
        submitted = submitter.post(f"{V1}/claims", json=body, headers={"Idempotency-Key": '"k-1"'})
        until(lambda: state_of(submitter, claim.thread_id) == "parked" or None)
        [asked] = approver.get(f"{V1}/approvals", params={"thread_id": claim.thread_id}).json()["items"]
        decided = approver.post(
            f"{V1}/approvals/{asked['id']}/decision", json={"type": "approve", "reason": "Seen by me."}
        )
        until(lambda: state_of(submitter, claim.thread_id) == "done" or None)
        again = submitter.post(f"{V1}/claims", json=body, headers={"Idempotency-Key": "k-1"})
        steps = submitter.get(f"{V1}/runs/{claim.thread_id}/timeline").json()["steps"]
        code = served.end()

    assert (submitted.status_code, submitted.headers["location"]) == (202, f"{V1}/runs/{claim.thread_id}")
    assert (decided.status_code, decided.json()["decided_by"]) == (200, "approver-1")
    assert (again.content, again.headers["idempotent-replayed"]) == (submitted.content, "true")
    assert [one for step in steps for one in step["nodes"]][-1] == "close"
    assert len(control.payments(claim.claim_id)) == 1
    assert code == 0, served.said
    secret = [
        *known.values(),
        body["claim"]["description"],
        body["claim"]["claimant"]["email"],
        "Seen by me",
        "thread_id=",
    ]
    assert [one for one in secret if one in served.said] == []
    assert {"serve_started", "serving", "request", "serve_ended"} <= {read(line).get("event") for line in served.lines}


def test_a_server_without_a_worker_leaves_runs_to_others(
    filed: Callable[..., Filed], settings: dict[str, str], control: SandboxControl, url: str, tmp_path: Path
) -> None:
    claim, known = filed(), tokens(url)
    with serving(settings, tmp_path, "--no-worker") as served:
        client = served.client(known["submitter"])
        client.post(f"{V1}/claims", json=claim_body(claim.path), headers={"Idempotency-Key": "k-1"})

        assert state_of(client, claim.thread_id) == "admitted"
        assert served.end(signal.SIGINT) == 0, served.said


def test_open_streams_do_not_keep_a_server_that_is_asked_to_end(
    filed: Callable[..., Filed], settings: dict[str, str], control: SandboxControl, url: str, tmp_path: Path
) -> None:
    claim, known = filed(), tokens(url)
    with serving(settings, tmp_path, "--no-worker", "--drain", "20") as served:
        client = served.client(known["submitter"])
        client.post(f"{V1}/claims", json=claim_body(claim.path), headers={"Idempotency-Key": "k-1"})
        with client.stream("GET", f"{V1}/runs/{claim.thread_id}/events") as stream:
            lines = stream.iter_lines()
            until(lambda: next(lines) == "event: run.admit" or None)

            assert served.end() == 0, served.said


def test_a_taken_port_is_one_line_and_nothing_is_begun(cli: Cli, settings: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = cli("serve", "--port", str(taken.getsockname()[1]), code=2)

    assert said.stderr.splitlines()[-1].startswith("counterfoil: cannot listen at 127.0.0.1 port")


@pytest.mark.parametrize(("arguments", "warned"), [((), True), (("--behind-proxy", "127.0.0.1"), False)])
def test_it_warns_where_everybody_can_reach_it_and_nobody_is_said_to_stand_before_it(
    settings: dict[str, str], tmp_path: Path, arguments: tuple[str, ...], warned: bool
) -> None:
    with serving(settings, tmp_path, "--host", "0.0.0.0", "--no-worker", *arguments) as served:  # noqa: S104  # what is warned of
        served.client().close()
        served.end()

    assert (EXPOSED in served.said) == warned


@pytest.mark.parametrize(("arguments", "believed"), [((), False), (("--behind-proxy", "127.0.0.1"), True)])
def test_what_a_proxy_says_of_the_client_counts_only_where_it_is_named(
    settings: dict[str, str], tmp_path: Path, arguments: tuple[str, ...], believed: bool
) -> None:
    with serving(settings, tmp_path, "--no-worker", *arguments) as served:
        answer = served.client().get("/healthz", headers={"x-forwarded-proto": "https", "x-forwarded-for": "192.0.2.7"})
        served.end()

    assert ("strict-transport-security" in answer.headers) == believed
    assert json.loads(answer.content) == {"status": "alive"}
