"""What operators and auditors do over HTTP: runs, dead letters, effects in doubt, the audit, and how the server stands."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from prometheus_client.parser import text_string_to_metric_families

from tests.support.clock import MovingClock
from tests.support.desk import V1, Desk
from tests.support.desk_graph import TTL


def die(desk: Desk, thread_id: str, reason: str = "attempts") -> None:
    with desk.journal.store.transaction("test.die") as tx:
        tx.all("update runs set state = 'dead', reason = :reason where thread_id = :id", reason=reason, id=thread_id)


def doubt(desk: Desk, thread_id: str) -> str:
    """Have the run pay, and nobody know whether it did; return the effect's key."""
    [asked] = desk.journal.approvals.pending(thread_id=thread_id)
    desk.journal.approvals.decide(asked.id, {"type": "approve"}, principal="ada")
    desk.advance(thread_id)
    with desk.journal.store.transaction("test.doubt") as tx:
        tx.all("update effects set state = 'in_doubt', outcome = null where thread_id = :id", id=thread_id)
        [row] = tx.all("select key from effects where thread_id = :id", id=thread_id)
    return str(row["key"])


def kind(answer: Any) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()["type"].rpartition("/")[2]


def test_runs_are_listed_by_state_graph_and_reason(desk: Desk) -> None:
    for number in range(3):
        desk.submit(number)
    die(desk, "claim-1")
    op = desk.client("op", "operator")

    def listed(**asked: Any) -> list[str]:
        return [one["thread_id"] for one in op.get(f"{V1}/runs", params=asked).json()["items"]]

    assert sorted(listed()) == ["claim-0", "claim-1", "claim-2"]
    assert sorted(listed(state="parked", graph="claims", reason="approval")) == ["claim-0", "claim-2"]
    assert listed(state="dead") == ["claim-1"]
    assert listed(graph="others") == listed(state="done") == []
    first = op.get(f"{V1}/runs", params={"limit": 2}).json()
    assert len(op.get(f"{V1}/runs", params={"limit": 2, "cursor": first["next"]}).json()["items"]) == 1


def test_an_approver_sees_the_run_behind_an_approval_and_no_other(desk: Desk) -> None:
    desk.submit("1")
    desk.app.graph.submit({"claim_id": "2", "documents": []}, {"configurable": {"thread_id": "claim-2"}})
    ada = desk.client("ada", "approver")

    assert [one["thread_id"] for one in ada.get(f"{V1}/runs").json()["items"]] == ["claim-1"]
    assert ada.get(f"{V1}/runs/claim-1/timeline").json()["steps"][-1]["nodes"] == ["approve"]
    assert kind(ada.get(f"{V1}/runs/claim-2")) == (404, "unknown-run")


def test_a_run_that_waits_for_its_next_attempt_is_made_ready_at_once(
    new_desk: Callable[..., Desk], clock: MovingClock
) -> None:
    desk = new_desk(clock=clock)
    desk.submit("0042")
    with desk.journal.store.transaction("test.wait") as tx:
        tx.all("update runs set state = 'admitted', due_ms = :now + 3600000")
    assert desk.journal.runs.due("claims", limit=9) == ()

    answer = desk.client("op", "operator").post(f"{V1}/runs/claim-0042/resume")

    assert answer.status_code == 202
    assert desk.journal.runs.due("claims", limit=9) == ("claim-0042",)
    assert [one.actor for one in desk.journal.audit.entries("claim-0042") if one.event == "run.nudge"] == ["op"]


def test_a_run_that_waits_for_a_person_is_not_moved_by_a_resume(desk: Desk) -> None:
    before = desk.submit("0042")

    assert desk.client("op", "operator").post(f"{V1}/runs/claim-0042/resume").json()["state"] == "parked"
    assert desk.journal.runs.get("claim-0042") == before


def test_dead_letters_are_taken_up_again_or_given_up_with_a_reason(desk: Desk) -> None:
    for number in range(3):
        desk.submit(number)
        die(desk, f"claim-{number}", "rejected" if number == 2 else "attempts")
    op = desk.client("op", "operator")
    place = f"{V1}/dead-letters"

    first = op.get(place, params={"limit": 1, "reason": "attempts"}).json()
    second = op.get(place, params={"limit": 1, "reason": "attempts", "cursor": first["next"]}).json()
    assert [one["thread_id"] for one in (*first["items"], *second["items"])] == ["claim-0", "claim-1"]
    assert second["next"] is None
    assert op.post(f"{place}/claim-0/redrive", json={"reason": " "}).status_code == 422
    redriven = op.post(f"{place}/claim-0/redrive", json={"reason": "new key"})
    assert (redriven.status_code, redriven.json()["state"]) == (202, "admitted")
    discarded = op.post(f"{place}/claim-1/discard", json={"reason": "paid by cheque"}).json()
    assert (discarded["discarded_by"], discarded["discarded_why"]) == ("op", "paid by cheque")
    assert [one["thread_id"] for one in op.get(place).json()["items"]] == ["claim-2"]
    assert op.get(f"{place}/claim-1").json()["discarded_by"] == "op"
    assert kind(op.get(f"{place}/claim-0")) == (404, "unknown-run")
    assert kind(op.post(f"{place}/claim-1/redrive", json={"reason": "x"})) == (409, "run-discarded")
    assert kind(op.post(f"{place}/claim-0/discard", json={"reason": "x"})) == (422, "input-refused")


