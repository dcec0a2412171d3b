"""The effect `post_message`, and the chat it talks to."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from checkpointing.errors import Declined, Rejected, ToolError, UnguardedEffect, Unreachable
from tests.support.canned import Canned, canned
from tools import chat
from tools.chat import chat_effect
from tools.effect import Effect
from tools.receivers import SLACK
from tools.sandbox import SandboxControl, SandboxProcess
from tools.wire import NoConnection

TOKEN = {"Authorization": "Bearer xoxb-1"}


@pytest.fixture
def post_message(sandbox: SandboxProcess) -> Effect:
    return chat_effect(api_key="xoxb-1", base_url=sandbox.url)


@pytest.fixture
def channel(claim_id: str) -> str:
    return f"C{claim_id.removeprefix('c-'):0>9}"


@pytest.fixture
def arguments(channel: str, key: str) -> dict[str, Any]:
    return {"channel": channel, "text": "Claim paid.", "key": key}


@pytest.fixture
def workspace() -> Iterator[Canned]:
    with canned() as told:
        yield told


def fails(effect: Effect, arguments: dict[str, Any], meaning: type[ToolError]) -> str:
    with pytest.raises(ToolError) as raised:
        effect.function(**arguments)
    assert type(raised.value) is meaning
    return str(raised.value)


def look_up(effect: Effect, arguments: dict[str, Any], since: datetime | None = None) -> Any:
    assert effect.find
    return effect.find(**arguments, claimed_at=since or datetime.now(UTC))


def test_a_message_carries_the_key_in_its_metadata(
    post_message: Effect, control: SandboxControl, arguments: dict[str, Any], channel: str, key: str
) -> None:
    posted = post_message.function(**arguments)

    [message] = control.chat(channel)
    assert posted == {"channel": channel, "ts": message["ts"]}
    assert message["text"] == "Claim paid."
    assert message["metadata"] == {"event_type": "counterfoil_effect", "event_payload": {"key": key}}


def test_the_effect_is_declared_for_slack(post_message: Effect) -> None:
    assert (post_message.name, post_message.receiver, post_message.asks_claimed_at) == ("post_message", SLACK, True)
    with pytest.raises(UnguardedEffect):
        post_message(text="x")


def test_the_chat_knows_no_keys(
    post_message: Effect, control: SandboxControl, arguments: dict[str, Any], channel: str
) -> None:
    first, second = post_message.function(**arguments), post_message.function(**arguments)

    assert first["ts"] < second["ts"]
    assert len(control.chat(channel)) == 2
    assert look_up(post_message, arguments) == first


def test_the_look_up_finds_what_the_key_posted_and_nothing_else(
    post_message: Effect, arguments: dict[str, Any]
) -> None:
    assert look_up(post_message, arguments) is None
    posted = post_message.function(**arguments)

    assert look_up(post_message, arguments) == posted
    assert look_up(post_message, {**arguments, "key": "another"}) is None
    assert look_up(post_message, {**arguments, "channel": "C0ANOTHER1"}) is None


def test_a_strangers_metadata_is_not_ours(
    post_message: Effect, sandbox: SandboxProcess, arguments: dict[str, Any], channel: str, key: str
) -> None:
    for metadata in ({"event_type": "theirs", "event_payload": {"key": key}}, None):
        body = {"channel": channel, "text": key, "metadata": metadata}
        assert httpx.post(f"{sandbox.url}/api/chat.postMessage", json=body, headers=TOKEN).json()["ok"] is True

    assert look_up(post_message, arguments) is None


def test_the_look_up_walks_the_history_page_by_page(
    post_message: Effect, control: SandboxControl, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours is on the third page; Slack gives some apps no more than 15 messages a page."""
    monkeypatch.setattr(chat, "PAGE", 2)
    posted = post_message.function(**arguments)
    for number in range(5):
        post_message.function(**{**arguments, "key": f"other-{number}"})
    before = len(control.calls())

    assert look_up(post_message, arguments) == posted
    assert len(control.calls()) - before == 3


def test_the_look_up_goes_no_further_back_than_the_claim(post_message: Effect, arguments: dict[str, Any]) -> None:
    posted = post_message.function(**arguments)
    at = datetime.fromtimestamp(float(posted["ts"]), UTC)

    assert look_up(post_message, arguments, at + chat.AHEAD - timedelta(seconds=1)) == posted
    assert look_up(post_message, arguments, at + chat.AHEAD + timedelta(seconds=1)) is None


def test_a_name_is_no_channel(post_message: Effect, control: SandboxControl, arguments: dict[str, Any]) -> None:
    """Slack takes a name to post to, and takes none to read: such a message could never be found again."""
    sent = len(control.calls())

    fails(post_message, {**arguments, "channel": "#claims"}, Rejected)
    assert len(control.calls()) == sent


@pytest.mark.parametrize(
    ("change", "meaning", "code"),
    [
        ({"channel": "C0ARCHIVED1"}, Declined, "is_archived"),
        ({"channel": "C0MISSING1"}, Rejected, "channel_not_found"),
        ({"text": ""}, Rejected, "no_text"),
        ({"text": "x" * 40_001}, Rejected, "msg_too_long"),
    ],
)
def test_a_200_that_says_no_is_a_no(
    post_message: Effect, arguments: dict[str, Any], change: dict[str, Any], meaning: type[ToolError], code: str
) -> None:
    assert code in fails(post_message, {**arguments, **change}, meaning)


