"""The door of an Agent Server without the server: what it records before a run is made, and what it turns away."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langgraph_sdk import Auth

from checkpointing import Approval, Journal
from checkpointing.errors import (
    AlreadyDecided,
    CounterfoilError,
    DecisionInvalid,
    InputChanged,
    InputRefused,
    JournalUnusable,
    NotAllowed,
    UnknownApproval,
)
from checkpointing.questions import Question
from checkpointing.slots import Place
from service.agent_server import AgentServer
from service.door import admit_run, let_through, make_auth, user_of
from service.settings import load_settings
from service.wiring import Served

ROOT = Path(__file__).parents[2]
THREAD = "01a22cef-1214-74ef-b2f0-c926e55bf7a8"
SERVER = AgentServer(load_settings("sqlite:////nowhere/claims.db"))
INPUT = {"claim_id": "0042", "documents": []}
QUESTION = Question(
    thread_id=THREAD,
    node="approve",
    name="payout",
    visit=0,
    payload={"amount": 5},
    allowed=("approve", "reject"),
    approvers=None,
    edits=None,
    ttl=None,
    on_expiry="reject",
)
TOKENS = {"ada": hashlib.sha256(b"secret").hexdigest()}


def run(thread_id: str | None = THREAD, **kwargs: Any) -> dict[str, Any]:
    """What the server hands to its handlers for a run."""
    return {"thread_id": thread_id and uuid.UUID(thread_id), "kwargs": {"config": {"configurable": {}}, **kwargs}}


@pytest.fixture
def asked(journal: Journal) -> Approval:
    admit_run(journal, "intake", run(input=INPUT))
    return journal.approvals.open(QUESTION, place=Place(None, "root", "approve:1", "@root"))


def test_a_decision_is_recorded_before_there_is_a_run(journal: Journal, asked: Approval) -> None:
    admit_run(journal, "ada", run(command={"resume": {"approval": asked.id, "type": "approve"}}))
    with pytest.raises(AlreadyDecided, match="approve by 'ada'"):
        admit_run(journal, "bob", run(command={"resume": {"approval": asked.id, "type": "reject"}}))

    assert journal.approvals.get(asked.id).decided_by == "ada"


def test_who_submitted_on_a_server_does_not_decide_elsewhere_either(journal: Journal, asked: Approval) -> None:
    with pytest.raises(NotAllowed, match="'intake' submitted thread"):
        journal.approvals.decide(asked.id, {"type": "approve"}, principal="intake")

    assert journal.approvals.get(asked.id).state == "pending"


def test_langgraphs_map_of_interrupts_is_taken_too(journal: Journal, asked: Approval) -> None:
    admit_run(journal, "ada", run(command={"resume": {"0" * 32: {"approval": asked.id, "type": "reject"}}}))

    assert journal.approvals.get(asked.id).decision == {"type": "reject"}


def test_who_submitted_does_not_decide(journal: Journal, asked: Approval) -> None:
    with pytest.raises(NotAllowed, match="'intake' submitted"):
        admit_run(journal, "intake", run(command={"resume": {"approval": asked.id, "type": "approve"}}))

    assert journal.approvals.get(asked.id).state == "pending"
    assert list(journal.audit.verify()) == []


def test_on_a_thread_that_nobody_submitted_nobody_decides(journal: Journal, asked: Approval) -> None:
    """A copy of a thread has no submitter on record, and its maker may be the one who submitted."""
    copy = str(uuid.uuid4())
    question = journal.approvals.open(
        replace(QUESTION, thread_id=copy), place=Place(None, "root", "approve:1", "@root")
    )
    with pytest.raises(NotAllowed, match="nobody is on record"):
        admit_run(journal, "ada", run(copy, command={"resume": {"approval": question.id, "type": "approve"}}))

    assert journal.approvals.get(question.id).state == "pending"


def test_a_thread_has_one_input(journal: Journal) -> None:
    admit_run(journal, "intake", run(input=INPUT))
    admit_run(journal, "intake", run(input=INPUT))  # the server died before it made the run
    with pytest.raises(InputChanged, match="other input"):
        admit_run(journal, "mallory", run(input={**INPUT, "claim_id": "0043"}))
    journal.approvals.open(QUESTION, place=Place(None, "root", "approve:1", "@root"))
    with pytest.raises(InputChanged, match="input=None"):
        admit_run(journal, "mallory", run(input=INPUT))

    assert {entry.actor for entry in journal.audit.entries(THREAD)} == {"intake", ""}


@pytest.mark.parametrize(
    ("asks", "error"),
    [
        ({"thread_id": None, "input": {}}, InputRefused),
        ({"config": {"configurable": {"__counterfoil_lease": {}}}, "input": {}}, InputRefused),
        ({"context": {"__pregel_task_id": "1"}, "input": {}}, InputRefused),
        ({"input": {"effects": {}}}, InputRefused),
        ({"command": {"goto": "pay"}}, InputRefused),
        ({"command": {"resume": {"approval": "a", "type": "approve"}, "foo": 1}}, InputRefused),
        ({"command": ["resume"]}, InputRefused),
        ({"command": {"resume": {"approval": "a\0b", "type": "approve"}}}, DecisionInvalid),
        ({"command": {"resume": {"approval": "a\ud800", "type": "approve"}}}, DecisionInvalid),
        ({"command": {"resume": {"0" * 32: {"approval": "a\0b", "type": "approve"}}}}, DecisionInvalid),
        ({"command": {"update": {"payout": 1}, "resume": {}}}, InputRefused),
        ({"command": {"resume": True}}, DecisionInvalid),
        ({"command": {"resume": {"0" * 32: "yes"}}}, DecisionInvalid),
        ({"command": {"resume": {"approval": "apr_nobody", "type": "approve"}}}, UnknownApproval),
    ],
)
def test_what_a_run_may_not_bring_is_named(journal: Journal, asks: Any, error: type[CounterfoilError]) -> None:
    with pytest.raises(error) as told:
        admit_run(journal, "ada", run(**asks))

    assert journal.audit.entries(THREAD) == []
    assert "fork(" not in str(told.value), "a client of HTTP has no functions of ours"
    assert error is not DecisionInvalid or '{"resume": {"approval": ID' in str(told.value)


def test_an_approval_is_answered_on_its_own_thread(journal: Journal, asked: Approval) -> None:
    elsewhere = run(str(uuid.uuid4()), command={"resume": {"approval": asked.id, "type": "approve"}})
    with pytest.raises(UnknownApproval):
        admit_run(journal, "ada", elsewhere)

    assert journal.approvals.get(asked.id).state == "pending"


@pytest.mark.parametrize(
    "shown", [None, "", "Bearer", "Bearer other", "Basic secret", "secret", f"Bearer {TOKENS['ada']}"]
)
def test_a_token_that_is_nobodys_is_401(shown: str | None) -> None:
    with pytest.raises(Auth.exceptions.HTTPException) as told:
        user_of(TOKENS, shown)

    assert told.value.status_code == 401


def test_a_token_is_its_owners() -> None:
    assert user_of(TOKENS, "Bearer secret") == "ada"
    with pytest.raises(Auth.exceptions.HTTPException):
        user_of({}, "Bearer ")


STUDIO = Auth.types.StudioUser("langgraph-studio-user")
ADA: Any = SimpleNamespace(identity="ada")


def let_in(user: Any, resource: str, action: str, value: Any = None, server: AgentServer = SERVER) -> bool:
    """Ask the door about one request."""
    wanted: Any = {"permissions": [], "user": user, "resource": resource, "action": action}
    return asyncio.run(let_through(server, Auth.types.AuthContext(**wanted), value or {}))


def test_what_claims_do_not_need_is_shut() -> None:
    assert let_in(ADA, "threads", "create")
    assert let_in(ADA, "threads", "update", {"action": "interrupt"})
    assert not let_in(ADA, "assistants", "create")
    assert not let_in(ADA, "crons", "create")
    assert not let_in(ADA, "store", "put")
    with pytest.raises(NotAllowed, match="by hand"):
        let_in(ADA, "threads", "update", {"thread_id": THREAD})


def test_studio_looks_and_does_nothing() -> None:
    assert let_in(STUDIO, "threads", "read")
    assert let_in(STUDIO, "assistants", "search")
    for action in ("create", "create_run", "update"):
        assert not let_in(STUDIO, "threads", action, run(input={}))
    assert not let_in(None, "threads", "create_run", run(input={}))


def test_a_journal_that_is_away_fails_the_request_and_not_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    server = AgentServer(load_settings("sqlite:///later/claims.db"))
    with pytest.raises(JournalUnusable):
        let_in(ADA, "threads", "create_run", run(input={"claim_id": "0042"}), server)

    (tmp_path / "later").mkdir()
    assert let_in(ADA, "threads", "create_run", run(input={"claim_id": "0042"}), server)
    close(server)


def test_a_refusal_has_its_status_and_its_words(tmp_path: Path) -> None:
    (tmp_path / "new.db").write_text("no database")
    wanted: Any = {"permissions": [], "user": ADA, "resource": "threads", "action": "create_run"}
    authorise: Any
    [authorise] = make_auth(AgentServer(load_settings(f"sqlite:///{tmp_path}/new.db")))._global_handlers
    with pytest.raises(Auth.exceptions.HTTPException, match=r"503: .*new\.db"):
        asyncio.run(authorise(ctx=Auth.types.AuthContext(**wanted), value=run(input=INPUT)))

    wanted["action"] = "update"
    with pytest.raises(Auth.exceptions.HTTPException, match="403: .*by hand"):
        asyncio.run(authorise(ctx=Auth.types.AuthContext(**wanted), value={}))


def test_the_entry_is_in_module_form_and_opens_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    named = json.loads((ROOT / "langgraph.json").read_text())
    places = [*named["graphs"].values(), named["auth"]["path"]]
    modules = {place.partition(":")[0]: importlib.import_module(place.partition(":")[0]) for place in places}

    for place in places:
        module, _, name = place.partition(":")
        assert hasattr(modules[module], name)
    for module in modules.values():
        assert [
            one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__
        ] == []
    assert list(tmp_path.iterdir()) == []


def test_the_journal_is_opened_once_whoever_is_first(url: str) -> None:
    server = AgentServer(load_settings(url))

    async def in_this_loop() -> list[Served]:
        return list(await asyncio.gather(*(server.opened() for _ in range(8))))

    with ThreadPoolExecutor(4) as pool:
        served = [one for loop in pool.map(lambda _: asyncio.run(in_this_loop()), range(4)) for one in loop]

    assert {id(one) for one in served} == {id(served[0])}
    assert served[0].graph.checkpointer is None
    close(server)


def close(server: AgentServer) -> None:
    asyncio.run(server.opened()).journal.close()
