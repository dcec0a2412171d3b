"""An agent's conversation after one of its calls was tried again under a new key: the model hears what the ledger has now."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from checkpointing import Journal, open_journal
from checkpointing.errors import Declined, EffectBusy, EffectInDoubt, EffectUnsettled, Rejected, Unreachable
from checkpointing.leases import holding, slot_lease
from graph import DurableGraph, durable, thread
from nodes import EffectTools
from tests.support.bank import KEYED, Bank
from tests.support.points import die_at
from tests.support.processes import killed, start, until
from tests.support.scripted import ScriptedModel, calls
from tools import Effect, Receiver, effect, reissue

NOES = (Declined("the account is closed"), Rejected("no such payee"))
LEASE = timedelta(milliseconds=300)
PAY = ("c1", "pay", {"claim_id": "1", "amount": 5})


class World:
    """An agent that takes turns, at a bank that answers as `error` says, and keeps to it under every key it declined."""

    def __init__(self, journal: Journal, folder: Path, receiver: Receiver = KEYED, **options: Any) -> None:
        self.journal = journal
        self.bank = Bank(folder / "bank")
        self.model = ScriptedModel(script=[calls(PAY), AIMessage("it was refused")], file=folder / "asked")
        self.error: Exception | None = Declined("the account is closed")
        self.said_no: set[str] = set()

        @effect(receiver=receiver, name="pay", **options)
        def pay(*, claim_id: str, amount: int, key: str) -> dict[str, Any]:
            if self.error or key in self.said_no:
                self.said_no.add(key)
                raise self.error or Declined("I said no")
            return self.bank.execute(claim_id=claim_id, amount=amount, key=key)

        self.pay: Effect = pay
        agent = create_agent(self.model, middleware=[EffectTools(journal, [pay])])
        self.graph: DurableGraph = durable(agent, journal, turns=True)

    def turn(self, number: int, thread_id: str = "chat-1") -> Any:
        """Say something to the agent."""
        given = {"messages": [HumanMessage("pay claim 1", id=f"turn-{number}")]}
        return self.graph.invoke(given, thread(thread_id, submission=str(number)))

    def key(self) -> str:
        """Return the payment's key as the ledger has it now."""
        [record] = [one for one in self.journal.effects.list() if one.effect == "pay"]
        return record.key

    def reissued(self) -> Any:
        """Have the payment tried again, and return its outcome."""
        self.error = None
        return reissue(self.journal, self.pay, self.key(), principal="operator-3", spoilt=True).outcome

    def heard(self) -> list[tuple[str, str]]:
        """What the model was last told of its calls."""
        return [(one.status, str(one.content)) for one in self.model.seen if isinstance(one, ToolMessage)]


@pytest.fixture
def world(journal: Journal, tmp_path: Path) -> World:
    return World(journal, tmp_path)


@pytest.fixture
def once(journal: Journal, tmp_path: Path) -> World:
    """One payment a claim, whichever thread asks."""
    return World(journal, tmp_path, once=lambda arguments: arguments["claim_id"])


def test_the_next_turn_hears_that_a_declined_payment_was_made_after_all(world: World) -> None:
    world.turn(1)
    told = world.heard()
    paid = world.reissued()
    world.turn(2)
    [(status, content)] = world.heard()

    assert told == [("error", "Declined: the account is closed")]
    assert (status, paid["key"] in content) == ("success", True)
    assert world.journal.runs.get("chat-1").state == "done"


def test_the_next_turn_hears_the_latest_no(world: World) -> None:
    world.turn(1)
    for reason in ("ask tomorrow", "never"):
        world.error = Declined(reason)
        reissue(world.journal, world.pay, world.key(), principal="operator-3")
    world.turn(2)

    assert world.heard() == [("error", "Declined: never")]


def test_a_thread_that_was_answered_from_anothers_decline_hears_of_its_reissue(once: World) -> None:
    once.turn(1)
    once.turn(1, "chat-2")
    told = once.heard()
    paid = once.reissued()
    once.turn(2, "chat-2")
    [(status, content)] = once.heard()

    assert told == [("error", "Declined: the account is closed")]
    assert (status, paid["key"] in content) == ("success", True)


def test_a_decline_stands_while_its_reissue_has_called_nobody(world: World) -> None:
    world.turn(1)
    world.journal.effects.reissue(world.key(), principal="operator-3", max_key_length=255)
    world.turn(2)

    assert world.heard() == [("error", "Declined: the account is closed")]


@pytest.mark.parametrize("error", NOES, ids=["declined", "rejected"])
def test_a_turn_waits_while_an_earlier_call_is_tried_again(
    error: Exception, url: str, world: World, tmp_path: Path
) -> None:
    world.error = error
    world.turn(1)
    world.bank.become("slow")
    asked = world.model.asked
    reissuing = start(_reissue, url, tmp_path)
    until(lambda: world.bank.calls or None)
    with pytest.raises(EffectBusy, match=r"\.2' is being tried again"):
        world.turn(2)
    left, meanwhile = world.journal.runs.get("chat-1"), world.model.asked
    reissuing.kill()

    assert (left.state, left.attempts, meanwhile) == ("admitted", 0, asked)


def _reissue(url: str, folder: Path) -> None:
    with open_journal(url, lease=LEASE) as journal:
        World(journal, folder).reissued()


def test_a_turn_that_waited_hears_what_came_of_the_reissue(world: World) -> None:
    """The slot is free under its next key, and its lease is taken: the reissue's call is about to be made."""
    world.turn(1)
    freed = world.journal.effects.reissue(world.key(), principal="operator-3", max_key_length=255)
    with holding(world.journal.leases, slot_lease(freed.slot)), pytest.raises(EffectBusy):
        world.turn(2)
    paid = world.reissued()
    world.turn(2)
    [(status, content)] = world.heard()

    assert (status, paid["key"] in content) == ("success", True)
    assert world.journal.runs.get("chat-1").state == "done"


@pytest.mark.parametrize("error", NOES, ids=["declined", "rejected"])
def test_a_reissue_that_was_killed_at_its_call_blames_no_handler(
    error: Exception, url: str, world: World, tmp_path: Path
) -> None:
    world.error = error
    world.turn(1)
    killed(start(_reissue_and_die, url, tmp_path))

    def ended() -> bool | None:
        with pytest.raises((EffectBusy, EffectUnsettled)) as left:
            world.turn(2)
        return isinstance(left.value, EffectUnsettled) or None

    until(ended)
    asked, attempts = world.model.asked, world.journal.runs.get("chat-1").attempts
    paid = world.reissued()
    world.turn(2)
    [(status, content)] = world.heard()

    assert (asked, attempts) == (2, 0)
    assert (status, paid["key"] in content) == ("success", True)
    assert len(world.bank.executed) == 1


def _reissue_and_die(url: str, folder: Path) -> None:
    die_at("after call pay")
    _reissue(url, folder)


def test_a_reissue_that_ended_in_doubt_parks_the_next_turn(journal: Journal, tmp_path: Path) -> None:
    world = World(journal, tmp_path, receiver=Receiver(attempts=1))
    world.turn(1)
    world.error = Unreachable("no answer")
    with pytest.raises(EffectInDoubt) as doubt:
        reissue(journal, world.pay, world.key(), principal="operator-3")
    with pytest.raises(EffectInDoubt):
        world.turn(2)
    parked = journal.runs.get("chat-1").reason
    journal.effects.resolve(doubt.value.key, happened=True, outcome={"paid": 5}, principal="operator-3")
    world.turn(2)

    assert parked == "in_doubt"
    assert world.heard() == [("success", '{"paid": 5}')]
