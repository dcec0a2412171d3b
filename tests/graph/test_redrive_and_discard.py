"""What people do with a dead letter: take it up again where it stands, or give it up for good."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from checkpointing import Journal, dead_letters
from checkpointing.errors import (
    AlreadyDecided,
    EffectInDoubt,
    InputRefused,
    NotAllowed,
    NotRetryable,
    RunDead,
    RunDiscarded,
    UnknownThread,
)
from checkpointing.store import Row, Tx
from graph import DurableGraph, DurableState, answer, durable, thread
from nodes import approval_node, effect_node
from tests.support.bank import Bank
from tests.support.clock import MovingClock
from tools import Receiver

ID = "claim-0042"
THREAD = thread(ID)
OPERATOR = "operator-3"


class State(DurableState):
    claim_id: str
    amount: int
    closed: bool


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank(tmp_path / "bank")


@pytest.fixture
def journal(opened: Callable[..., Journal], clock: MovingClock) -> Journal:
    return opened(clock=clock)


class Archive:
    """Takes nothing until it is mended."""

    def __init__(self) -> None:
        self.broken = True

    def close(self, state: State) -> dict[str, Any]:
        if self.broken:
            raise NotRetryable("the archive is full")
        return {"closed": True}


def paying(journal: Journal, bank: Bank, archive: Archive, *, receiver: Receiver | None = None) -> DurableGraph:
    """START ─▶ pay ─▶ close."""
    pay = bank.effect(receiver) if receiver else bank.effect()

    def arguments(state: Any) -> dict[str, Any]:
        return {"claim_id": state["claim_id"], "amount": state["amount"]}

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("pay", effect_node(pay, journal, arguments=arguments))
    builder.add_node("close", archive.close)
    builder.add_edge(START, "pay")
    builder.add_edge("pay", "close")
    return durable(builder, journal)


def asking(journal: Journal) -> DurableGraph:
    """Asks a question of ours and two of its own at once; the answer to the last of them kills it."""

    def really(state: State) -> dict[str, Any]:
        interrupt("really?")
        raise NotRetryable("not really")

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("ours", approval_node("payout", journal, payload=lambda s: {"claim_id": s["claim_id"]}))
    builder.add_node("own", lambda state: {"amount": interrupt("how much?")})
    builder.add_node("really", really)
    for name in ("ours", "own", "really"):
        builder.add_edge(START, name)
    return durable(builder, journal)


def killed(graph: DurableGraph, error: type[Exception] = NotRetryable, *, as_thread: str = ID) -> None:
    with pytest.raises(error):
        graph.invoke({"claim_id": "1", "amount": 5}, thread(as_thread))
    assert graph.journal.runs.get(as_thread).state == "dead"


# --- redriving -------------------------------------------------------------------------------------------------------


def test_a_redrive_goes_on_at_the_checkpoint_and_repeats_no_effect(journal: Journal, bank: Bank) -> None:
    archive = Archive()
    graph = paying(journal, bank, archive)
    killed(graph)
    stood_at = journal.runs.get(ID).head
    for _ in range(3):
        journal.runs.redrive(ID, principal=OPERATOR, reason="not mended yet")
        with pytest.raises(NotRetryable):
            graph.invoke(None, THREAD)
    archive.broken = False

    run = journal.runs.redrive(ID, principal=OPERATOR, reason="emptied it")
    assert (run.state, run.attempts, run.tries, run.error, run.reason) == ("admitted", 0, 0, None, None)
    assert (run.dead_step, run.dead_nodes, run.head, run.due_at) == (None, None, stood_at, run.updated_at)
    assert graph.invoke(None, THREAD)["closed"]
    assert (len(bank.calls), journal.runs.get(ID).state) == (1, "done")
    told = [(entry.actor, entry.body["reason"]) for entry in journal.audit.entries(ID) if entry.event == "run.redrive"]
    assert told == [(OPERATOR, "not mended yet")] * 3 + [(OPERATOR, "emptied it")]
    assert list(journal.audit.verify()) == []


def test_an_effect_whose_outcome_was_lost_is_asked_for_again_with_its_key(journal: Journal, bank: Bank) -> None:
    """The node died of its own error with a claim open; the receiver knows the key and pays once."""
    archive = Archive()
    graph = paying(journal, bank, archive)
    bank.become("silent")
    for _ in range(2):
        with pytest.raises(Exception, match="pay"):
            graph.invoke({"claim_id": "1", "amount": 5}, THREAD)
    bank.become("")
    with pytest.raises(NotRetryable):
        graph.invoke(None, THREAD)
    archive.broken = False
    journal.runs.redrive(ID, principal=OPERATOR)

    assert graph.invoke(None, THREAD)["closed"]
    assert len(bank.executed) == 1


# --- discarding ------------------------------------------------------------------------------------------------------


def test_a_discarded_run_stays_dead_and_names_who_gave_it_up(journal: Journal, bank: Bank, clock: MovingClock) -> None:
    archive = Archive()
    graph = paying(journal, bank, archive)
    killed(graph)
    clock.move(timedelta(minutes=1))

    run = journal.runs.discard(ID, principal=OPERATOR, reason="paid by cheque")
    again = journal.runs.discard(ID, principal="somebody-else", reason="mine")
    assert (run.state, run.discarded_by, run.discarded_why) == ("dead", OPERATOR, "paid by cheque")
    assert again == run == journal.runs.get(ID)
    assert run.discarded_at == run.updated_at
    archive.broken = False
    with pytest.raises(RunDiscarded, match="'operator-3' at .*: paid by cheque"):
        journal.runs.redrive(ID, principal=OPERATOR)
    with pytest.raises(RunDead, match="discarded by 'operator-3': paid by cheque"):
        graph.invoke(None, THREAD)
    with pytest.raises(RunDead, match="discarded by"):
        graph.invoke({"claim_id": "1", "amount": 5}, THREAD)
    [told] = [entry for entry in journal.audit.entries(ID) if entry.event == "run.discard"]
    assert (told.actor, told.body) == (OPERATOR, {"reason": "paid by cheque"})
    assert list(journal.audit.verify()) == []


def test_nobody_is_asked_any_more(journal: Journal) -> None:
    graph = asking(journal)
    graph.invoke({"claim_id": "1", "amount": 5}, THREAD)
    [last] = [one for one in journal.approvals.pending() if one.payload == "really?"]
    with pytest.raises(NotRetryable):
        graph.invoke(answer(last, "yes"), thread(ID, principal="adjuster-17"))
    left = journal.approvals.pending(thread_id=ID)
    assert sorted(bool(one.interrupt_id) for one in left) == [False, True], "ours, and its own"

    journal.runs.discard(ID, principal=OPERATOR, reason="paid by cheque")
    assert journal.approvals.pending() == []
    assert [one.event for one in journal.notices.noted()].count("approval.withdraw") == len(left)
    for one in left:
        found = journal.approvals.get(one.id)
        assert (found.state, found.withdrawn_by, found.withdrawn_why) == ("withdrawn", OPERATOR, "paid by cheque")
        with pytest.raises(AlreadyDecided, match="withdrawn by 'operator-3'"):
            journal.approvals.decide(one.id, {"type": one.allowed[0], "value": 7}, principal="adjuster-17")
    assert journal.approvals.get(last.id).state == "decided", "what was decided stands"
    assert list(journal.audit.verify()) == []


def test_a_run_that_was_redriven_while_its_questions_were_looked_for_is_not_discarded(
    journal: Journal, clock: MovingClock, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redriven it asks something new and dies again; discarded all the same, it would leave that question open for ever."""
    if engine == "sqlite":
        pytest.skip("one writer at a time: nobody comes between two statements of a transaction")
    graph = asking(journal)
    graph.invoke({"claim_id": "1", "amount": 5}, THREAD)
    [last] = [one for one in journal.approvals.pending() if one.payload == "really?"]
    with pytest.raises(NotRetryable):
        graph.invoke(answer(last, "yes"), thread(ID, principal="adjuster-17"))

    def redrive() -> None:
        clock.move(timedelta(seconds=1))
        journal.runs.redrive(ID, principal="operator-7")
        with pytest.raises(NotRetryable):
            graph.invoke(None, THREAD)

    def meanwhile() -> None:
        with ThreadPoolExecutor(1) as other:
            other.submit(redrive).result()

    original = dead_letters.existing
    looked = count()

    def existing(tx: Tx, sql: str, thread_id: str) -> Row:
        seen = original(tx, sql, thread_id)
        if next(looked) == 0:
            meanwhile()
        return seen

    monkeypatch.setattr(dead_letters, "existing", existing)
    with pytest.raises(InputRefused, match="redriven meanwhile"):
        journal.runs.discard(ID, principal=OPERATOR)

    assert journal.runs.get(ID).discarded_at is None
    assert len(journal.approvals.pending(thread_id=ID)) == 2


