"""What a call's error says: never a secret of the URL or of a header, and whether anybody took the connection."""

from __future__ import annotations

import pytest

from checkpointing.errors import Rejected, ToolError, Unreachable
from tests.support.canned import canned
from tools.sandbox import SandboxProcess
from tools.wire import NoConnection, call, shown

SECRET = "open-sesame"  # noqa: S105  # nobody's
NOWHERE = "127.0.0.1:1"


@pytest.mark.parametrize(
    "url",
    [
        f"http://me:{SECRET}@{NOWHERE}/claims?key={SECRET}",
        f"http://{NOWHERE}/claims?key={SECRET}#{SECRET}",
        f"http://me:a?{SECRET}@{NOWHERE}/claims",
        f"http://me:a/{SECRET}@{NOWHERE}/claims",
        f"http://me:{SECRET}@{NOWHERE}:x/claims",
        f"http://me:{SECRET}@[{NOWHERE}/claims",
        f"ftp://me:{SECRET}@{NOWHERE}/claims",
    ],
)
def test_an_error_shows_no_secret_of_the_url(url: str) -> None:
    with pytest.raises(ToolError) as error:
        call("GET", url, timeout_s=1)

    assert SECRET not in str(error.value)


def test_an_error_shows_no_header() -> None:
    with pytest.raises(Unreachable) as error:
        call("GET", f"http://{NOWHERE}/", timeout_s=1, headers={"Authorization": f"Bearer {SECRET}\n"})

    assert SECRET not in str(error.value)


def test_nobody_there_is_told_from_no_answer() -> None:
    with pytest.raises(NoConnection, match="GET http://127.0.0.1:1/claims got no answer: ConnectError"):
        call("GET", f"http://{NOWHERE}/claims?a=b", timeout_s=1)


def test_an_answer_that_was_lost_is_no_missing_connection(sandbox: SandboxProcess) -> None:
    sandbox.control.fault("claims", "drop_after", method="GET")
    with pytest.raises(Unreachable) as error:
        call("GET", f"{sandbox.url}/claims/0042", timeout_s=5)

    assert not isinstance(error.value, NoConnection)


def test_a_receiver_that_gave_up_waiting_may_have_executed_it() -> None:
    """408 is the receiver's own time-out: a proxy in front of it says so of requests that went through."""
    with canned() as told:
        told.says({"error": "timeout"}, 408)
        with pytest.raises(Unreachable, match="answered 408"):
            call("POST", f"{told.url}/claims", timeout_s=5)


def test_what_is_no_url_is_refused() -> None:
    with pytest.raises(Rejected, match="not a URL that can be called"):
        call("GET", "http://127.0.0.1:x/", timeout_s=1)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://a.example/claims/1?b=c", "https://a.example/claims/1"),
        ("https://me:secret@a.example/x", "https://a.example/x"),
        ("https://a.example/x?mail=a@b", "https://…"),
    ],
)
def test_a_url_is_shown_as_where_it_goes(url: str, said: str) -> None:
    assert shown(url) == said
