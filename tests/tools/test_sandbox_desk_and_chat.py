"""The sandbox's ticket desk and chat, as any client sees them."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tools.sandbox import SandboxControl, SandboxProcess

DESK = {"Authorization": "Bearer zd_1"}
CHAT = {"Authorization": "Bearer xoxb-1"}


@pytest.fixture
def channel(claim_id: str) -> str:
    return f"C{claim_id.removeprefix('c-'):0>9}"


def post(sandbox: SandboxProcess, channel: str, **more: object) -> dict[str, Any]:
    body = {"channel": channel, "text": "Claim paid.", **more}
    answer: dict[str, Any] = httpx.post(f"{sandbox.url}/api/chat.postMessage", json=body, headers=CHAT).json()
    return answer


def test_the_desk_knows_no_keys(sandbox: SandboxProcess, control: SandboxControl, claim_id: str) -> None:
    """Two calls with one key in the header are two tickets: nothing but the check keeps the second out."""
    body = {"ticket": {"subject": "x", "comment": {"body": "y"}, "external_id": f"e-{claim_id}"}}
    for _ in range(2):
        headers = {**DESK, "Idempotency-Key": claim_id}
        assert httpx.post(f"{sandbox.url}/api/v2/tickets.json", json=body, headers=headers).status_code == 201

    assert len(control.tickets(f"e-{claim_id}")) == 2
    assert control.calls()[-1]["key"] is None


def test_the_desk_lists_by_cursor_and_by_several_external_ids(sandbox: SandboxProcess, claim_id: str) -> None:
    url = f"{sandbox.url}/api/v2/tickets"
    names = [f"{claim_id}-{n}" for n in range(3)]
    for name in names:
        body = {"ticket": {"comment": {"body": "y"}, "external_id": name}}
        httpx.post(url, json=body, headers=DESK)

    def page(**query: str) -> tuple[list[str], bool, str]:
        asked = {"external_id": ",".join(names), "page[size]": "2"} | query
        found = httpx.get(f"{url}.json", params=asked, headers=DESK).json()
        meta = found["meta"]
        return [ticket["external_id"] for ticket in found["tickets"]], meta["has_more"], meta["after_cursor"]

    first, more, cursor = page()
    assert (first, more) == (names[:2], True)
    assert page(**{"page[after]": cursor})[:2] == (names[2:], False)
    for wrong in ({"page[size]": "101"}, {"page[after]": "x"}):
        assert httpx.get(url, params=wrong, headers=DESK).status_code == 400


def test_a_ticket_is_shown_by_its_id(sandbox: SandboxProcess, claim_id: str) -> None:
    body = {"ticket": {"subject": claim_id, "comment": {"body": "y"}}}
    opened = httpx.post(f"{sandbox.url}/api/v2/tickets.json", json=body, headers=DESK)

    shown = httpx.get(f"{sandbox.url}{opened.headers['location']}", headers=DESK)
    assert shown.json()["ticket"] == opened.json()["ticket"]
    assert httpx.get(f"{sandbox.url}/api/v2/tickets/999999", headers=DESK).json()["error"] == "RecordNotFound"


def history(sandbox: SandboxProcess, **query: str) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{sandbox.url}/api/conversations.history", params=query, headers=CHAT).json()
    return found


def test_the_history_is_newest_first_and_bounded(
    sandbox: SandboxProcess, control: SandboxControl, channel: str
) -> None:
    ts = [post(sandbox, channel)["ts"] for _ in range(4)]
    assert [message["ts"] for message in control.chat(channel)] == ts

    def found(**query: str) -> list[str]:
        return [message["ts"] for message in history(sandbox, channel=channel, **query)["messages"]]

    assert found() == ts[::-1]
    assert found(oldest=ts[1]) == [ts[3], ts[2]]
    assert found(oldest=ts[1], latest=ts[2], inclusive="true") == [ts[2], ts[1]]
    assert found(latest=ts[1]) == [ts[0]]


def test_the_history_pages_by_cursor_and_shows_metadata_when_asked(sandbox: SandboxProcess, channel: str) -> None:
    metadata = {"event_type": "paid", "event_payload": {"claim": "1"}}
    ts = [post(sandbox, channel, metadata=metadata)["ts"] for _ in range(3)]
    first = history(sandbox, channel=channel, limit="2")
    cursor = first["response_metadata"]["next_cursor"]
    last = history(sandbox, channel=channel, limit="2", cursor=cursor, include_all_metadata="true")

    assert (first["has_more"], [m["ts"] for m in first["messages"]]) == (True, [ts[2], ts[1]])
    assert (last["has_more"], [m["ts"] for m in last["messages"]]) == (False, [ts[0]])
    assert "metadata" not in first["messages"][0]
    assert last["messages"][0]["metadata"] == metadata
    assert "response_metadata" not in last


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"channel": "C0MISSING1"}, "channel_not_found"),
        ({"limit": "1000"}, "invalid_limit"),
        ({"oldest": "now"}, "invalid_ts_oldest"),
        ({"latest": "now"}, "invalid_ts_latest"),
        ({"cursor": "x"}, "invalid_cursor"),
    ],
)
def test_a_wrong_history_is_refused(sandbox: SandboxProcess, channel: str, query: dict[str, str], code: str) -> None:
    assert history(sandbox, **{"channel": channel, **query}) == {"ok": False, "error": code}


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"x", "invalid_json"),
        (b"[]", "json_not_object"),
        (b'{"channel": "C00000001", "text": "x", "metadata": {"event_type": ""}}', "invalid_metadata_format"),
    ],
)
def test_a_wrong_post_is_refused(sandbox: SandboxProcess, content: bytes, code: str) -> None:
    answer = httpx.post(f"{sandbox.url}/api/chat.postMessage", content=content, headers=CHAT)

    assert (answer.status_code, answer.json()) == (200, {"ok": False, "error": code})


def test_too_many_calls_are_told_when_to_come_again(
    sandbox: SandboxProcess, control: SandboxControl, channel: str
) -> None:
    control.fault("chat", "rate_limit", method="GET")
    answer = httpx.get(f"{sandbox.url}/api/conversations.history", params={"channel": channel}, headers=CHAT)

    assert (answer.status_code, answer.json()["error"], answer.headers["retry-after"]) == (429, "ratelimited", "1")
