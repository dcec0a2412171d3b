"""
LangGraph's own savers, where a fault of the store loses a step or a whole run, and ours in the same fault.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import START
from langgraph.pregel import _checkpoint
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool
from typing_extensions import TypedDict

from checkpointing import Journal, open_journal
from checkpointing.errors import RunBusy, StoreUnreachable
from checkpointing.sqlite import BUSY_S, SqliteEngine
from graph import DurableState, durable
from nodes import effect_node
from tests.support.bank import Bank
from tests.support.plain import THREAD, OfficialSaver, Trace, builder_of
from tests.support.processes import until
from tests.support.small_claim import LEASE


class Plain(TypedDict, total=False):
    amount: int


class State(DurableState):
    payment: dict[str, Any]


def paying(journal: Journal, bank: Bank) -> Any:
    return effect_node(bank.effect(), journal, arguments=lambda s: {"claim_id": "1", "amount": 5}, into="payment")


# --- a lock that somebody else holds ----------------------------------------------------------------------------------


class Foreign:
    """Another program with the same SQLite file."""

    def __init__(self, file: Path) -> None:
        self.connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)

    def lock(self, *_: object) -> dict[str, Any]:
        """Begin to write, and take one's time."""
        self.connection.execute("begin immediate")
        return {}

    def leave(self) -> None:
        """End."""
        self.connection.rollback()
        self.connection.close()


def test_langgraph_waits_five_seconds_for_a_lock_and_pays_again(
    saver: OfficialSaver, tmp_path: Path, trace: Trace
) -> None:
    connection: Any = saver.conn
    assert connection.execute("pragma busy_timeout").fetchone() == (5000,)
    connection.execute("pragma busy_timeout = 50")  # so that the test does not take them
    graph = builder_of(Plain, (START, "pay"), pay=trace.node("paid", lambda state: foreign.lock()))
    foreign = Foreign(tmp_path / "plain.db")
    compiled = graph.compile(checkpointer=saver)
    compiled.invoke({"amount": 5}, THREAD, interrupt_before=["pay"])
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        compiled.invoke(None, THREAD, durability="sync")
    foreign.leave()
    foreign = Foreign(tmp_path / "plain.db")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        compiled.invoke(None, THREAD, durability="sync")
    foreign.leave()

    assert trace.names == ["paid", "paid"]


def test_ours_waits_longer_and_pays_once(tmp_path: Path, bank: Bank) -> None:
    """On SQLite, which has the one lock; a superstep whose payment is settled is then refused by the store."""
    file = tmp_path / "ours.db"
    foreign, locked = Foreign(file), []
    with open_journal(f"sqlite:///{file}", lease=LEASE) as journal:
        engine = journal.store.engine
        assert isinstance(engine, SqliteEngine)
        assert engine._writer.execute("pragma busy_timeout").fetchone() == (BUSY_S * 1000,) > (5000,)
        engine._writer.execute("pragma busy_timeout = 50")

        def beside(state: Any) -> dict[str, Any]:
            until(lambda: True if [one for one in journal.effects.list() if one.state == "settled"] else None)
            if not locked:
                locked.append(foreign.lock())
            return {}

        nodes = {"pay": paying(journal, bank), "beside": beside}
        graph = durable(builder_of(State, (START, "pay"), (START, "beside"), **nodes), journal)
        with pytest.raises(StoreUnreachable):
            graph.invoke({}, THREAD)
        foreign.leave()

        def carried_on() -> Any:
            try:
                return graph.invoke(None, THREAD)
            except RunBusy:
                return None

        done = until(carried_on)
        assert journal.runs.get("claim-0042").state == "done"
    assert (done["payment"]["paid"], len(bank.calls)) == (5, 1)


# --- a write that fails half-way --------------------------------------------------------------------------------------


HALF = """
create trigger half before insert on writes when new.channel = 'payment' begin select raise(abort, 'disk full'); end
"""
AT: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "1"}}


