"""The effect `open_ticket`, and the ticket desk it talks to."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from checkpointing.errors import Declined, Rejected, ToolError, UnguardedEffect, Unreachable
from tests.support.canned import Canned, canned
from tools.effect import Effect
from tools.sandbox import SandboxControl, SandboxProcess
from tools.tickets import CHECKED, external_id, ticket_effect
from tools.wire import NoConnection

TOKEN = {"Authorization": "Bearer zd_1"}


@pytest.fixture
def open_ticket(sandbox: SandboxProcess) -> Effect:
    return ticket_effect(api_key="zd_1", base_url=sandbox.url)


@pytest.fixture
def arguments(claim_id: str, key: str) -> dict[str, Any]:
    return {"subject": f"Claim {claim_id}", "text": "The photo is blurred.", "key": key}


@pytest.fixture
def desk() -> Iterator[Canned]:
    with canned() as told:
        yield told


def fails(effect: Effect, arguments: dict[str, Any], meaning: type[ToolError]) -> str:
    with pytest.raises(ToolError) as raised:
        effect.function(**arguments)
    assert type(raised.value) is meaning
    return str(raised.value)


def look_up(effect: Effect, arguments: dict[str, Any]) -> Any:
    assert effect.find
    return effect.find(**arguments)


def test_a_ticket_carries_the_key_as_its_external_id(
    open_ticket: Effect, control: SandboxControl, arguments: dict[str, Any], key: str
) -> None:
    opened = open_ticket.function(**arguments)

    [ticket] = control.tickets(key)
    assert opened == {"id": ticket["id"], "external_id": key, "subject": arguments["subject"]}
    assert ticket["description"] == "The photo is blurred."


def test_who_asks_stands_in_the_ticket(
    open_ticket: Effect, control: SandboxControl, arguments: dict[str, Any], key: str
) -> None:
    requester = {"name": "Mara Quendel", "email": "mara@example.com"}
    open_ticket.function(**arguments, requester=requester)

    assert control.tickets(key)[0]["requester"] == requester


def test_the_effect_is_declared_without_keys(open_ticket: Effect) -> None:
    assert (open_ticket.name, open_ticket.receiver) == ("open_ticket", CHECKED)
    assert not CHECKED.honours_keys
    with pytest.raises(UnguardedEffect):
        open_ticket(subject="x")


def test_it_checks_before_it_acts(
    open_ticket: Effect, control: SandboxControl, arguments: dict[str, Any], key: str
) -> None:
    opened = open_ticket.function(**arguments)

    assert open_ticket.function(**arguments) == opened
    assert len(control.tickets(key)) == 1
    assert [call["method"] for call in control.calls()[-3:]] == ["GET", "POST", "GET"]


def test_the_look_up_finds_what_the_key_opened_and_nothing_else(open_ticket: Effect, arguments: dict[str, Any]) -> None:
    assert look_up(open_ticket, arguments) is None
    opened = open_ticket.function(**arguments)

    assert look_up(open_ticket, arguments) == opened
    assert look_up(open_ticket, {**arguments, "key": "another"}) is None
    assert look_up(open_ticket, {**arguments, "key": arguments["key"][:-1]}) is None


def test_of_two_tickets_with_one_external_id_the_first_counts(
    open_ticket: Effect, sandbox: SandboxProcess, arguments: dict[str, Any], key: str
) -> None:
    opened = open_ticket.function(**arguments)
    body = {"ticket": {"subject": "again", "comment": {"body": "y"}, "external_id": key}}
    httpx.post(f"{sandbox.url}/api/v2/tickets.json", json=body, headers=TOKEN)

    assert look_up(open_ticket, arguments) == opened


@pytest.mark.parametrize("odd", ["a,b:pay.0:x:00", "with space", "x" * 256, "ü"])
def test_a_key_that_cannot_be_listed_by_is_shortened(
    open_ticket: Effect, arguments: dict[str, Any], claim_id: str, odd: str
) -> None:
    arguments["key"] = f"{odd}{claim_id}"
    opened = open_ticket.function(**arguments)

    assert opened["external_id"] == external_id(arguments["key"])
    assert len(opened["external_id"]) == 35
    assert look_up(open_ticket, arguments) == opened


def test_an_agents_api_token_is_sent_with_the_agents_address(
    sandbox: SandboxProcess, arguments: dict[str, Any]
) -> None:
    agent = ticket_effect(api_key="t0k3n", email="agent@carrier.example", base_url=sandbox.url)

    assert agent.function(**arguments)["id"]


@pytest.mark.parametrize("change", [{"text": " "}, {"subject": "x" * 256}, {"requester": {"name": "", "email": "x"}}])
def test_a_wrong_ticket_is_rejected(open_ticket: Effect, arguments: dict[str, Any], change: dict[str, Any]) -> None:
    assert "answered 422" in fails(open_ticket, {**arguments, **change}, Rejected)


def test_a_requester_whom_the_desk_suspended_is_declined(open_ticket: Effect, arguments: dict[str, Any]) -> None:
    requester = {"name": "Mara", "email": "suspended-1@example.com"}

    assert "Mara is suspended" in fails(open_ticket, {**arguments, "requester": requester}, Declined)


@pytest.mark.parametrize("api_key", ["", "revoked-1"])
def test_a_wrong_api_key_is_rejected_and_as_a_look_up_it_is_doubt(
    sandbox: SandboxProcess, arguments: dict[str, Any], api_key: str
) -> None:
    stranger = ticket_effect(api_key=api_key, base_url=sandbox.url)

    fails(stranger, arguments, Rejected)
    with pytest.raises(Unreachable):
        look_up(stranger, arguments)


@pytest.mark.parametrize(
    ("kind", "opened"),
    [("drop_before", 0), ("drop_after", 1), ("rate_limit", 0), ("error_500", 0), ("error_500_after", 1)],
)
def test_doubt_is_unreachable(
    *, open_ticket: Effect, control: SandboxControl, arguments: dict[str, Any], key: str, kind: str, opened: int
) -> None:
    control.fault("tickets", kind, match=key)

    fails(open_ticket, arguments, Unreachable)
    assert len(control.tickets(key)) == opened
    assert (look_up(open_ticket, arguments) is not None) == (opened == 1)


@pytest.mark.parametrize("kind", ["drop_after", "rate_limit", "error_500"])
def test_a_check_that_fails_opens_nothing(
    open_ticket: Effect, control: SandboxControl, arguments: dict[str, Any], key: str, kind: str
) -> None:
    control.fault("tickets", kind, method="GET")

    fails(open_ticket, arguments, Unreachable)
    assert control.tickets(key) == []


def test_nobody_listening_is_no_connection(arguments: dict[str, Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"

    fails(ticket_effect(api_key="zd_1", base_url=url), arguments, NoConnection)


@pytest.mark.parametrize(
    ("status", "body", "meaning"),
    [
        (200, {"tickets": "none"}, Unreachable),
        (200, [], Unreachable),
        (200, b"<html>", Unreachable),
        (302, {}, Unreachable),
        (409, {"error": "DatabaseConflict"}, Unreachable),
        (404, {"error": {"title": "No help desk at this address"}}, Rejected),
        (403, {"error": "Forbidden"}, Rejected),
    ],
)
def test_an_answer_to_the_check_that_is_no_list_opens_nothing(
    desk: Canned, arguments: dict[str, Any], status: int, body: object, meaning: type[ToolError]
) -> None:
    desk.says(body, status)

    fails(ticket_effect(api_key="zd_1", base_url=desk.url), arguments, meaning)
    assert len(desk.asked) == 1


@pytest.mark.parametrize("body", [{}, {"ticket": {}}, {"ticket": {"id": "7"}}, [], {"ticket": None}])
def test_a_ticket_without_an_id_is_doubt(desk: Canned, arguments: dict[str, Any], body: object) -> None:
    desk.says({"tickets": [], "meta": {"has_more": False}})
    desk.says(body, 201)

    fails(ticket_effect(api_key="zd_1", base_url=desk.url), arguments, Unreachable)


def test_a_desk_that_does_not_know_the_filter_gives_away_nobodys_ticket(
    desk: Canned, arguments: dict[str, Any], key: str
) -> None:
    """It lists everybody's tickets, page after page; ours is on the second."""
    desk.says({"tickets": [{"id": 1, "external_id": None}], "meta": {"has_more": True, "after_cursor": "x="}})
    desk.says({"tickets": [{"id": 2, "external_id": key, "subject": "s"}], "meta": {"has_more": False}})

    assert look_up(ticket_effect(api_key="zd_1", base_url=desk.url), arguments)["id"] == 2
    assert "page%5Bafter%5D=x%3D" in desk.asked[1]


