"""A webhook is signed as the standard's own package verifies it; and each answer of a consumer says what to do."""

from __future__ import annotations

import socket
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from standardwebhooks import Webhook

from checkpointing.errors import Declined, Rejected, ToolError, Unreachable
from tests.support.consumer import OTHER_SECRET, SECRET, Consumer
from tools.webhooks import endpoint, signed, webhook_effect, webhook_id
from tools.wire import NoConnection

KEY = "notice:ntc_1:a-1:webhook@0:webhook:0123456789abcdef"
HIDDEN = "open-sesame"


def send(url: str, *secrets: str, key: str = KEY, timeout_s: float = 5, **options: Any) -> dict[str, Any]:
    to = endpoint(url, secrets or (SECRET,))
    function = webhook_effect([to], timeout_s=timeout_s, **options).function
    sent = function(endpoint=to.name, event="approval.open", at="2026-03-01T12:00:00+00:00", data={"é": 1}, key=key)
    assert isinstance(sent, dict)
    return sent


def test_a_message_is_verified_by_the_standards_own_package(hook: Consumer) -> None:
    assert send(hook.url) == {"id": KEY, "status": 204}

    [sent] = hook.sent
    assert sent.verified() == {"type": "approval.open", "timestamp": "2026-03-01T12:00:00+00:00", "data": {"é": 1}}
    assert sent.headers["content-type"] == "application/json"
    assert sent.id == KEY


def test_a_signature_is_the_one_the_package_makes() -> None:
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    headers = signed(endpoint("https://a.example", [SECRET]), "k", b"{}", now)

    assert headers["webhook-signature"] == Webhook(SECRET).sign("k", now, "{}")


def test_while_secrets_change_a_consumer_that_has_either_of_them_verifies(hook: Consumer) -> None:
    send(hook.url, OTHER_SECRET, SECRET)
    send(hook.url, OTHER_SECRET)

    signed_with = [[one.is_signed_with(secret) for secret in (OTHER_SECRET, SECRET)] for one in hook.sent]
    assert signed_with == [[True, True], [True, False]]


def test_a_repeat_has_the_same_id_and_the_time_of_the_call(hook: Consumer) -> None:
    first, later = datetime.now(UTC) - timedelta(minutes=3), datetime.now(UTC)
    send(hook.url, clock=lambda: first)
    send(hook.url, clock=lambda: later)

    assert [one.id for one in hook.sent] == [KEY, KEY]
    assert [one.headers["webhook-timestamp"] for one in hook.sent] == [
        str(int(when.timestamp())) for when in (first, later)
    ]
    assert [one.verified() for one in hook.sent] == [hook.sent[0].verified()] * 2


def test_an_id_has_no_full_stop_which_would_move_the_border_in_what_is_signed() -> None:
    assert webhook_id("a.1:k") != webhook_id("a:1.k")
    assert "." not in webhook_id("a.1:k")


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (410, Declined),
        (400, Rejected),
        (401, Rejected),
        (404, Rejected),
        (302, Rejected),
        (307, Rejected),
        (408, Unreachable),
        (429, Unreachable),
        (500, Unreachable),
        (503, Unreachable),
    ],
)
def test_what_an_answer_means(hook: Consumer, status: int, error: type[Exception]) -> None:
    hook.answers.append(status)
    with pytest.raises(error, match=f"answered {status}") as raised:
        send(f"{hook.url}/{HIDDEN}?token={HIDDEN}")
    assert type(raised.value) is error
    assert len(hook.sent) == 1, "no redirect was followed"
    assert HIDDEN not in str(raised.value)


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_any_two_hundred_is_a_success_whatever_else_it_says(hook: Consumer, status: int) -> None:
    hook.answers.append(status)

    assert send(hook.url) == {"id": KEY, "status": status}


def test_no_answer_in_time_leaves_it_open(hook: Consumer) -> None:
    hook.gate.clear()
    with pytest.raises(Unreachable, match="got no answer"):
        send(hook.url, timeout_s=0.2)
    with pytest.raises(NoConnection, match="got no answer") as nobody:
        send(f"http://127.0.0.1:1/{HIDDEN}")
    assert HIDDEN not in str(nobody.value)


def test_an_endpoint_that_this_worker_does_not_know_may_be_known_to_another() -> None:
    with pytest.raises(Unreachable, match="this worker has no endpoint 'a.example-1'"):
        webhook_effect([]).function(endpoint="a.example-1", event="approval.open", at="", data={}, key=KEY)


@pytest.mark.parametrize(
    "url",
    [
        "http://a.example/hook",
        "http://10.0.0.1/hook",
        f"https://me:{HIDDEN}@a.example/hook",
        f"https://a.example/{HIDDEN}#x",
        f"https://a.example:x/{HIDDEN}",
        f"ftp://a.example/{HIDDEN}",
        f"//{HIDDEN}",
        HIDDEN,
        "https://a.example/ü",
        "https://a.example/a\r\nb",
    ],
)
def test_an_endpoint_elsewhere_is_called_by_https_and_has_no_user(url: str) -> None:
    with pytest.raises(ValueError, match="an endpoint is") as refused:
        endpoint(url, [SECRET])
    assert HIDDEN not in str(refused.value)


@pytest.mark.parametrize(
    "secret", ["", "whsec_", "whsec_c2hvcnQ=", SECRET.removeprefix("whsec_"), "whsec_öäü", SECRET + "%"]
)
def test_a_secret_is_as_the_standard_has_it(secret: str) -> None:
    with pytest.raises(ValueError, match="a secret is whsec_ and the base64 of 24 to 64 bytes"):
        endpoint("https://a.example", [secret])
    with pytest.raises(ValueError, match="at least one secret"):
        endpoint("https://a.example", [])


def test_an_endpoint_is_named_without_what_its_url_may_hide() -> None:
    to = endpoint(f"https://hooks.example/{HIDDEN}", [SECRET])

    assert to.name.startswith("hooks.example-")
    assert to.name != endpoint("https://hooks.example/other", [SECRET]).name
    assert HIDDEN not in repr(to) + to.name
    assert SECRET not in repr(to)


@pytest.mark.parametrize(
    "place", ["127.0.0.1", "169.254.169.254", "::1", "fe80::1", "::ffff:169.254.169.254", "::", "224.0.0.1"]
)
def test_a_name_that_leads_to_where_no_consumer_is_is_not_called(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """Whoever answers for a name may send the call to this machine, or to a neighbour that hands out a cloud's secrets."""
    family = socket.AF_INET6 if ":" in place else socket.AF_INET
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_more: [(family, 1, 6, "", (place, 0))])
    with pytest.raises(ToolError) as refused:
        send("https://hooks.example/")
    assert (type(refused.value), "where no consumer is" in str(refused.value)) == (Rejected, True)