def half_written(saver: Any, file: Path) -> list[str]:
    """Let the second of two writes fail, and return what there is of them."""
    checkpoint = {**empty_checkpoint(), "id": "1"}
    saver.put({"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, checkpoint, {"source": "loop", "step": 0}, {})
    other = sqlite3.connect(file)
    other.execute(HALF)
    other.close()
    with pytest.raises(sqlite3.DatabaseError, match="disk full"):
        saver.put_writes(AT, [("effects", {}), ("payment", {})], "task-1")
    found = saver.get_tuple(AT)
    assert found is not None
    return [channel for _, channel, _ in found.pending_writes or []]


def test_langgraph_keeps_half_of_a_write_that_failed(saver: OfficialSaver, tmp_path: Path) -> None:
    """On SQLite, whose saver commits whatever happened: the task then counts as finished, with half its output."""
    assert half_written(saver, tmp_path / "plain.db") == ["effects"]


def test_ours_keeps_nothing_of_a_write_that_failed(tmp_path: Path) -> None:
    """The same fault."""
    with open_journal(f"sqlite:///{tmp_path}/ours.db") as journal:
        assert half_written(journal.saver, tmp_path / "ours.db") == []


# --- connections ------------------------------------------------------------------------------------------------------


@pytest.fixture
def server(new_postgres: Callable[[], str]) -> str:
    """An empty database on Postgres, with the official saver's tables: what follows is about connections, which SQLite has not."""
    url = new_postgres()
    with PostgresSaver.from_conn_string(url) as saver:
        saver.setup()
    return url


def cut(url: str) -> Callable[..., dict[str, Any]]:
    """A step during which the server drops every other connection of the database, the first time."""
    left = [1]

    def drop(*_: object) -> dict[str, Any]:
        if left:
            left.clear()
            with psycopg.connect(url, autocommit=True) as admin:
                admin.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity "
                    "where datname = current_database() and pid <> pg_backend_pid()"
                )
        return {}

    return drop


def test_langgraph_loses_everything_without_autocommit(server: str, trace: Trace) -> None:
    """Nothing is said: the call returns its result, and the process ends without a commit."""
    connection: Any = psycopg.connect(server, row_factory=dict_row)  # pyright: ignore[reportArgumentType]  # rows are dicts
    graph = builder_of(Plain, (START, "pay"), pay=trace.node("paid"))
    assert graph.compile(checkpointer=PostgresSaver(connection)).invoke({"amount": 5}, THREAD) == {"amount": 5}
    connection.close()
    with PostgresSaver.from_conn_string(server) as saver:
        assert saver.get_tuple(THREAD) is None


def test_ours_is_on_disk_when_the_call_returns(opened: Callable[..., Journal], bank: Bank) -> None:
    """Another process sees it while this one still has its connections."""
    journal, another = opened(), opened()
    durable(builder_of(State, (START, "pay"), pay=paying(journal, bank)), journal).invoke({}, THREAD)

    assert another.runs.get("claim-0042").state == "done"
    assert another.saver.head("claim-0042") == journal.saver.head("claim-0042") != ""
    assert [one.state for one in another.effects.list()] == ["settled"]


def test_langgraph_never_recovers_a_dropped_connection(server: str, trace: Trace) -> None:
    with PostgresSaver.from_conn_string(server) as saver:
        nodes = {"cut": cut(server), "pay": trace.node("paid")}
        graph = builder_of(Plain, (START, "cut"), ("cut", "pay"), **nodes).compile(checkpointer=saver)
        for given in ({"amount": 5}, None, None):
            with pytest.raises(psycopg.OperationalError):
                graph.invoke(given, THREAD, durability="sync")

    assert trace.names == []


def test_langgraph_recovers_with_a_pool_that_is_checked(server: str, trace: Trace) -> None:
    with ConnectionPool(
        server,
        min_size=1,
        open=True,
        check=ConnectionPool.check_connection,
        kwargs={"autocommit": True, "row_factory": dict_row},
    ) as pool:
        nodes = {"cut": cut(server), "pay": trace.node("paid")}
        builder = builder_of(Plain, (START, "cut"), ("cut", "pay"), **nodes)
        saver = PostgresSaver(pool)  # type: ignore[arg-type]  # rows are dicts
        builder.compile(checkpointer=saver).invoke({"amount": 5}, THREAD, durability="sync")

    assert trace.names == ["paid"]


def test_ours_goes_on_after_a_dropped_connection(server: str, bank: Bank, tmp_path: Path) -> None:
    """On Postgres: the connections are dropped between claim and settle, and between two steps."""
    with open_journal(server, artefacts=str(tmp_path)) as journal:
        dropped, execute = cut(server), bank.execute

        def cut_while_paying(**call: Any) -> dict[str, Any]:
            dropped()
            return execute(**call)

        bank.execute = cut_while_paying  # type: ignore[method-assign]  # the server restarts while the receiver is at work
        nodes = {"cut": cut(server), "pay": paying(journal, bank)}
        graph = durable(builder_of(State, (START, "cut"), ("cut", "pay"), **nodes), journal)
        done = graph.invoke({}, THREAD)
        with open_journal(server, artefacts=str(tmp_path)) as another:
            assert another.runs.get("claim-0042").state == "done"

    assert (done["payment"]["paid"], len(bank.calls)) == (5, 1)


# --- order and time ---------------------------------------------------------------------------------------------------


def test_langgraph_runs_the_last_step_again_on_a_host_whose_clock_is_behind(
    each_saver: OfficialSaver, trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint's id is the time: written by an earlier clock it never becomes the head. Ours is refused there, by name."""
    broken = [1]

    def load(state: Any) -> dict[str, Any]:
        if broken:
            broken.clear()
            raise RuntimeError("once")
        return {"amount": 6}

    nodes = {"load": trace.node("load", load), "pay": trace.node("paid")}
    graph = builder_of(Plain, (START, "load"), ("load", "pay"), **nodes).compile(checkpointer=each_saver)
    with pytest.raises(RuntimeError):
        graph.invoke({"amount": 5}, THREAD)
    ticks = itertools.count()
    monkeypatch.setattr(_checkpoint, "uuid6", lambda clock_seq=None: f"1f000000-0000-6000-8000-{next(ticks):012d}")
    head = graph.get_state(THREAD).config
    for _ in range(3):
        assert graph.invoke(None, THREAD) == {"amount": 6}

    assert graph.get_state(THREAD).config == head
    assert trace.names == ["load", "load", "paid", "paid", "paid"]


def in_order(saver: Any) -> list[str]:
    """Write what three tasks wrote, in another order than theirs, and return the order it comes back in."""
    checkpoint = {**empty_checkpoint(), "id": "1"}
    saver.put({"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, checkpoint, {"source": "loop", "step": 0}, {})
    for number in (2, 0, 1):
        saver.put_writes(AT, [("lines", number)], f"task-{9 - number}", f"~__pregel_push, {number:010d}")
    found = saver.get_tuple(AT)
    assert found is not None
    return [value for _, _, value in found.pending_writes or []]


def test_langgraph_wants_what_tasks_wrote_in_the_order_of_the_tasks(each_saver: OfficialSaver) -> None:
    assert in_order(each_saver) == [0, 1, 2]


def test_ours_returns_what_tasks_wrote_in_the_order_of_the_tasks(journal: Journal) -> None:
    assert in_order(journal.saver) == [0, 1, 2]