@pytest.mark.parametrize(
    "following",
    [
        {"meta": {"has_more": True, "after_cursor": None}},
        {"meta": {"has_more": True, "after_cursor": ""}},
        {"meta": {"has_more": True, "after_cursor": 7}},
        {"meta": {"has_more": True}},
        {"next_page": "https://desk.example/api/v2/tickets.json?page=2", "count": 101},
    ],
)
def test_more_tickets_that_nobody_can_ask_for_are_not_the_end(
    desk: Canned, arguments: dict[str, Any], following: dict[str, Any]
) -> None:
    """Ours may be among them, and whoever took this for the end would open a second one."""
    desk.says({"tickets": [{"id": 1, "external_id": "theirs"}], **following})

    said = fails(ticket_effect(api_key="zd_1", base_url=desk.url), arguments, Unreachable)
    assert "more tickets" in said
    assert len(desk.asked) == 1


@pytest.mark.parametrize("cursors", ["xx", "xyx"])
def test_a_page_that_is_followed_by_itself_is_not_walked_for_ever(
    desk: Canned, arguments: dict[str, Any], cursors: str
) -> None:
    for cursor in cursors:
        desk.says({"tickets": [], "meta": {"has_more": True, "after_cursor": cursor}})

    with pytest.raises(Unreachable, match="followed by itself"):
        look_up(ticket_effect(api_key="zd_1", base_url=desk.url), arguments)
