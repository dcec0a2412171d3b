"""Approvals over HTTP: what is listed, who decides, and what whoever comes late is told."""

from __future__ import annotations

from tests.support.desk import V1, Desk


def test_a_decision_is_recorded_as_the_callers_and_wakes_the_run(desk: Desk) -> None:
    asked = desk.asked("0042")
    body = {"type": "approve", "payload_hash": asked.payload_hash}

    answer = desk.client("ada", "approver").post(f"{V1}/approvals/{asked.id}/decision", json=body)

    assert (answer.status_code, answer.json()["state"], answer.json()["decided_by"]) == (200, "decided", "ada")
    assert desk.journal.runs.get(asked.thread_id).state == "admitted"
    assert desk.advance(asked.thread_id).state == "done"