def test_a_decision_on_a_dead_letter_is_read_when_it_is_redriven(journal: Journal) -> None:
    archive = Archive()
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("ours", approval_node("payout", journal, payload=lambda s: {"claim_id": s["claim_id"]}))
    builder.add_node("close", archive.close)
    builder.add_edge(START, "ours")
    builder.add_edge(START, "close")
    graph = durable(builder, journal)
    killed(graph)
    [asked] = journal.approvals.pending()

    journal.approvals.decide(asked.id, {"type": "approve"}, principal="adjuster-17")
    assert journal.runs.get(ID).state == "dead"
    archive.broken = False
    journal.runs.redrive(ID, principal=OPERATOR)
    assert graph.invoke(None, THREAD)["closed"]
    assert journal.runs.get(ID).state == "done"


def test_an_effect_in_doubt_outlives_its_run(journal: Journal, bank: Bank) -> None:
    archive = Archive()
    graph = paying(journal, bank, archive, receiver=Receiver())
    bank.become("silent")
    with pytest.raises(EffectInDoubt):
        graph.invoke({"claim_id": "1", "amount": 5}, THREAD)
    with journal.store.transaction("test.die") as tx:
        tx.all("update runs set state = 'dead', reason = 'attempts', waits_for = null")
    journal.runs.discard(ID, principal=OPERATOR, reason="closed")

    [doubtful] = journal.effects.list(thread_id=ID, state="in_doubt")
    journal.effects.resolve(doubtful.key, happened=True, outcome={"paid": 5}, principal=OPERATOR)
    assert journal.effects.get(doubtful.key).state == "settled"
    assert journal.runs.get(ID).discarded_by == OPERATOR


