"""Caps on money and tokens: what is reserved before a call, what it came to, and that no run ever spends more than its cap allows."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from checkpointing import Journal, open_journal
from checkpointing.budget import Taken, taken
from checkpointing.errors import CapReached, CostUnknown, EffectInDoubt, Rejected, RunDead, Unreachable
from graph import Caps, DurableGraph, thread
from tests.support.bank import Bank
from tests.support.spending import amount_of, branches, in_turn, paid, paying
from tools import Declined, Receiver, Spend, effect, reissue
from tools.perform import Effect

THREAD = thread("claim-0042")
REPEATABLE = Receiver(repeatable=True, attempts=1)


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank(tmp_path / "bank")


def spent(journal: Journal, thread_id: str = "claim-0042") -> Taken:
    with journal.store.reading() as tx:
        return taken(tx, thread_id)


def money(journal: Journal) -> int:
    return spent(journal).money


def reason(journal: Journal) -> str | None:
    return journal.runs.get("claim-0042").reason


def asking(**options: Any) -> Effect:
    """Return an effect that uses ten tokens and says so, unless *options* say otherwise."""

    @effect(receiver=REPEATABLE, name="ask", **{"tokens": lambda _: 10, **options})
    def ask(*, claim_id: str, amount: int) -> dict[str, Any]:
        return {"used": amount}

    return ask


def redriven(graph: DurableGraph) -> Any:
    graph.journal.runs.redrive("claim-0042", principal="operator-3")
    return graph.invoke(None, THREAD)


def test_what_fits_is_paid_and_what_does_not_is_not_begun(journal: Journal, bank: Bank, tmp_path: Path) -> None:
    graph = in_turn(journal, paying(bank), caps=Caps(money=100))

    with pytest.raises(CapReached, match=r"cap_money: 90 of 100 money are spent, and the next effect takes 20"):
        graph.invoke({"amounts": [60, 30, 20]}, THREAD)

    assert (paid(tmp_path), money(journal), reason(journal)) == ([60, 30], 90, "cap_money")
    assert [one.state for one in journal.effects.list(thread_id="claim-0042")] == ["settled", "settled"]


def test_what_fits_exactly_is_paid_and_the_run_is_done(journal: Journal, bank: Bank, tmp_path: Path) -> None:
    in_turn(journal, paying(bank), caps=Caps(money=100)).invoke({"amounts": [60, 40, 0]}, THREAD)

    assert (paid(tmp_path), journal.runs.get("claim-0042").state) == ([60, 40, 0], "done")


def test_under_a_cap_of_nothing_only_what_is_free_is_done(journal: Journal, bank: Bank, tmp_path: Path) -> None:
    graph = in_turn(journal, paying(bank), caps=Caps(money=0))

    with pytest.raises(CapReached):
        graph.invoke({"amounts": [0, 1]}, THREAD)
    assert paid(tmp_path) == [0]


def test_a_redrive_meets_the_cap_again_until_it_is_raised(journal: Journal, bank: Bank, tmp_path: Path) -> None:
    capped = in_turn(journal, paying(bank), caps=Caps(money=100))
    with pytest.raises(CapReached):
        capped.invoke({"amounts": [60, 50]}, THREAD)
    with pytest.raises(CapReached, match="Raise the cap, then redrive it"):
        redriven(capped)
    with pytest.raises(RunDead, match="cap_money"):
        capped.invoke(None, THREAD)

    redriven(in_turn(journal, paying(bank), caps=Caps(money=110)))
    assert (paid(tmp_path), money(journal)) == ([60, 50], 110)


def test_of_branches_that_would_overspend_together_only_those_that_fit_are_executed(
    journal: Journal, bank: Bank, tmp_path: Path
) -> None:
    graph = branches(journal, paying(bank), caps=Caps(money=100))

    with pytest.raises(CapReached):
        graph.invoke({"amounts": [60, 60]}, THREAD)
    assert (paid(tmp_path), money(journal)) == ([60], 60)
    redriven(branches(journal, paying(bank), caps=Caps(money=120)))
    assert (paid(tmp_path), money(journal)) == ([60, 60], 120)


def test_a_branch_waits_for_what_another_reserves_and_then_sees_it(
    journal: Journal, bank: Bank, tmp_path: Path
) -> None:
    """Forced: all branches stand before their claims together, round after round."""
    many = 6
    together = threading.Barrier(many, timeout=30)

    def cost(arguments: Any) -> int:
        together.wait()
        return amount_of(arguments)

    for number in range(5):
        graph = branches(journal, paying(bank, cost=cost), caps=Caps(money=100))
        before = len(bank.executed)
        with pytest.raises(CapReached):
            graph.invoke({"amounts": [40] * many}, {**thread(f"claim-{number}"), "max_concurrency": many})
        assert (len(bank.executed) - before, spent(journal, f"claim-{number}").money) == (2, 80)


def test_each_run_has_a_budget_of_its_own(journal: Journal, bank: Bank, tmp_path: Path) -> None:
    graph = in_turn(journal, paying(bank), caps=Caps(money=100))
    for number in range(3):
        graph.invoke({"amounts": [100]}, thread(f"claim-{number}"))

    assert paid(tmp_path) == [100, 100, 100]


def test_a_thread_spends_one_budget_in_all_its_turns(journal: Journal, bank: Bank, tmp_path: Path) -> None:
    graph = branches(journal, paying(bank), caps=Caps(money=100), turns=True)
    graph.invoke({"amounts": [60]}, thread("claim-0042", submission="first"))

    with pytest.raises(CapReached):
        graph.invoke({"amounts": [60]}, thread("claim-0042", submission="second"))
    assert paid(tmp_path) == [60]


def test_an_answer_from_another_threads_record_costs_nothing(journal: Journal, bank: Bank, tmp_path: Path) -> None:
    graph = in_turn(journal, paying(bank, once=lambda a: a["claim_id"]), caps=Caps(money=60))
    for name in ("first", "second"):
        graph.invoke({"amounts": [60]}, thread(name))

    assert (paid(tmp_path), spent(journal, "first").money, spent(journal, "second").money) == ([60], 60, 0)


def refusing(error: Exception) -> Effect:
    """Return an effect whose receiver refuses what is asked in the first place, and pays the rest."""

    @effect(receiver=Receiver(honours_keys=True, attempts=1), name="pay", cost=amount_of)
    def pay(*, claim_id: str, amount: int, key: str) -> dict[str, Any]:
        if amount == 60:
            raise error
        return {"paid": amount}

    return pay


def test_what_is_declined_gives_back_what_was_reserved(journal: Journal) -> None:
    graph = in_turn(journal, refusing(Declined("no funds")), caps=Caps(money=100))
    graph.invoke({"amounts": [60, 100]}, THREAD)

    assert money(journal) == 100


def test_what_is_released_gives_back_what_was_reserved(journal: Journal) -> None:
    graph = in_turn(journal, refusing(Rejected("no such payee")), caps=Caps(money=100))
    with pytest.raises(Rejected):
        graph.invoke({"amounts": [60]}, THREAD)

    assert money(journal) == 0


def test_what_is_in_doubt_keeps_its_reservation_until_somebody_knows(journal: Journal) -> None:
    @effect(receiver=Receiver(attempts=1), name="pay", cost=amount_of)
    def pay(*, claim_id: str, amount: int, key: str) -> dict[str, Any]:
        raise Unreachable("the line went dead")

    graph = in_turn(journal, pay, caps=Caps(money=100))
    with pytest.raises(EffectInDoubt):
        graph.invoke({"amounts": [60]}, THREAD)
    [doubtful] = journal.effects.list(thread_id="claim-0042")

    assert money(journal) == 60
    journal.effects.resolve(doubtful.key, happened=False, principal="operator-3")
    assert money(journal) == 0


@pytest.mark.parametrize(("outcome", "came_to"), [({"paid": 60}, 60), ({"declined": "no funds"}, 0)])
def test_what_a_person_found_out_costs_what_it_says(journal: Journal, outcome: Any, came_to: int) -> None:
    graph = in_turn(journal, refusing(Unreachable("the line went dead")), caps=Caps(money=100))
    with pytest.raises(Exception, match="the line went dead"):
        graph.invoke({"amounts": [60]}, THREAD)
    [doubtful] = journal.effects.list(thread_id="claim-0042")
    journal.effects.resolve(doubtful.key, happened=True, outcome=outcome, principal="operator-3")

    assert money(journal) == came_to


def test_an_outcome_that_comes_late_counts(journal: Journal, bank: Bank, tmp_path: Path) -> None:
    """Somebody said that nothing happened, and the outcome comes all the same."""
    said = threading.Event()

    def late(arguments: Any, _outcome: Any) -> Spend:
        if not said.is_set():
            said.set()
            with journal.store.transaction("test.freed") as tx:
                tx.all("update effects set state = 'released'")
        return Spend(money=arguments["amount"])

    graph = in_turn(journal, paying(bank, spent=late), caps=Caps(money=50))
    with pytest.raises(CapReached):
        graph.invoke({"amounts": [50, 50]}, THREAD)

    assert (paid(tmp_path), money(journal)) == ([50], 50)


def test_what_was_declined_and_is_reissued_is_spent_then(journal: Journal) -> None:
    declines = [True]

    @effect(receiver=Receiver(honours_keys=True, attempts=1), name="pay", cost=amount_of, tokens=lambda _: 7)
    def pay(*, claim_id: str, amount: int, key: str) -> dict[str, Any]:
        if declines.pop() if declines else False:
            raise Declined("no funds")
        return {"paid": amount}

    in_turn(journal, pay, caps=Caps(money=100)).invoke({"amounts": [60]}, THREAD)
    [no] = journal.effects.list(thread_id="claim-0042")
    assert (spent(journal).money, spent(journal).tokens) == (0, 7)
    reissue(journal, pay, no.key, principal="operator-3")

    assert (spent(journal).money, spent(journal).tokens) == (60, 14)


def test_tokens_are_reserved_by_estimate_and_corrected_by_use(journal: Journal) -> None:
    ask = asking(spent=lambda _arguments, outcome: Spend(tokens=outcome["used"]))
    graph = in_turn(journal, ask, caps=Caps(tokens=20))
    graph.invoke({"amounts": [3, 3, 3]}, THREAD)

    assert (spent(journal).tokens, journal.runs.get("claim-0042").state) == (9, "done")


def test_a_model_that_used_more_than_was_reserved_stops_the_run_before_its_next_step(
    journal: Journal,
) -> None:
    ask = asking(spent=lambda _arguments, outcome: Spend(tokens=outcome["used"]), tokens=lambda _: 1)
    graph = in_turn(journal, ask, caps=Caps(tokens=20))

    with pytest.raises(CapReached, match=r"cap_tokens: it has spent 25 tokens of 20"):
        graph.invoke({"amounts": [25, 1]}, THREAD)
    assert len(journal.effects.list(thread_id="claim-0042")) == 1


def test_a_model_that_failed_gives_back_what_was_reserved(journal: Journal) -> None:
    @effect(receiver=REPEATABLE, name="ask", tokens=lambda _: 10)
    def ask(*, claim_id: str, amount: int) -> dict[str, Any]:
        raise RuntimeError("overloaded")

    graph = in_turn(journal, ask, caps=Caps(tokens=10), attempts=9)
    for _ in range(2):
        with pytest.raises(RuntimeError):
            graph.invoke({"amounts": [1]}, THREAD)
    [asked] = journal.effects.list(thread_id="claim-0042")

    assert (spent(journal).tokens, asked.state, asked.calls) == (0, "released", 2)


@pytest.mark.parametrize("estimate", [lambda _: -1, lambda _: 1.5, lambda _: True, lambda _: None, lambda a: a["none"]])
@pytest.mark.parametrize("name", ["cost", "tokens"])
def test_an_estimate_that_is_no_amount_is_refused_before_anything_is_called(
    journal: Journal, bank: Bank, tmp_path: Path, name: str, estimate: Callable[[Any], Any]
) -> None:
    graph = in_turn(journal, paying(bank, **{name: estimate}))

    with pytest.raises(CostUnknown, match=f"{name}= of effect 'pay'"):
        graph.invoke({"amounts": [1]}, THREAD)
    assert (paid(tmp_path), journal.effects.list(), reason(journal)) == ([], [], "cost_unknown")


@pytest.mark.parametrize(
    "says", [lambda _, __: 1 / 0, lambda _, __: 5, lambda _, __: Spend(money=-1), lambda _, __: Spend(tokens=True)]
)
def test_an_effect_that_cannot_say_what_it_came_to_costs_what_was_reserved(
    journal: Journal, bank: Bank, says: Callable[..., Any]
) -> None:
    """Its outcome is kept whatever its price, and the audit says that nobody knows it."""
    in_turn(journal, paying(bank, spent=says), caps=Caps(money=100)).invoke({"amounts": [60]}, THREAD)
    [settled] = [one for one in journal.audit.entries("claim-0042") if one.event == "effect.settle"]

    assert (money(journal), "spend_unknown" in settled.body) == (60, True)


@drawn(cap=st.integers(0, 120), rounds=st.lists(st.lists(st.integers(0, 50), max_size=4), min_size=1, max_size=3))
@settings(max_examples=25, deadline=None)
def test_whatever_is_asked_for_nothing_is_spent_beyond_the_cap(
    tmp_path_factory: pytest.TempPathFactory, cap: int, rounds: list[list[int]]
) -> None:
    """Every payment comes to a little less than was reserved. On one engine: what differs between the two are locks, which have tests of their own."""

    def came_to(amount: int) -> int:
        return amount - amount % 3

    folder = tmp_path_factory.mktemp("spending")
    pay = paying(Bank(folder / "bank"), spent=lambda a, _outcome: Spend(money=came_to(a["amount"])))
    with open_journal(f"sqlite:///{folder}/journal.db") as journal:
        graph = branches(journal, pay, caps=Caps(money=cap), turns=True)
        with suppress(CapReached):
            for number, amounts in enumerate(rounds):
                graph.invoke({"amounts": amounts}, thread("claim-0042", submission=f"{number}"))

        assert sum(map(came_to, paid(folder))) == money(journal) <= cap
        fits = sum(map(came_to, itertools.chain(*rounds))) + 2 <= cap
        assert not fits or len(paid(folder)) == sum(map(len, rounds))
