"""Approvals over HTTP: what is listed for whom, who decides, and what whoever comes late is told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient

from checkpointing import Approval
from checkpointing.idempotency import PATIENCE
from tests.support.clock import MovingClock
from tests.support.desk import V1, Desk
from tests.support.desk_graph import TTL


def decide(client: TestClient, asked: Approval, type_: str = "approve", key: str | None = None, **more: Any) -> Any:
    headers = {} if key is None else {"idempotency-key": key}
    return client.post(f"{V1}/approvals/{asked.id}/decision", json={"type": type_, **more}, headers=headers)


def kind(answer: Any) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()["type"].rpartition("/")[2]


def listed(client: TestClient, **asked: Any) -> list[str]:
    """Return the threads of all pages, one at a time."""
    found, cursor = [], None
    while True:
        page = client.get(
            f"{V1}/approvals", params={**asked, "limit": 1, **({"cursor": cursor} if cursor else {})}
        ).json()
        found += [one["thread_id"] for one in page["items"]]
        cursor = page["next"]
        if cursor is None:
            return found


def test_a_decision_is_recorded_as_the_callers_and_wakes_the_run(desk: Desk) -> None:
    asked = desk.asked("0042")

    answer = decide(desk.client("ada", "approver"), asked, payload_hash=asked.payload_hash)

    assert (answer.status_code, answer.json()["state"], answer.json()["decided_by"]) == (200, "decided", "ada")
    assert desk.journal.runs.get(asked.thread_id).state == "admitted"
    assert desk.advance(asked.thread_id).state == "done"


def test_whoever_is_second_is_told_who_was_first_and_what_they_decided(desk: Desk) -> None:
    asked = desk.asked("0042")
    decide(desk.client("ada", "approver"), asked, "reject", reason="Not this car.")

    late = decide(desk.client("bob", "approver"), asked)

    assert kind(late) == (409, "already-decided")
    assert (late.json()["decided_by"], late.json()["decision"]) == (
        "ada",
        {"type": "reject", "reason": "Not this car."},
    )
    assert kind(decide(desk.client("ada", "approver"), asked, "reject", reason="Not this car.")) == (
        409,
        "already-decided",
    )


def test_a_decision_under_a_key_is_answered_again_though_its_server_died(
    new_desk: Callable[..., Desk], clock: MovingClock
) -> None:
    desk = new_desk(clock=clock)
    asked, ada = desk.asked("0042"), desk.client("ada", "approver")
    first = decide(ada, asked, "reject", key="k-1", reason="No.")
    with desk.journal.store.transaction("test.lost") as tx:
        tx.all("update idempotency_keys set status = null, answer = null")
    clock.move(PATIENCE)

    again = decide(ada, asked, "reject", key="k-1", reason="No.")

    assert (again.status_code, again.json()) == (200, first.json())
    assert decide(ada, asked, "reject", key="k-1", reason="No.").headers["idempotent-replayed"] == "true"
    assert kind(decide(ada, asked, key="k-1")) == (422, "key-reused")


def test_a_request_whose_server_died_first_hears_of_whoever_decided_meanwhile(
    new_desk: Callable[..., Desk], clock: MovingClock
) -> None:
    """Ada's server dies between beginning and deciding; Bob decides the same; Ada asks again under her key."""
    desk = new_desk(clock=clock)
    asked, ada = desk.asked("0042"), desk.client("ada", "approver")
    decide(ada, asked, "reject", key="k-1")
    with desk.journal.store.transaction("test.undone") as tx:
        tx.all("update idempotency_keys set status = null, answer = null")
        tx.all("update approvals set state = 'pending', decision = null, decided_by = null, decided_ms = null")
    decide(desk.client("bob", "approver"), asked, "reject")
    clock.move(PATIENCE)

    again = decide(ada, asked, "reject", key="k-1")

    assert (kind(again), again.json()["decided_by"]) == ((409, "already-decided"), "bob")


def test_after_the_end_of_its_time_it_is_too_late(new_desk: Callable[..., Desk], clock: MovingClock) -> None:
    desk = new_desk(clock=clock)
    asked, ada = desk.asked("0042"), desk.client("ada", "approver")
    clock.move(TTL)

    assert kind(decide(ada, asked)) == (409, "approval-expired")


def test_another_payload_than_the_one_shown_is_not_decided(desk: Desk) -> None:
    asked = desk.asked("0042")

    answer = decide(desk.client("ada", "approver"), asked, payload_hash="0" * 64)

    assert kind(answer) == (409, "payload-changed")
    assert answer.json()["approval"] == asked.id


