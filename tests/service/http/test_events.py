"""A run's progress as server-sent events: from the beginning, from where a stream broke, and to its end."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Any

import pytest

from checkpointing import Journal
from checkpointing.audit import append
from graph import thread
from service.http import events
from service.worker.draining import Draining
from tests.support.desk import V1, Desk


def read(text: str) -> list[dict[str, Any]]:
    """Return the events of a stream: their names, ids and data."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if line and not line.startswith(":"))
        if "data" in fields:
            found.append({**fields, "data": json.loads(fields["data"])})
    return found


def watch(desk: Desk, thread_id: str, last: object = None) -> Any:
    headers = {} if last is None else {"last-event-id": str(last)}
    return desk.client("ada", "operator").get(f"{V1}/runs/{thread_id}/events", headers=headers)


def test_a_stream_tells_all_that_happened_and_ends_where_the_run_rests(desk: Desk) -> None:
    run = desk.submit("0042")

    answer = watch(desk, run.thread_id)

    assert answer.headers["content-type"].startswith("text/event-stream")
    *told, rest = read(answer.text)
    entries = desk.journal.audit.entries(run.thread_id)
    assert [(one["event"], int(one["id"])) for one in told] == [(entry.event, entry.seq) for entry in entries]
    assert (rest["event"], rest["id"], rest["data"]) == (
        "rest",
        told[-1]["id"],
        {"state": "parked", "reason": "approval"},
    )


def test_an_event_says_what_happened_and_nothing_of_the_payload(desk: Desk) -> None:
    run = desk.submit("0042")

    assert {frozenset(one["data"]) for one in read(watch(desk, run.thread_id).text)[:-1]} == {
        frozenset({"seq", "at", "event", "subject"})
    }


def test_a_stream_that_broke_goes_on_after_the_last_event_its_client_has(desk: Desk) -> None:
    run = desk.submit("0042")
    everything = read(watch(desk, run.thread_id).text)

    assert read(watch(desk, run.thread_id, last=everything[1]["id"]).text) == everything[2:]


def test_who_has_everything_of_a_run_that_rests_is_told_to_ask_no_more(desk: Desk) -> None:
    run = desk.submit("0042")
    last = read(watch(desk, run.thread_id).text)[-1]["id"]

    assert watch(desk, run.thread_id, last=last).status_code == 204


@pytest.mark.parametrize("last", ["", "x", "-1", "1.5", "9" * 40, "1\u00b2"])
def test_a_last_event_that_is_none_is_refused(desk: Desk, last: str) -> None:
    run = desk.submit("0042")

    answer = desk.client("ada", "operator").get(
        f"{V1}/runs/{run.thread_id}/events", headers={b"last-event-id": last.encode("latin-1")}
    )

    assert (answer.status_code, answer.json()["type"].rpartition("/")[2]) == (400, "header-invalid")


def test_a_stream_ends_when_the_server_is_asked_to(desk: Desk) -> None:
    """The run does not rest: without the drain the stream would go on."""
    desk.journal.runs.nudge(desk.submit("0042").thread_id, principal="op")
    draining = Draining()
    draining.ask()

    async def told() -> list[bytes]:
        return [one async for one in events._told(partial(events._look, desk.journal, "claim-0042"), 0, draining)]

    assert asyncio.run(told()) == [b"retry: 2000\n\n"]


def test_a_stream_does_not_last_for_ever(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "LONGEST_S", 0)
    run = desk.submit("0042")

    assert read(watch(desk, run.thread_id).text) == []


def test_there_are_only_so_many_streams(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_STREAMS", 0)
    run = desk.submit("0042")

    answer = watch(desk, run.thread_id)

    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")


def test_streams_that_ended_are_not_counted(desk: Desk) -> None:
    watch(desk, desk.submit("0042").thread_id)

    assert desk.api.state.streams.open == 0


def test_a_stream_ends_when_the_token_it_came_by_is_revoked(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"claim_id": "0042", "documents": []}
    desk.app.graph.submit(given, thread("claim-0042", principal="intake"))
    token, secret = desk.journal.tokens.add(principal="ada", roles=["operator"], by="test")
    look, looks = events._look, list[int]()

    def looked(journal: Journal, thread_id: str, after: int) -> events.Look:
        found = look(journal, thread_id, after)
        looks.append(after)
        if len(looks) == 2:  # the first of the stream
            journal.tokens.revoke(token.id, by="test")
            with journal.store.transaction("test.happen") as tx:
                append(tx, thread_id, "test.happened", actor="somebody", subject="after")
        return found

    monkeypatch.setattr(events, "LONGEST_S", 2.0)
    monkeypatch.setattr(events, "_look", looked)
    answer = desk.anonymous({"authorization": f"Bearer {secret}"}).get(f"{V1}/runs/claim-0042/events")

    assert [one["event"] for one in read(answer.text)] == ["run.admit"]
