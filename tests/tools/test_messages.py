"""The effect `notify`, and the mail service it talks to."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from checkpointing.errors import KeyInUse, KeyMismatch, Rejected, ToolError, Unreachable
from tests.support.canned import Canned, canned
from tools import messages
from tools.effect import Effect
from tools.messages import notify_effect
from tools.receivers import RESEND
from tools.sandbox import SandboxControl, SandboxProcess

AtOnce = Callable[[Callable[[int], object], int], list[object]]
SENDER = "Claims <claims@carrier.example.com>"


@pytest.fixture
def notify(sandbox: SandboxProcess) -> Effect:
    return notify_effect(api_key="re_1", sender=SENDER, base_url=sandbox.url)


@pytest.fixture
def arguments(claim_id: str, key: str) -> dict[str, Any]:
    return {
        "claim_id": claim_id,
        "to": "mara@example.com",
        "subject": f"Your claim {claim_id}",
        "text": "It was paid.",
        "key": key,
    }


@pytest.fixture
def mail() -> Iterator[Canned]:
    with canned() as told:
        yield told


def listed(mail: Canned) -> list[Any]:
    effect = notify_effect(api_key="re_1", sender=SENDER, base_url=mail.url)
    assert effect.executed
    return list(effect.executed(since=None))


def fails(effect: Effect, arguments: dict[str, Any], meaning: type[ToolError]) -> None:
    with pytest.raises(ToolError) as raised:
        effect.function(**arguments)
    assert type(raised.value) is meaning


def test_a_message_is_sent_once_a_key(
    notify: Effect,
    control: SandboxControl,
    sandbox: SandboxProcess,
    arguments: dict[str, Any],
    claim_id: str,
) -> None:
    sent = notify.function(**arguments)

    assert notify.function(**arguments) == sent
    [message] = control.messages(claim_id)
    assert (message["id"], message["to"], message["from"]) == (
        sent["id"],
        ["mara@example.com"],
        SENDER,
    )
    stored = httpx.get(f"{sandbox.url}/emails/{sent['id']}", headers={"Authorization": "Bearer re_1"})
    assert (stored.json()["object"], stored.json()["subject"]) == (
        "email",
        f"Your claim {claim_id}",
    )
    assert notify.receiver is RESEND


def test_a_changed_payload_is_a_mismatch(notify: Effect, arguments: dict[str, Any]) -> None:
    notify.function(**arguments)

    fails(notify, {**arguments, "text": "Another."}, KeyMismatch)


def test_a_message_being_taken_is_in_use(
    notify: Effect,
    control: SandboxControl,
    arguments: dict[str, Any],
    claim_id: str,
    at_once: AtOnce,
) -> None:
    control.fault("emails", "hold_before", match=claim_id)

    def first_or_second(number: int) -> object:
        if number == 0:
            return notify.function(**arguments)
        control.wait_held()
        fails(notify, arguments, KeyInUse)
        return control.release()

    sent, _ = at_once(first_or_second, 2)
    assert [message["id"] for message in control.messages(claim_id)] == [sent["id"]]  # type: ignore[index]  # a dict


@pytest.mark.parametrize("change", [{"to": "nobody"}, {"subject": ""}, {"claim_id": "with space"}, {"key": "k" * 257}])
def test_a_wrong_message_is_rejected(notify: Effect, arguments: dict[str, Any], change: dict[str, Any]) -> None:
    fails(notify, {**arguments, **change}, Rejected)


def test_a_wrong_api_key_is_rejected(sandbox: SandboxProcess, arguments: dict[str, Any]) -> None:
    stranger = notify_effect(api_key="xx_1", sender=SENDER, base_url=sandbox.url)

    fails(stranger, arguments, Rejected)


@pytest.mark.parametrize(
    ("kind", "sent_first"),
    [
        ("drop_before", 0),
        ("drop_after", 1),
        ("rate_limit", 0),
        ("error_500", 0),
        ("error_500_after", 1),
    ],
)
def test_doubt_is_unreachable_and_the_repeat_sends_no_second_message(
    *,
    notify: Effect,
    control: SandboxControl,
    arguments: dict[str, Any],
    claim_id: str,
    kind: str,
    sent_first: int,
) -> None:
    control.fault("emails", kind, match=claim_id)

    fails(notify, arguments, Unreachable)
    assert len(control.messages(claim_id)) == sent_first
    sent = notify.function(**arguments)
    assert [message["id"] for message in control.messages(claim_id)] == [sent["id"]]


@pytest.mark.parametrize(
    ("body", "headers", "status", "name"),
    [
        ({}, {}, 401, "missing_api_key"),
        ({}, {"Authorization": "Bearer sk_1"}, 403, "invalid_api_key"),
        ({}, {"Authorization": "Bearer re_1"}, 422, "missing_required_field"),
        ([], {"Authorization": "Bearer re_1"}, 422, "validation_error"),
    ],
)
def test_errors_are_in_resends_shape(
    sandbox: SandboxProcess, body: object, headers: dict[str, str], status: int, name: str
) -> None:
    answer = httpx.post(f"{sandbox.url}/emails", json=body, headers=headers)

    assert (answer.status_code, answer.json()["name"], answer.json()["statusCode"]) == (
        status,
        name,
        status,
    )


def test_an_unknown_message_is_not_found(sandbox: SandboxProcess) -> None:
    answer = httpx.get(f"{sandbox.url}/emails/none", headers={"Authorization": "Bearer re_1"})

    assert (answer.status_code, answer.json()["name"]) == (404, "not_found")


def test_messages_are_listed_newest_first_and_in_pages(
    notify: Effect, sandbox: SandboxProcess, arguments: dict[str, Any], key: str
) -> None:
    sent = [notify.function(**{**arguments, "key": f"{key}-{n}"})["id"] for n in range(5)]

    def page(**asked: str | int) -> tuple[list[str], bool]:
        found = httpx.get(f"{sandbox.url}/emails", params=asked, headers={"Authorization": "Bearer re_1"}).json()
        assert found["object"] == "list"
        return [message["id"] for message in found["data"]], found["has_more"]

    assert page(limit=2) == ([sent[4], sent[3]], True)
    assert page(limit=2, after=sent[3]) == ([sent[2], sent[1]], True)
    assert page(limit=2, before=sent[1]) == ([sent[3], sent[2]], True)
    assert page(before=sent[3]) == ([sent[4]], False)


def test_a_page_of_messages_ends_with_the_first(
    notify: Effect, control: SandboxControl, sandbox: SandboxProcess, arguments: dict[str, Any]
) -> None:
    notify.function(**arguments)
    walked: list[str] = []
    more = True
    while more:
        asked = {"limit": "100", **({"after": walked[-1]} if walked else {})}
        page = httpx.get(f"{sandbox.url}/emails", params=asked, headers={"Authorization": "Bearer re_1"}).json()
        walked += [message["id"] for message in page["data"]]
        more = page["has_more"]

    assert walked == [message["id"] for message in reversed(control.messages())]


def test_a_listed_message_has_what_resend_lists(
    notify: Effect, sandbox: SandboxProcess, arguments: dict[str, Any], claim_id: str
) -> None:
    notify.function(**arguments)
    page = httpx.get(f"{sandbox.url}/emails?limit=1", headers={"Authorization": "Bearer re_1"}).json()

    [message] = page["data"]
    assert message["subject"] == f"Your claim {claim_id}"
    assert not {"tags", "text", "object"} & message.keys()


@pytest.mark.parametrize("asked", ["limit=0", "limit=101", "limit=x", "after=none", "before=none", "after=a&before=b"])
def test_a_wrong_page_is_refused(sandbox: SandboxProcess, asked: str) -> None:
    answer = httpx.get(f"{sandbox.url}/emails?{asked}", headers={"Authorization": "Bearer re_1"})

    assert (answer.status_code, answer.json()["name"]) == (422, "validation_error")


def test_the_list_has_what_was_sent_newest_first_and_knows_it_by_its_id_alone(
    notify: Effect, arguments: dict[str, Any], key: str
) -> None:
    first = notify.function(**arguments)
    second = notify.function(**{**arguments, "key": f"{key}-2"})

    assert notify.executed
    listed = list(itertools.islice(notify.executed(since=None), 2))
    assert [one.outcome for one in listed] == [second, first]
    assert [(one.key, one.identity) for one in listed] == [(None, None), (None, None)]
    assert listed[0].at >= listed[1].at


def test_the_list_is_read_page_by_page_to_its_begin(
    notify: Effect, control: SandboxControl, arguments: dict[str, Any], key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "PAGE", 2)
    sent = [notify.function(**{**arguments, "key": f"{key}-{number}"})["id"] for number in range(5)]
    assert notify.executed

    listed = [one.id for one in itertools.islice(notify.executed(since=None), 5)]
    assert listed == sent[::-1]
    assert list(notify.executed(since=datetime.now(UTC) + timedelta(days=1))) == []
    assert len(list(notify.executed(since=None))) == len(control.messages())


def test_a_list_of_messages_that_breaks_off_never_looks_like_its_end(
    notify: Effect, control: SandboxControl, sandbox: SandboxProcess, arguments: dict[str, Any]
) -> None:
    notify.function(**arguments)
    control.fault("emails", "drop_before", method="GET")
    stranger = notify_effect(api_key="none", sender=SENDER, base_url=sandbox.url)

    for effect in (notify, stranger):
        assert effect.executed
        with pytest.raises(Unreachable):
            list(effect.executed(since=None))


def test_one_message_is_retrieved_by_its_id(
    notify: Effect, sandbox: SandboxProcess, control: SandboxControl, arguments: dict[str, Any]
) -> None:
    sent = notify.function(**arguments)

    assert notify.retrieve
    found = notify.retrieve(executed_id=sent["id"])
    assert found
    assert found.outcome == sent
    assert notify.retrieve(executed_id="../nothing like an id") is None
    control.fault("emails", "drop_before", method="GET")
    with pytest.raises(Unreachable):
        notify.retrieve(executed_id=sent["id"])


MESSAGE = {"id": "m-1", "created_at": "2026-11-30T08:00:00Z"}


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>",
        [],
        None,
        {},
        {"data": None, "has_more": False},
        {"data": [], "has_more": True},
        {"data": [MESSAGE]},
        {"data": [1], "has_more": False},
        {"data": [None], "has_more": False},
        {"data": [{**MESSAGE, "id": 5}], "has_more": False},
        {"data": [{**MESSAGE, "id": ""}], "has_more": False},
        {"data": [{**MESSAGE, "created_at": "9999"}], "has_more": False},
        {"data": [{**MESSAGE, "created_at": "0001-01-01T00:00:00+14:00"}], "has_more": False},
        {"data": [{**MESSAGE, "created_at": None}], "has_more": False},
    ],
)
def test_a_list_that_cannot_be_read_is_doubt(mail: Canned, answer: object) -> None:
    mail.says(answer)

    with pytest.raises(Unreachable):
        listed(mail)


@pytest.mark.parametrize("ids", [("a", "a"), ("a", "b", "a")])
def test_a_page_that_is_followed_by_itself_is_not_read_for_ever(mail: Canned, ids: tuple[str, ...]) -> None:
    for one in ids:
        mail.says({"data": [{**MESSAGE, "id": one}], "has_more": True})

    with pytest.raises(Unreachable, match="followed by itself"):
        listed(mail)
    assert "after=a" in mail.asked[1]


def test_an_id_that_cannot_be_stored_is_written_as_an_escape(mail: Canned) -> None:
    mail.says({"data": [{**MESSAGE, "id": "m\ud800"}], "has_more": False})

    assert [one.id for one in listed(mail)] == ["m\\ud800"]


def test_a_message_answered_with_a_time_out_is_doubt(mail: Canned, arguments: dict[str, Any]) -> None:
    mail.says({"name": "timeout", "message": "slow"}, 408)

    fails(notify_effect(api_key="re_1", sender=SENDER, base_url=mail.url), arguments, Unreachable)
