"""Caps on an agent: what its model may use is reserved before it is asked, and its effects spend the run's money like any other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRetryMiddleware, ToolRetryMiddleware
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph

from checkpointing import Journal
from checkpointing.budget import taken
from checkpointing.errors import CapReached
from graph import Caps, DurableGraph, DurableState, durable, thread
from nodes import EffectTools
from tests.support.bank import Bank
from tests.support.processes import killed, start, until
from tests.support.scripted import ScriptedModel, calls
from tests.support.thrifty_agent import HELLO, PAY, THREAD, USES, advance, answers, thrifty_agent

GIVEN_UP = """
insert into effects (slot, key, effect, thread_id, step, arguments, digest, state, lease, fence, root, task, checkpoint, calls, replays, cost,
    tokens, repeatable, claimed_ms, called_ms)
values ('s', 'k', 'model', 'chat-1', 'ask', '{}', 'd', 'claimed', 'thread:chat-1', 0, '', '', '', 1, 0, 0, 100, 1, 1, 1)
"""


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank(tmp_path / "bank")


def tokens(journal: Journal) -> int:
    with journal.store.reading() as tx:
        return taken(tx, "chat-1").tokens


def reason(journal: Journal) -> str | None:
    return journal.runs.get("chat-1").reason


def test_an_agent_uses_what_its_answers_say_and_stops_before_a_question_that_does_not_fit(
    journal: Journal, tmp_path: Path
) -> None:
    graph = thrifty_agent(journal, tmp_path, Caps(tokens=2 * USES + 50), estimate=100)

    with pytest.raises(CapReached, match=f"cap_tokens: {2 * USES} of .* are spent, and the next effect takes 100"):
        graph.invoke(HELLO, THREAD)
    assert (answers(tmp_path), tokens(journal), reason(journal)) == (2, 2 * USES, "cap_tokens")


def test_a_question_that_does_not_fit_is_never_put(journal: Journal, tmp_path: Path) -> None:
    graph = thrifty_agent(journal, tmp_path, Caps(tokens=99), estimate=100)

    with pytest.raises(CapReached):
        graph.invoke(HELLO, THREAD)
    assert (answers(tmp_path), tokens(journal), journal.effects.list()) == (0, 0, [])


def test_an_async_agent_is_capped_too(journal: Journal, tmp_path: Path) -> None:
    graph = thrifty_agent(journal, tmp_path, Caps(tokens=USES + 50), estimate=100)

    with pytest.raises(CapReached):
        asyncio.run(graph.ainvoke(HELLO, THREAD))
    assert (answers(tmp_path), tokens(journal)) == (1, USES)


def test_without_an_estimate_the_length_of_the_question_and_a_long_answer_are_reserved(
    journal: Journal, tmp_path: Path
) -> None:
    with pytest.raises(CapReached, match=r"the next effect takes 10\d\d"):
        thrifty_agent(journal, tmp_path, Caps(tokens=999)).invoke(HELLO, THREAD)
    assert answers(tmp_path) == 0


def test_a_model_that_answered_is_not_paid_for_again(journal: Journal, tmp_path: Path) -> None:
    """A re-run reads the answer, so a cap that the run has used up does not keep it from going on."""
    capped = thrifty_agent(journal, tmp_path, Caps(tokens=USES), estimate=USES, script=[])
    capped.invoke(HELLO, THREAD)

    assert (answers(tmp_path), tokens(journal), journal.runs.get("chat-1").state) == (1, USES, "done")


@pytest.mark.parametrize("caps", [Caps(tokens=10_000), Caps()], ids=["cap", "no-cap"])
def test_a_question_that_killed_its_worker_is_put_again_and_leaves_nothing_unsettled(
    url: str, tmp_path: Path, opened: Callable[..., Journal], caps: Caps
) -> None:
    killed(start(advance, url, tmp_path, caps, "before call model"))
    journal = opened()
    [asked] = journal.effects.list()
    graph = thrifty_agent(journal, tmp_path, caps, estimate=100)

    assert (asked.effect, asked.state, asked.tokens) == ("model", "claimed", 100 if caps else 0)
    until(lambda: True if journal.leases.holder("thread:chat-1") is None else None)
    graph.invoke(None, THREAD)
    assert (journal.runs.get("chat-1").state, tokens(journal)) == ("done", 3 * USES)


def test_a_question_that_was_given_up_does_not_keep_the_run_from_its_end(journal: Journal, tmp_path: Path) -> None:
    """A worker died while it asked, and its successor asks in other words: the first claim stays, and does no harm."""
    graph = thrifty_agent(journal, tmp_path, Caps(tokens=10_000), estimate=100, script=[])
    with journal.store.transaction("test.given_up") as tx:
        tx.all(GIVEN_UP)
    graph.invoke(HELLO, THREAD)

    assert (journal.runs.get("chat-1").state, tokens(journal)) == ("done", 100 + USES)


class Failing(ScriptedModel):
    """A model that is overloaded twice, and then answers."""

    def _generate(self, messages: Any, *args: Any, **options: Any) -> Any:
        made = super()._generate(messages, *args, **options)
        if self.asked <= 2:
            raise ConnectionError("overloaded")
        return made


@pytest.mark.parametrize("retried", [True, False], ids=["by-a-middleware", "by-the-run"])
def test_a_model_that_failed_gives_its_reservation_back_and_its_error_comes_as_it_is(
    journal: Journal, tmp_path: Path, retried: bool
) -> None:
    model = Failing(script=[], file=tmp_path / "asked")
    retry: list[Any] = [ModelRetryMiddleware(max_retries=2, initial_delay=0, jitter=False)] if retried else []
    middleware = [*retry, EffectTools(journal, [], tokens=lambda _: 100)]
    graph = durable(create_agent(model, middleware=middleware), journal, caps=Caps(tokens=100))
    for _ in range(0 if retried else 2):
        with pytest.raises(ConnectionError, match="overloaded"):
            graph.invoke(HELLO, THREAD)
        assert tokens(journal) == 0
    graph.invoke(None if not retried else HELLO, THREAD)

    assert (model.asked, journal.runs.get("chat-1").state) == (3, "done")


def spending(journal: Journal, folder: Path, **options: Any) -> DurableGraph:
    """Return an agent whose model wants two payments at once, with middlewares that handle every error."""
    both = calls(PAY, ("c2", "pay", {"claim_id": "2", "amount": 60}))
    model = ScriptedModel(script=[both], file=folder / "asked")
    pay = Bank(folder / "bank").effect(cost=lambda a: a["amount"])
    retry = ToolRetryMiddleware(max_retries=2, initial_delay=0, jitter=False, on_failure="continue")
    middleware: list[Any] = [retry, EffectTools(journal, [pay])]
    return durable(create_agent(model, middleware=middleware), journal, **options)


def test_of_two_payments_that_a_model_wants_at_once_only_one_fits_and_no_handler_tells_the_model(
    journal: Journal, tmp_path: Path, bank: Bank
) -> None:
    graph = spending(journal, tmp_path, caps=Caps(money=100))

    with pytest.raises(CapReached, match="cap_money"):
        graph.invoke(HELLO, THREAD)
    assert (len(bank.executed), reason(journal), answers(tmp_path)) == (1, "cap_money", 1)
    journal.runs.redrive("chat-1", principal="operator-3")
    spending(journal, tmp_path, caps=Caps(money=120)).invoke(None, THREAD)
    assert (len(bank.executed), answers(tmp_path)) == (2, 2)


def test_an_agent_inside_a_graph_is_held_to_the_caps_of_the_run_around_it(journal: Journal, tmp_path: Path) -> None:
    """Its supersteps are a subgraph's; what they use is the run's."""

    class State(DurableState, MessagesState):
        pass

    model = ScriptedModel(
        script=[AIMessage("", usage_metadata={"input_tokens": 30, "output_tokens": 30, "total_tokens": 60})],
        file=tmp_path / "asked",
    )
    model.script[0].tool_calls.append({"id": "c1", "name": "look", "args": {}, "type": "tool_call"})

    def look() -> str:
        """Look."""
        return "nothing"

    middleware = [EffectTools(journal, [], tokens=lambda _: 10)]
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("agent", create_agent(model, tools=[look], middleware=middleware))
    builder.add_edge(START, "agent")
    graph = durable(builder, journal, caps=Caps(tokens=50))

    with pytest.raises(CapReached, match="it has spent 60 tokens of 50"):
        graph.invoke(HELLO, thread("chat-1"))
    assert (answers(tmp_path), reason(journal)) == (1, "cap_tokens")
