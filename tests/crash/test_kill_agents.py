"""
An agent killed by SIGKILL at every write between a person's decision and the end, and while its model is asked: one payment, whole conversation.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from checkpointing import Journal, open_journal
from checkpointing.errors import RunBusy
from graph import thread
from tests.support.bank import Bank
from tests.support.paying_agent import THREAD, act, one_process, paying_agent
from tests.support.processes import finish, killed, start, until

MODES = ("batched", "per_call")
APPROVING = [
    "before approval.decide", "after approval.decide", "after lease.take", "after run.start", "before effect.claim", "after effect.claim",
    "executed", "before effect.settle", "after effect.settle", "before checkpoint.put_writes", "after checkpoint.put_writes",
    "before checkpoint.put", "after checkpoint.put", "before run.finish", "after run.finish",
]  # fmt: skip
SUBMITTING = [
    "before effect.claim", "after effect.claim", "before effect.settle", "after effect.settle", "before approval.open",
    "after approval.open", "before run.park", "after run.park",
]  # fmt: skip

INSIDE = [
    "after approval.decide",
    "after effect.claim",
    "executed",
    "after effect.settle",
    "before checkpoint.put",
    "after checkpoint.put",
]


def run_to_the_end(url: str, folder: Path, mode: str) -> Journal:
    """Do what is left to do, in this process, as soon as the dead one's lease allows it."""
    journal = open_journal(url)
    graph = paying_agent(journal, folder, mode)

    def acted(action: str) -> bool | None:
        try:
            act(graph, action)
        except RunBusy:
            return None
        return True

    until(lambda: acted("submit"))
    if journal.approvals.pending(thread_id=THREAD):
        until(lambda: acted("approve"))
    until(lambda: acted("resume"))
    return journal


def check_once(journal: Journal, folder: Path, mode: str, answered: tuple[str, ...] = ("c1",)) -> None:
    """One payment, for the first claim, one decision, an answer to every call, in this order, and a whole record."""
    run = journal.runs.get(THREAD)
    assert (run.state, run.error) == ("done", None)
    assert [call["claim_id"] for call in Bank(folder / "bank").executed] == ["1"]
    assert {record.state for record in journal.effects.list(thread_id=THREAD)} == {"settled"}
    assert [row.state for row in journal.approvals.of_thread(THREAD)] == ["decided"]
    messages = paying_agent(journal, folder, mode).get_state(thread(THREAD)).values["messages"]
    made = [call["id"] for message in messages if isinstance(message, AIMessage) for call in message.tool_calls]
    told = tuple(message.tool_call_id for message in messages if isinstance(message, ToolMessage))
    assert (told, len(made), set(made)) == (answered, len(answered), set(answered))
    assert list(journal.audit.verify()) == []
    journal.close()


def asked(folder: Path) -> int:
    return len((folder / "asked").read_text().splitlines())


@pytest.mark.parametrize(("point", "mode"), [*product(APPROVING, MODES), *product(INSIDE, ["inside"])])
def test_killed_between_a_decision_and_the_end(url: str, tmp_path: Path, mode: str, point: str) -> None:
    finish(start(one_process, url, tmp_path, mode, "submit"))
    killed(start(one_process, url, tmp_path, mode, "approve", point))

    check_once(run_to_the_end(url, tmp_path, mode), tmp_path, mode)
    # LangGraph writes a task's results in the background and may be asking the model by the time the process dies.
    assert asked(tmp_path) in ((2, 3) if "put_writes" in point else (2,))


@pytest.mark.parametrize("point", INSIDE)
def test_killed_between_keyed_decisions_about_two_calls_and_the_end(url: str, tmp_path: Path, point: str) -> None:
    """What was keyed by call is recorded as the review takes it, so whoever carries on pays what was approved and not what was rejected."""
    finish(start(one_process, url, tmp_path, "several", "submit"))
    killed(start(one_process, url, tmp_path, "several", "approve", point))

    check_once(run_to_the_end(url, tmp_path, "several"), tmp_path, "several", answered=("c2", "c1"))


@pytest.mark.parametrize("point", SUBMITTING)
def test_killed_while_the_model_is_asked(url: str, tmp_path: Path, point: str) -> None:
    """The model is asked after the claim; a recorded answer is read, whatever dies after it, and one that was not is asked for again."""
    killed(start(one_process, url, tmp_path, "batched", "submit", point))

    check_once(run_to_the_end(url, tmp_path, "batched"), tmp_path, "batched")
    assert asked(tmp_path) == (3 if point == "before effect.settle" else 2)


@pytest.mark.parametrize("mode", MODES)
def test_killed_again_and_again_after_the_bank_executed(url: str, tmp_path: Path, mode: str) -> None:
    finish(start(one_process, url, tmp_path, mode, "submit"))
    killed(start(one_process, url, tmp_path, mode, "approve", "executed"))
    until(lambda: _resume_and_die(url, tmp_path, mode))
    until(lambda: _resume_and_die(url, tmp_path, mode))

    assert len(Bank(tmp_path / "bank").calls) == 3
    check_once(run_to_the_end(url, tmp_path, mode), tmp_path, mode)


def _resume_and_die(url: str, folder: Path, mode: str) -> bool | None:
    before = len(Bank(folder / "bank").calls)
    start(one_process, url, folder, mode, "resume", "executed").join(60)
    return True if len(Bank(folder / "bank").calls) > before else None
