"""The claims graph under `langgraph dev`, with the SDK as its client: one payment and one decision, whatever the server does."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest
from langgraph_sdk.errors import APIStatusError

from checkpointing import EffectRecord, Journal
from service.door import admit_run
from tests.service.conftest import in_process
from tests.support.agent_server import PATIENCE_S, ROOT, AgentServerProcess, decision, token
from tests.support.processes import until
from tools.sandbox import SandboxControl

GRAPH = "claims"
REFUSED = (httpx.HTTPStatusError, APIStatusError)
TWO_DAYS_AGO = """
update effects set claimed_ms = claimed_ms - 172800000, called_ms = called_ms - 172800000 where key = :key returning key
"""


@dataclass(frozen=True)
class Asked:
    """A claim that waits for an adjuster on a thread of the server."""

    server: AgentServerProcess
    claim_id: str
    thread_id: str
    parked: Any

    def run(self, user: str, **options: Any) -> Any:
        """Run the thread as *user* until the run ends, and return the state."""
        return self.server.client(user).runs.wait(self.thread_id, GRAPH, **options)

    def refused(self, user: str, **options: Any) -> tuple[int, str]:
        """Run the thread as *user*, who is turned away; return the status and what was said."""
        with pytest.raises(REFUSED) as told:
            self.run(user, **options)
        return told.value.response.status_code, told.value.response.json()["detail"]


@pytest.fixture
def asked(server: AgentServerProcess, claim: Callable[[], str]) -> Callable[..., Asked]:
    """Submits a claim as intake, a new one if none is given, and returns it as it waits for an adjuster."""

    def submit(claim_id: str | None = None) -> Asked:
        intake, claim_id = server.client("intake"), claim_id or claim()
        thread_id = intake.threads.create()["thread_id"]
        parked = intake.runs.wait(thread_id, GRAPH, input={"claim_id": claim_id, "documents": []})
        return Asked(server, claim_id, thread_id, parked)

    return submit


def test_a_claim_is_asked_about_approved_and_paid(
    asked: Callable[..., Asked], journal: Journal, control: SandboxControl
) -> None:
    waits = asked()
    ada = waits.server.client("ada")
    assert ada.threads.get(waits.thread_id)["status"] == "interrupted"
    assert control.payments(waits.claim_id) == []

    paid = waits.run("ada", command=decision(waits.parked))

    assert paid["outcome"] == "paid"
    (payment,) = control.payments(waits.claim_id)
    assert paid["payment"]["id"] == payment.id
    assert ada.threads.get(waits.thread_id)["status"] == "idle"
    nexts = [state["next"] for state in ada.threads.get_history(waits.thread_id, limit=50)]
    assert nexts[:6] == [[], ["close"], ["notify"], ["pay"], ["revalidate"], ["approve"]]
    (approval,) = journal.approvals.of_thread(waits.thread_id)
    assert (approval.state, approval.decided_by) == ("decided", "ada")
    assert list(journal.audit.verify()) == []


def test_the_example_submits_and_approves_a_claim(
    server: AgentServerProcess, claim: Callable[[], str], control: SandboxControl
) -> None:
    claim_id = claim()
    tokens = {"INTAKE_TOKEN": token("intake"), "ADJUSTER_TOKEN": token("ada")}
    ran = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "agent_server_client.py"), claim_id],
        env={**os.environ, **tokens, "AGENT_SERVER_URL": server.url},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )

    assert (ran.returncode, ran.stderr) == (0, "")
    (payment,) = control.payments(claim_id)
    assert f"paid: {{'id': '{payment.id}'" in ran.stdout


def test_two_clients_answer_one_approval_at_once(
    asked: Callable[..., Asked], journal: Journal, control: SandboxControl
) -> None:
    waits = asked()
    barrier = threading.Barrier(2)

    def answer(user: str) -> Any:
        barrier.wait(60)
        try:
            return waits.run(user, command=decision(waits.parked))
        except REFUSED as refused:
            return refused.response.status_code, refused.response.json()["detail"]

    with ThreadPoolExecutor(2) as pool:
        answers = dict(zip(("ada", "bob"), pool.map(answer, ("ada", "bob")), strict=True))

    (approval,) = journal.approvals.of_thread(waits.thread_id)
    winner = approval.decided_by
    assert winner in answers
    assert answers.pop(winner)["outcome"] == "paid"
    (loser,) = answers.values()
    assert loser[0] == 409
    assert f"decided already: approve by '{winner}'" in loser[1]
    assert len(control.payments(waits.claim_id)) == 1

    # Travel to each checkpoint before the payment, and run from there.
    ada = waits.server.client("ada")
    history = ada.threads.get_history(waits.thread_id, limit=50)
    for node in ("pay", "revalidate", "approve"):
        (before,) = [state for state in history if state["next"] == [node]]
        again = waits.run("ada", input=None, checkpoint_id=before["checkpoint"]["checkpoint_id"])
        assert again["outcome"] == "paid"
    assert len(control.payments(waits.claim_id)) == 1
    payment = pay_of(journal, waits)
    assert (payment.state, payment.replays) == ("settled", 3)


def test_a_later_decision_is_told_who_won(asked: Callable[..., Asked], control: SandboxControl) -> None:
    waits = asked()
    assert waits.run("ada", command=decision(waits.parked, "reject", reason="no cover"))["outcome"] == "rejected"

    status, said = waits.refused("bob", command=decision(waits.parked))

    assert (status, "decided already: reject by 'ada'" in said) == (409, True)
    assert waits.run("bob", input=None)["outcome"] == "rejected"
    assert control.payments(waits.claim_id) == []


def test_a_decision_whose_run_was_never_made_is_read_by_the_next(
    asked: Callable[..., Asked], journal: Journal, control: SandboxControl
) -> None:
    """The server dies after the door has recorded the decision, and before it makes the run."""
    waits = asked()
    admit_run(journal, "ada", {"thread_id": waits.thread_id, "kwargs": {"command": decision(waits.parked)}})

    assert waits.run("bob", input=None)["outcome"] == "paid"
    (approval,) = journal.approvals.of_thread(waits.thread_id)
    assert approval.decided_by == "ada"
    assert len(control.payments(waits.claim_id)) == 1


def test_who_submitted_does_not_decide(asked: Callable[..., Asked], control: SandboxControl) -> None:
    waits = asked()

    status, said = waits.refused("intake", command=decision(waits.parked))

    assert (status, "submitted thread" in said) == (403, True)
    # The refused answer is nowhere: whoever nudges the thread does not give it in their own name.
    assert "__interrupt__" in waits.run("ada", input=None)
    assert control.payments(waits.claim_id) == []


def test_a_copy_of_a_thread_is_no_way_to_ones_own_approval(
    asked: Callable[..., Asked], control: SandboxControl
) -> None:
    waits = asked()
    intake = waits.server.client("intake")
    intake.threads.copy(waits.thread_id)
    (copy,) = [
        found
        for found in intake.threads.search(sort_by="created_at", sort_order="desc", limit=1)
        if found["thread_id"] != waits.thread_id
    ]
    copied = replace(waits, thread_id=copy["thread_id"])
    parked = copied.run("intake", input=None)

    for user in ("intake", "ada"):
        status, said = copied.refused(user, command=decision(parked))
        assert (status, "nobody is on record" in said) == (403, True)
    assert control.payments(waits.claim_id) == []


def test_a_thread_takes_one_input(asked: Callable[..., Asked], claim: Callable[[], str]) -> None:
    waits = asked()

    assert waits.refused("intake", input={"claim_id": claim(), "documents": []})[0] == 409
    assert waits.refused("intake", input={"claim_id": waits.claim_id, "documents": []})[0] == 409
    assert "__interrupt__" in waits.run("ada", input=None)


def test_without_a_token_nobody_comes_in(server: AgentServerProcess) -> None:
    for client in (
        server.client(None),
        server.client(None, authorization="Bearer guess"),
        server.client(None, **{"x-auth-scheme": "langsmith"}),  # how Studio comes
    ):
        with pytest.raises(REFUSED) as told:
            client.threads.create()
        assert told.value.response.status_code == 401


@pytest.mark.parametrize("path", ["/mcp", "/a2a/claims"])
def test_the_servers_other_ways_in_are_switched_off(server: AgentServerProcess, path: str) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"authorization": f"Bearer {token('ada')}", "accept": "application/json"}

    assert httpx.post(f"{server.url}{path}", json=call, headers=headers, timeout=60).status_code == 404


@pytest.mark.parametrize(
    "named",
    [
        {
            "config": {
                "configurable": {"langgraph_auth_user": {"identity": "mallory"}, "langgraph_auth_user_id": "mallory"}
            }
        },
        {"context": {"langgraph_auth_user": {"identity": "mallory"}}},
        {"metadata": {"langgraph_auth_user": {"identity": "mallory"}, "principal": "mallory"}},
        {"command": {"principal": "mallory", "decided_by": "mallory", "by": "mallory"}},
        {"checkpoint": {"langgraph_auth_user": {"identity": "mallory"}}},
    ],
    ids=["configurable", "context", "metadata", "decision", "checkpoint"],
)
def test_who_decides_is_whose_token_it_is(named: dict[str, Any], asked: Callable[..., Asked], journal: Journal) -> None:
    waits = asked()
    command = decision(waits.parked, "reject", **named.pop("command", {}))

    waits.run("ada", command=command, **named)

    (approval,) = journal.approvals.of_thread(waits.thread_id)
    assert (approval.state, approval.decided_by) == ("decided", "ada")
    assert "mallory" not in str(approval.decision)
    # What reaches the node: the server has put its own user where the client put another.
    run: Any = waits.server.client("ada").runs.list(waits.thread_id, limit=1)[0]
    assert run["kwargs"]["config"]["configurable"]["langgraph_auth_user"]["identity"] == "ada"


@pytest.mark.parametrize(
    "key", ["__counterfoil_principal", "__counterfoil_lease", "__pregel_task_id", "__pregel_checkpointer"]
)
@pytest.mark.parametrize("where", ["configurable", "context"])
def test_what_only_python_sets_is_refused(key: str, where: str, asked: Callable[..., Asked], journal: Journal) -> None:
    waits = asked()
    given = {"context": {key: "mallory"}} if where == "context" else {"config": {"configurable": {key: "mallory"}}}

    status, said = waits.refused("ada", command=decision(waits.parked), **given)

    assert (status, key in said) == (422, True)
    (approval,) = journal.approvals.of_thread(waits.thread_id)
    assert approval.state == "pending"


def test_the_past_is_not_written_by_hand(asked: Callable[..., Asked]) -> None:
    waits = asked()
    ada = waits.server.client("ada")

    assert waits.refused("ada", input={"approvals": {"payout": {"type": "approve"}}})[0] == 422
    assert waits.refused("ada", command={"update": {"payout": 1}})[0] == 422
    assert waits.refused("ada", command={"goto": "pay"})[0] == 422
    assert waits.refused("ada", command={"resume": "yes"})[0] == 422
    for shut in (
        lambda: ada.threads.update_state(waits.thread_id, {"payout": 1}),
        lambda: ada.assistants.create(GRAPH, config={"configurable": {"__counterfoil_principal": "mallory"}}),
        lambda: ada.crons.create(GRAPH, schedule="* * * * *", input={}),
        lambda: ada.store.put_item(["a"], "b", {}),
    ):
        with pytest.raises(REFUSED) as told:
            shut()
        assert told.value.response.status_code == 403
    made = ada.threads.create(
        graph_id=GRAPH, supersteps=[{"updates": [{"values": {"payout": 1}, "as_node": "compute_payout"}]}]
    )
    assert "by hand" in str(made)
    with pytest.raises(REFUSED) as told:
        ada.runs.wait(None, GRAPH, input={"claim_id": waits.claim_id, "documents": []})
    assert told.value.response.status_code == 422


def test_a_run_rolled_back_in_the_middle_of_the_payment(
    asked: Callable[..., Asked], journal: Journal, control: SandboxControl
) -> None:
    waits = asked()
    ada = waits.server.client("ada")
    control.fault("transfers", "hold_after", match=waits.claim_id)
    ada.runs.create(waits.thread_id, GRAPH, command=decision(waits.parked))
    control.wait_held(timeout_s=60)

    second = ada.runs.create(waits.thread_id, GRAPH, input=None, multitask_strategy="rollback")
    until(lambda: ada.runs.get(waits.thread_id, second["run_id"])["status"] in ("error", "success") or None)
    # The call that was under way is not stopped by the rollback; it is settled when its answer comes.
    control.release()
    until(lambda: pay_of(journal, waits).state == "settled" or None)

    assert waits.run("ada", input=None)["outcome"] == "paid"
    assert len(control.payments(waits.claim_id)) == 1


def test_an_effect_in_doubt_waits_for_a_person(
    asked: Callable[..., Asked], settings: dict[str, str], journal: Journal, control: SandboxControl
) -> None:
    waits = asked()
    control.fault("transfers", "drop_before", match=waits.claim_id, times=100)
    with pytest.raises(Exception, match="EffectUnsettled"):
        waits.run("ada", command=decision(waits.parked))
    doubtful = pay_of(journal, waits)
    with journal.store.transaction("two days pass") as tx:
        tx.all(TWO_DAYS_AGO, key=doubtful.key)

    with pytest.raises(Exception, match="EffectInDoubt"):
        waits.run("ada", input=None)
    assert waits.server.client("ada").threads.get(waits.thread_id)["status"] == "error"
    cli = in_process(settings)
    cli("effects", "resolve", doubtful.key, "--nothing-happened", "--as", "ops-1")
    control.clear_faults()

    assert waits.run("ada", input=None)["outcome"] == "paid"
    assert len(control.payments(waits.claim_id)) == 1


def test_killed_in_the_middle_of_the_payment(
    asked: Callable[..., Asked], server: AgentServerProcess, control: SandboxControl
) -> None:
    """The development server forgets a thread that it had not flushed; the claim is submitted again, on another."""
    waits = asked()
    control.fault("transfers", "hold_after", match=waits.claim_id)
    server.client("ada").runs.create(waits.thread_id, GRAPH, command=decision(waits.parked))
    control.wait_held(timeout_s=60)
    server.kill()
    control.release()
    assert len(control.payments(waits.claim_id)) == 1

    server.start()
    again = asked(waits.claim_id)
    paid = again.run("ada", command=decision(again.parked))

    assert paid["outcome"] == "paid"
    (payment,) = control.payments(waits.claim_id)
    assert paid["payment"]["id"] == payment.id


def pay_of(journal: Journal, waits: Asked) -> EffectRecord:
    (found,) = [effect for effect in journal.effects.list(thread_id=waits.thread_id) if effect.effect == "pay"]
    return found


def test_nothing_of_ours_blocked_the_servers_loop(asked: Callable[..., Asked], server: AgentServerProcess) -> None:
    waits = asked()
    assert waits.run("ada", command=decision(waits.parked))["outcome"] == "paid"

    assert "Background run succeeded" in server.log
    assert "BlockingError" not in server.log