def test_an_effect_in_doubt_is_found_and_resolved(desk: Desk) -> None:
    desk.submit("0042")
    key = doubt(desk, "claim-0042")
    op = desk.client("op", "operator")
    place = f"{V1}/effects/{quote(key, safe='')}"

    [found] = op.get(f"{V1}/effects", params={"state": "in_doubt"}).json()["items"]
    assert (found["key"], found["arguments"]["claim_id"]) == (key, "0042")
    assert op.get(place).json() == found
    assert op.post(f"{place}/resolve", json={"happened": False, "outcome": {}}).status_code == 422
    assert op.post(f"{place}/resolve", json={"happened": True}).status_code == 422
    resolved = op.post(f"{place}/resolve", json={"happened": True, "outcome": {"id": "p-1"}}).json()
    assert (resolved["state"], resolved["outcome"]) == ("settled", {"id": "p-1"})
    assert kind(op.post(f"{place}/resolve", json={"happened": False})) == (409, "already-settled")
    assert kind(op.get(f"{V1}/effects/none")) == (404, "unknown-effect")


def test_the_audit_is_read_page_by_page(desk: Desk) -> None:
    desk.submit("0042")
    auditor = desk.client("eva", "auditor")

    first = auditor.get(f"{V1}/runs/claim-0042/audit", params={"limit": 2}).json()
    rest = auditor.get(f"{V1}/runs/claim-0042/audit", params={"cursor": first["next"]}).json()

    entries = desk.journal.audit.entries("claim-0042")
    assert [one["hash"] for one in (*first["items"], *rest["items"])] == [entry.hash for entry in entries]


def test_a_timeline_of_another_graph_is_refused_in_words(desk: Desk) -> None:
    desk.submit("0042")
    with desk.journal.store.transaction("test.other") as tx:
        tx.all("update runs set graph = 'notices'")

    assert kind(desk.client("op", "operator").get(f"{V1}/runs/claim-0042/timeline")) == (409, "graph-changed")


def test_the_counts_are_what_prometheus_reads_and_name_no_thread(
    new_desk: Callable[..., Desk], clock: MovingClock
) -> None:
    desk = new_desk(clock=clock)
    for number in range(4):
        desk.submit(number)
    doubt(desk, "claim-0")
    die(desk, "claim-1")
    clock.move(TTL)
    with desk.journal.store.transaction("test.ready") as tx:
        tx.all("update runs set state = 'admitted', due_ms = :now - 7000 where thread_id = 'claim-2'")
    desk.client("sue", "submitter")

    answer = desk.client("op", "operator").get("/metrics")

    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }
    assert {name[0] for name in found if not name[0].startswith("counterfoil_")} == set()
    assert found["counterfoil_runs", ("graph", "claims"), ("state", "parked")] == 1
    assert found["counterfoil_runs", ("graph", "claims"), ("state", "running")] == 0
    assert found["counterfoil_approvals_pending", ("name", "payout")] == 3
    assert found["counterfoil_approvals_overdue", ("name", "payout")] == 3
    assert found["counterfoil_dead_letters", ("reason", "attempts")] == 1
    assert found["counterfoil_effects_in_doubt", ("effect", "pay")] == 1
    assert found["counterfoil_queue_ready", ("graph", "claims")] == 1
    assert found["counterfoil_queue_lag_seconds", ("graph", "claims")] == 7
    assert re.search("claim-[0-9]|apr_|ada", answer.text) is None


def test_an_empty_journal_has_counts_too(desk: Desk) -> None:
    assert "counterfoil_dead_letters 0\n" in desk.client("op", "auditor").get("/metrics").text


def test_a_server_is_ready_where_its_journal_is_and_alive_all_the_same(desk: Desk) -> None:
    nobody = desk.anonymous()
    assert nobody.get("/readyz").json() == {"status": "ready"}

    with desk.journal.store.transaction("test.older") as tx:
        tx.all("delete from counterfoil_schema where version = (select max(version) from counterfoil_schema)")
    refused = nobody.get("/readyz")

    assert (kind(refused), refused.headers["retry-after"]) == ((503, "journal-away"), "2")
    assert nobody.get("/healthz").json() == {"status": "alive"}