def test_only_a_dead_letter_is_discarded(journal: Journal) -> None:
    graph = asking(journal)
    graph.invoke({"claim_id": "1", "amount": 5}, THREAD)
    waiting = journal.approvals.pending()

    with pytest.raises(InputRefused, match="is parked; only a dead letter is discarded"):
        journal.runs.discard(ID, principal=OPERATOR, reason="x")
    with pytest.raises(UnknownThread):
        journal.runs.discard("nobody", principal=OPERATOR, reason="x")
    with pytest.raises(NotAllowed):
        journal.runs.discard(ID, principal="", reason="x")
    assert journal.approvals.pending() == waiting, "nothing was taken back"


# --- the list --------------------------------------------------------------------------------------------------------


def test_dead_letters_are_listed_in_pages_without_those_that_were_given_up(journal: Journal, bank: Bank) -> None:
    graph = paying(journal, bank, Archive())
    names = [f"claim-{number}" for number in range(5)]
    for name in names:
        killed(graph, as_thread=name)
    with journal.store.transaction("test.die") as tx:
        tx.all("update runs set reason = 'attempts' where thread_id = 'claim-3'")
    journal.runs.discard("claim-1", principal=OPERATOR, reason="x")
    journal.runs.redrive("claim-2", principal=OPERATOR)

    def listed(**options: Any) -> list[str]:
        return [run.thread_id for run in journal.runs.dead(**options)]

    assert listed() == ["claim-0", "claim-3", "claim-4"]
    assert listed(limit=2) == ["claim-0", "claim-3"]
    assert listed(after="claim-3") == ["claim-4"]
    assert listed(reason="attempts") == ["claim-3"]
    assert listed(reason="not_retryable", after="claim-0") == ["claim-4"]