def test_what_was_asked_anew_is_named(desk: Desk) -> None:
    """The later round is made by hand: what makes one is the graph's business and tried with it."""
    asked = desk.asked("0042")
    newer = "apr_newer"
    with desk.journal.store.transaction("test.anew") as tx:
        columns = [name for name in tx.all("select * from approvals limit 1")[0] if name not in ("id", "round")]
        kept = ", ".join(columns)
        tx.all(
            f"insert into approvals (id, round, {kept}) select :newer, 1, {kept} from approvals where id = :id",  # noqa: S608  # the table's own names
            newer=newer,
            id=asked.id,
        )
        tx.all("update approvals set state = 'superseded' where id = :id", id=asked.id)

    answer = decide(desk.client("ada", "approver"), asked)

    assert kind(answer) == (409, "payload-changed")
    assert answer.json()["approval"] == newer


@pytest.mark.parametrize(
    ("name", "more", "status", "problem"),
    [
        ("intake", {}, 403, "not-allowed"),  # who submitted it
        ("ada", {"limit": 4}, 403, "not-allowed"),
        ("ada", {"limit": 5}, 200, None),
    ],
)
def test_who_may_not_decide_is_told_so_whatever_their_role(
    desk: Desk, name: str, more: dict[str, Any], status: int, problem: str | None
) -> None:
    answer = decide(desk.client(name, "approver", **more), desk.asked("0042"))

    assert answer.status_code == status
    assert problem is None or kind(answer) == (status, problem)


