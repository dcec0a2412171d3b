"""One approves a parked claim while another submits to its thread: the same input changes nothing, other input is refused, one payment."""

from __future__ import annotations

from pathlib import Path

from checkpointing import open_journal
from checkpointing.errors import InputChanged, RunBusy
from graph import DurableGraph, approve, thread
from tests.support.races import FEW, Side, race
from tests.support.short_claim import advanced, claim, payments, submit, thread_of


def approves(graph: DurableGraph, number: int) -> str:
    [asked] = graph.journal.approvals.of_thread(thread_of(number))
    graph.invoke(approve(asked), thread(thread_of(number), principal="ann"))
    return "approved"


def submits_again(graph: DurableGraph, number: int) -> str:
    try:
        return submit(graph, number)
    except RunBusy:
        return "busy"


def submits_other_input(graph: DurableGraph, number: int) -> str:
    try:
        graph.invoke({"claim_id": "another"}, thread(thread_of(number)))
    except InputChanged:
        return "refused"
    return "taken"


def test_a_resume_against_the_same_input_again_pays_once(url: str, tmp_path: Path) -> None:
    left = Side(approves, meets="approval.decide", prepare=submit)
    said = race(url, tmp_path, claim, left, Side(submits_again, meets="run.admit", prepare=submit))

    # The submission found the claim parked, or decided: the two met in either order.
    assert {left for left, _ in said} == {"approved"}
    assert "parked" in {right for _, right in said}
    assert {"busy", "advanced"} & {right for _, right in said}
    with open_journal(url) as journal:
        graph = claim(journal, tmp_path)
        for number in range(len(said)):
            assert advanced(graph, thread_of(number)) == "done"
            assert payments(tmp_path)[f"{number}"] == 1
            events = [entry.event for entry in journal.audit.entries(thread_of(number))]
            assert (events.count("run.admit"), events.count("approval.decide")) == (1, 1)
        assert list(journal.audit.verify()) == []


def test_a_resume_against_other_input_refuses_the_input_and_loses_nothing(url: str, tmp_path: Path) -> None:
    left = Side(approves, meets="approval.decide", prepare=submit)
    said = race(url, tmp_path, claim, left, Side(submits_other_input, meets="run.admit", prepare=submit), FEW)

    assert set(said) == {("approved", "refused")}
    with open_journal(url) as journal:
        for number in range(FEW):
            assert journal.runs.get(thread_of(number)).state == "done"
        assert list(journal.audit.verify()) == []
    assert payments(tmp_path) == {f"{number}": 1 for number in range(FEW)}