@pytest.mark.parametrize("api_key", ["", "xoxp-1"])
def test_a_wrong_token_is_rejected_and_as_a_look_up_it_is_doubt(
    sandbox: SandboxProcess, arguments: dict[str, Any], api_key: str
) -> None:
    stranger = chat_effect(api_key=api_key, base_url=sandbox.url)

    fails(stranger, arguments, Rejected)
    with pytest.raises(Unreachable):
        look_up(stranger, arguments)


@pytest.mark.parametrize(
    ("kind", "posted"),
    [("drop_before", 0), ("drop_after", 1), ("rate_limit", 0), ("error_500", 0), ("error_500_after", 1)],
)
def test_doubt_is_unreachable(
    *, post_message: Effect, control: SandboxControl, arguments: dict[str, Any], channel: str, kind: str, posted: int
) -> None:
    control.fault("chat", kind, match=channel)

    fails(post_message, arguments, Unreachable)
    assert len(control.chat(channel)) == posted
    assert (look_up(post_message, arguments) is not None) == (posted == 1)


@pytest.mark.parametrize("kind", ["drop_after", "rate_limit", "error_500"])
def test_a_look_up_that_fails_is_doubt(
    post_message: Effect, control: SandboxControl, arguments: dict[str, Any], kind: str
) -> None:
    control.fault("chat", kind, method="GET")

    with pytest.raises(Unreachable):
        look_up(post_message, arguments)


def test_nobody_listening_is_no_connection(arguments: dict[str, Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"

    fails(chat_effect(api_key="xoxb-1", base_url=url), arguments, NoConnection)


@pytest.mark.parametrize(
    ("body", "meaning"),
    [
        ({"ok": False, "error": "internal_error"}, Unreachable),
        ({"ok": False, "error": "fatal_error"}, Unreachable),
        ({"ok": False, "error": "request_timeout"}, Unreachable),
        ({"ok": False, "error": "ratelimited"}, Unreachable),
        ({"ok": False, "error": "a_word_of_next_year"}, Unreachable),
        ({"ok": False}, Unreachable),
        ({"ok": "true", "ts": "1.2"}, Unreachable),
        ({"ok": True}, Unreachable),
        ({"ok": True, "ts": 1.5}, Unreachable),
        ([], Unreachable),
        (b"<html>", Unreachable),
        ({"ok": False, "error": "restricted_action"}, Declined),
        ({"ok": False, "error": "missing_scope"}, Rejected),
    ],
)
def test_only_words_that_are_known_settle_anything(
    workspace: Canned, arguments: dict[str, Any], body: object, meaning: type[ToolError]
) -> None:
    workspace.says(body)

    fails(chat_effect(api_key="xoxb-1", base_url=workspace.url), arguments, meaning)


def test_no_word_means_two_things() -> None:
    assert chat.DECLINING.isdisjoint(chat.REFUSING)
    assert not {"internal_error", "fatal_error", "request_timeout", "ratelimited"} & (chat.DECLINING | chat.REFUSING)


@pytest.mark.parametrize(
    "following",
    [{}, {"response_metadata": None}, {"response_metadata": {}}, {"response_metadata": {"next_cursor": ""}}],
)
def test_more_of_a_history_that_nobody_can_ask_for_is_not_its_end(
    workspace: Canned, arguments: dict[str, Any], following: dict[str, Any]
) -> None:
    """Ours may be in it, and whoever took this for the end would post a second one."""
    workspace.says({"ok": True, "messages": [{"ts": "1.2"}], "has_more": True, **following})

    with pytest.raises(Unreachable, match="more messages"):
        look_up(chat_effect(api_key="xoxb-1", base_url=workspace.url), arguments)


@pytest.mark.parametrize("cursors", [("x=", "x="), ("x=", "y", "x=")])
def test_a_page_that_is_followed_by_itself_is_not_walked_for_ever(
    workspace: Canned, arguments: dict[str, Any], cursors: tuple[str, ...]
) -> None:
    for cursor in cursors:
        workspace.says({"ok": True, "messages": [], "response_metadata": {"next_cursor": cursor}})

    with pytest.raises(Unreachable, match="followed by itself"):
        look_up(chat_effect(api_key="xoxb-1", base_url=workspace.url), arguments)
    assert "cursor=x%3D" in workspace.asked[1]


@pytest.mark.parametrize("body", [{"ok": True}, {"ok": True, "messages": "none"}])
def test_a_history_that_is_none_is_doubt(workspace: Canned, arguments: dict[str, Any], body: object) -> None:
    workspace.says(body)

    with pytest.raises(Unreachable, match="no history"):
        look_up(chat_effect(api_key="xoxb-1", base_url=workspace.url), arguments)


@pytest.mark.parametrize("odd", [None, "text", {"metadata": []}, {"metadata": {"event_type": "counterfoil_effect"}}])
def test_odd_messages_in_a_history_are_passed_over(workspace: Canned, arguments: dict[str, Any], odd: object) -> None:
    workspace.says({"ok": True, "messages": [odd], "response_metadata": None})

    assert look_up(chat_effect(api_key="xoxb-1", base_url=workspace.url), arguments) is None