def test_only_approvers_are_asked_and_only_what_is_asked_of_them_is_theirs(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk(approvers=("ada", "group:motor"))
    desk.asked("1")
    desk.asked("2", by="cid")
    cid, eve = desk.client("cid", "approver", groups=("motor",)), desk.client("eve", "approver", groups=("marine",))

    assert listed(desk.client("ada", "approver"), mine=True) == ["claim-1", "claim-2"]
    assert listed(cid, mine=True) == ["claim-1"]
    assert listed(eve, mine=True) == []
    assert listed(eve) == ["claim-1", "claim-2"]
    assert kind(decide(eve, desk.journal.approvals.pending()[0])) == (403, "not-allowed")


def test_a_submitter_sees_what_their_own_claims_ask(desk: Desk) -> None:
    own, other = desk.asked("1", by="sue"), desk.asked("2")
    sue = desk.client("sue", "submitter")

    assert listed(sue) == ["claim-1"]
    assert sue.get(f"{V1}/approvals/{own.id}").status_code == 200
    unseen, unknown = sue.get(f"{V1}/approvals/{other.id}"), sue.get(f"{V1}/approvals/apr_0")
    assert kind(unseen) == kind(unknown) == (404, "unknown-approval")
    assert unseen.json()["detail"].replace(other.id, "") == unknown.json()["detail"].replace("apr_0", "")


def test_lists_are_narrowed_and_paged(desk: Desk) -> None:
    ada = desk.client("ada", "approver")
    asked = [desk.asked(number) for number in range(4)]
    decide(ada, asked[3])

    assert listed(ada) == ["claim-0", "claim-1", "claim-2"]
    assert listed(ada, state="decided") == ["claim-3"]
    assert listed(ada, thread_id="claim-1", min_amount=5, max_amount=5, name="payout") == ["claim-1"]
    assert listed(ada, min_amount=6) == []


@pytest.mark.parametrize("cursor", ["", "x", "e30", "W10", "WzEsMiwzXQ", "bnVsbA", "MQ", "\N{BULLET}", "A" * 2000])
def test_a_cursor_that_is_none_is_refused(desk: Desk, cursor: str) -> None:
    assert desk.client("ada", "approver").get(f"{V1}/approvals", params={"cursor": cursor}).status_code in (400, 422)


def test_a_cursor_of_another_question_is_refused(desk: Desk) -> None:
    ada = desk.client("ada", "approver")
    desk.asked("1")
    desk.asked("2")
    cursor = ada.get(f"{V1}/approvals", params={"limit": 1}).json()["next"]

    for place, asked in (("approvals", {"name": "payout"}), ("runs", {})):
        answer = ada.get(f"{V1}/{place}", params={"cursor": cursor, **asked})
        assert kind(answer) == (400, "cursor-invalid")


def test_a_misspelt_filter_is_refused(desk: Desk) -> None:
    assert kind(desk.client("ada", "approver").get(f"{V1}/approvals?stat=decided")) == (422, "query-unknown")


def test_several_people_vote_and_the_votes_are_shown(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk(quorum=2)
    asked, ada, bob = desk.asked("0042"), desk.client("ada", "approver"), desk.client("bob", "approver")

    first = decide(ada, asked)
    votes = ada.get(f"{V1}/approvals/{asked.id}/votes").json()
    second = decide(bob, asked)

    assert (first.json()["state"], second.json()["state"]) == ("pending", "decided")
    assert [(vote["principal"], vote["decision"]) for vote in votes] == [("ada", {"type": "approve"})]


def test_what_was_decided_of_the_like_is_shown(desk: Desk) -> None:
    ada = desk.client("ada", "approver")
    first, second = desk.asked("1"), desk.asked("2")
    decide(ada, first, "reject", reason="No.")

    found = ada.get(f"{V1}/approvals/{second.id}/similar").json()

    assert [(one["thread_id"], one["decision"]["reason"]) for one in found["items"]] == [("claim-1", "No.")]
    assert found["next"] is None


def test_time_people_and_the_question_itself_are_changed_by_whom_it_is_up_to(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk(approvers=("ada",))
    asked = desk.asked("0042")
    place = f"{V1}/approvals/{asked.id}"
    ada, eve, op = desk.client("ada", "approver"), desk.client("eve", "approver"), desk.client("op", "operator")

    assert kind(eve.post(f"{place}/extend", json={"hours": 1})) == (403, "not-allowed")
    longer = op.post(f"{place}/extend", json={"hours": 1.5, "reason": "Holidays."}).json()
    given = op.post(f"{place}/reassign", json={"to": ["eve", "group:motor"]}).json()
    withdrawn = eve.post(f"{place}/withdraw", json={"reason": "Asked in error."}).json()

    assert asked.expires_at is not None
    assert longer["expires_at"] == (asked.expires_at + timedelta(hours=1.5)).isoformat().replace("+00:00", "Z")
    assert given["approvers"] == ["eve", "group:motor"]
    assert (withdrawn["state"], withdrawn["withdrawn_by"], withdrawn["withdrawn_why"]) == (
        "withdrawn",
        "eve",
        "Asked in error.",
    )
    assert kind(ada.post(f"{place}/extend", json={"hours": 1})) in ((403, "not-allowed"), (409, "already-decided"))


def test_a_decision_on_a_dead_run_stands(desk: Desk) -> None:
    asked = desk.asked("0042")
    with desk.journal.store.transaction("test.die") as tx:
        tx.all("update runs set state = 'dead', reason = 'attempts'")

    assert decide(desk.client("ada", "approver"), asked).json()["state"] == "decided"


def test_what_somebody_said_who_is_not_asked_any_more_does_not_count(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk(quorum=2, approvers=["group:seniors"])
    asked = desk.asked("0042")
    ada, ben = desk.client("ada", "approver", groups=("seniors",)), desk.client("ben", "approver")
    decide(ada, asked, "approve")
    desk.client("op", "operator").post(f"{V1}/approvals/{asked.id}/reassign", json={"to": ["ben", "carl"]})

    assert decide(ben, asked, "approve").json()["state"] == "pending"
    assert decide(desk.client("carl", "approver"), asked, "approve").json()["decision"]["with"] == ["ben"]
    assert list(desk.journal.audit.verify()) == []


def test_an_operator_who_says_who_is_asked_does_not_decide(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk(approvers=["ada"])
    asked = desk.asked("0042")
    both, later = desk.client("mia", "operator", "approver"), desk.client("mia", "approver", groups=("motor",))
    both.post(f"{V1}/approvals/{asked.id}/reassign", json={"to": ["mia", "group:motor"]})

    assert kind(decide(both, asked, "approve")) == (403, "not-allowed")
    assert kind(decide(later, asked, "approve")) == (403, "not-allowed")
    [entry] = [one for one in desk.journal.audit.entries("claim-0042") if one.event == "approval.reassign"]
    assert (entry.body["to"], entry.body["operator"]) == (["mia", "group:motor"], True)


def test_an_operator_takes_nothing_back(desk: Desk) -> None:
    asked, decided = desk.asked("1"), desk.asked("2")
    decide(desk.client("ada", "approver"), decided, "approve")
    for client in (desk.client("op", "operator"), desk.client("op", "operator", "submitter")):
        for one in (asked, decided):
            assert client.post(f"{V1}/approvals/{one.id}/withdraw", json={}).status_code == 403

    assert desk.journal.approvals.get(asked.id).state == "pending"
