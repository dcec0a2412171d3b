"""`counterfoil dead`, `redrive` and `discard`: what they show, what they change, and how they end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph

from checkpointing import Journal
from checkpointing.errors import NotRetryable, Rejected, RunDead
from graph import DurableGraph, DurableState, durable, thread
from nodes import approval_node, effect_node
from service.cli import dead
from tests.service.conftest import Cli
from tests.support.bank import KEYED, Bank
from tools import Declined, effect

OPERATOR = ("--as", "operator-3")
WHY = ("--reason", "new API key")


class State(DurableState):
    number: int


def failing(journal: Journal, error: Exception) -> DurableGraph:
    """A graph that asks, and fails beside the question."""

    def fail(state: State) -> dict[str, Any]:
        raise error

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("ask", approval_node("payout", journal, payload=lambda s: {"number": s["number"]}))
    builder.add_node("price", fail)
    builder.add_edge(START, "ask")
    builder.add_edge(START, "price")
    return durable(builder, journal, attempts=1)


def dies(journal: Journal, *names: str, error: Exception | None = None) -> DurableGraph:
    graph = failing(journal, error or NotRetryable("no such policy"))
    for name in names:
        with pytest.raises(type(error or NotRetryable(""))):
            graph.invoke({"number": 1}, thread(name))
    return graph


def threads(cli: Cli, *options: str) -> list[str]:
    return [run["thread_id"] for run in cli("dead", *options, "--json").document]


def test_dead_letters_are_listed_with_what_stopped_them(cli: Cli, journal: Journal) -> None:
    assert cli("dead").stdout.startswith("There is no dead letter in ")
    dies(journal, "claim-1")
    dies(journal, "claim-2", error=ValueError("poison"))

    said = cli("dead").stdout
    for fact in ("claim-1", "not_retryable", "NotRetryable:", "step 0  price", "claim-2", "attempts", "poison"):
        assert fact in said
    assert max(len(line) for line in said.splitlines()) <= 100
    [first, second] = cli("dead", "--json").document
    assert (first["reason"], first["dead_step"], first["dead_nodes"], first["attempts"]) == (
        "not_retryable",
        0,
        "price",
        1,
    )
    assert second["head"] == journal.runs.get("claim-2").head
    assert threads(cli, "--died-of", "attempts") == ["claim-2"]
    assert "no dead letter of reason router" in cli("dead", "--died-of", "router").stdout


def test_one_dead_letter_is_shown_whole_with_what_to_do(cli: Cli, journal: Journal) -> None:
    dies(journal, "claim-1")
    run = journal.runs.get("claim-1")

    said = cli("dead", "claim-1").stdout.splitlines()
    assert said[0] == "claim-1"
    assert [" ".join(line.split()) for line in said[1:6]] == [
        "reason not_retryable",
        "error NotRetryable: no such policy",
        "stands at step 0 price",
        f"checkpoint {run.head}",
        "attempts 1",
    ]
    assert said[-2:] == [
        "  counterfoil redrive claim-1 --as NAME",
        "  counterfoil discard claim-1 --as NAME --reason TEXT",
    ]
    assert cli("dead", "claim-1", "--json").document["next"]["commands"] == [line.strip() for line in said[-2:]]


def test_what_a_receiver_declined_and_what_nobody_knows_is_said_too(cli: Cli, journal: Journal, tmp_path: Path) -> None:
    @effect(name="pay", receiver=KEYED)
    def pay(*, number: int, key: str) -> dict[str, Any]:
        if number == 1:
            raise Declined("no funds")
        raise RuntimeError("the line went dead")

    def fail(state: State) -> dict[str, Any]:
        raise NotRetryable("nothing paid")

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("pay", effect_node(pay, journal, arguments=lambda s: {"number": s["number"]}))
    builder.add_node("fail", fail)
    builder.add_edge(START, "pay")
    builder.add_edge("pay", "fail")
    graph = durable(builder, journal, attempts=1)
    with pytest.raises(NotRetryable):
        graph.invoke({"number": 1}, thread("declined"))
    with pytest.raises(RuntimeError):
        graph.invoke({"number": 2}, thread("unknown"))
    keys = {one.thread_id: one.key for one in journal.effects.list()}

    assert f"  counterfoil effects reissue {keys['declined']} --as NAME\n" in cli("dead", "declined").stdout
    assert (
        f"  counterfoil effects resolve {keys['unknown']} --happened JSON --as NAME\n" in cli("dead", "unknown").stdout
    )
    said = cli("discard", "unknown", *OPERATOR, "--reason", "closed").stdout
    assert f"counterfoil effects resolve {keys['unknown']}" in said, "the doubt stays"


def test_all_are_redriven_but_those_of_another_reason_or_given_up(cli: Cli, journal: Journal) -> None:
    graph = dies(journal, "claim-1", "claim-2", "claim-3")
    dies(journal, "claim-4", error=Rejected("no such payee"))
    cli("discard", "claim-2", *OPERATOR, "--reason", "paid by cheque")

    said = cli("redrive", "--all", "--died-of", "not_retryable", *OPERATOR, *WHY)
    assert said.stdout == "2 dead letters are ready again; workers carry them on.\n"
    assert [journal.runs.get(f"claim-{n}").state for n in (1, 2, 3, 4)] == ["admitted", "dead", "admitted", "dead"]
    entry = journal.audit.entries("claim-3")[-1]
    assert (entry.event, entry.actor, entry.body) == ("run.redrive", "operator-3", {"reason": "new API key"})
    with pytest.raises(NotRetryable):
        graph.invoke(None, thread("claim-1"))
    assert cli("redrive", "--all", *OPERATOR, *WHY, "--json").document == {
        "redriven": ["claim-1", "claim-4"],
        "skipped": [],
    }
    assert cli("redrive", "--all", *OPERATOR, *WHY).stdout == "There is no dead letter to redrive.\n"


def test_what_somebody_else_took_up_meanwhile_is_skipped(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead, "PAGE", 3)
    dies(journal, *(f"claim-{number}" for number in range(5)))

    every = dead.redriven(journal, "ann", "mended", None)
    assert next(every) == ("claim-0", True)
    journal.runs.redrive("claim-1", principal="bob")
    journal.runs.discard("claim-2", principal="bob", reason="x")
    journal.runs.discard("claim-3", principal="bob", reason="x")
    assert list(every) == [("claim-1", False), ("claim-2", False), ("claim-4", True)]


def test_a_discard_says_who_gave_it_up_whoever_asks(cli: Cli, journal: Journal) -> None:
    graph = dies(journal, "claim-1")

    said = cli("discard", "claim-1", *OPERATOR, "--reason", "paid by cheque").stdout
    again = cli("discard", "claim-1", "--as", "somebody", "--reason", "mine").stdout
    assert said.startswith("claim-1 was discarded by operator-3 at ")
    assert said.endswith(": paid by cheque\n")
    assert again == f"Nothing was changed: {said}"
    assert journal.approvals.pending() == []
    assert threads(cli) == []
    assert "discarded by operator-3" in " ".join(cli("list", "--state", "dead").stdout.split())
    assert "nothing is left to do" in cli("dead", "claim-1").stdout
    refused = cli("redrive", "claim-1", *OPERATOR, code=3).line
    assert "'operator-3'" in refused
    assert "paid by cheque" in refused
    with pytest.raises(RunDead, match="discarded by 'operator-3'"):
        graph.invoke(None, thread("claim-1"))


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("redrive", *OPERATOR), "the ID of one thread, or --all"),
        (("redrive", "claim-1", "--all", *OPERATOR, *WHY), "the ID of one thread, or --all"),
        (("redrive", "--all", *OPERATOR), "redrive --all needs --reason TEXT"),
        (("redrive", "--all", *WHY), "needs --as NAME"),
        (("redrive", "claim-1", "--died-of", "router", *OPERATOR), "give it with --all"),
        (("discard", "claim-1", *OPERATOR), "discard needs --reason TEXT"),
        (("discard", "claim-1", *OPERATOR, "--reason", " "), "discard needs --reason TEXT"),
        (("discard", "claim-1", "--reason", "x"), "needs --as NAME"),
        (("discard", "claim-0000", *OPERATOR, *WHY), "there is no run for thread 'claim-0000'"),
        (("dead", "claim-0000"), "there is no run for thread 'claim-0000'"),
    ],
)
def test_what_is_wrong_changes_nothing(cli: Cli, journal: Journal, command: tuple[str, ...], says: str) -> None:
    dies(journal, "claim-1")
    before = (journal.runs.list(), journal.audit.entries("claim-1"))

    said = cli(*command, code=2)
    assert says in said.line
    assert said.stdout == ""
    assert (journal.runs.list(), journal.audit.entries("claim-1")) == before


def test_a_run_that_is_no_dead_letter(cli: Cli, journal: Journal, tmp_path: Path) -> None:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    pay = Bank(tmp_path / "bank").effect()
    builder.add_node("pay", effect_node(pay, journal, arguments=lambda s: {"claim_id": "1", "amount": s["number"]}))
    builder.add_edge(START, "pay")
    durable(builder, journal).invoke({"number": 1}, thread("claim-1"))

    assert "is done, which is no dead letter" in cli("dead", "claim-1", code=2).line
    assert "only a dead letter is discarded" in cli("discard", "claim-1", *OPERATOR, *WHY, code=2).line
    assert "only a dead letter is redriven" in cli("redrive", "claim-1", *OPERATOR, code=2).line
