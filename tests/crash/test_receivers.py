"""
Killed before and after every call to a receiver, by SIGKILL, on both engines: the real clients, a sandbox on a real socket, one payment, one letter.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from checkpointing.errors import RunBusy
from tests.crash.points import CALLS, calls
from tests.support.points import die_at
from tests.support.processes import finish, start, until
from tests.support.real_claim import RealClaim
from tools.sandbox import SandboxProcess

BUSY = 75
KEY_LIFE_H = 25
"""By then the payment provider may have forgotten a key."""


@dataclass(frozen=True)
class Story:
    """What the process does that dies, what happened before, where an earlier one died, and how many hours later this is."""

    dying: str
    before: tuple[str, ...] = ()
    died: tuple[str, str] | None = None
    hours: int = 0


STORIES = {
    "filing": Story("file and submit"),
    "paying": Story("approve", before=("file and submit",)),
    "looking up": Story("resume", before=("file and submit",), died=("approve", "after call pay"), hours=KEY_LIFE_H),
}


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    with SandboxProcess(tmp_path_factory.mktemp("sandbox") / "sandbox.db") as sandbox:
        yield sandbox


def one_act(claim: RealClaim, action: str, point: str | None = None, hours: int = 0) -> None:
    """Be a process that does one *action*, and dies at *point* if one is given."""
    if point:
        die_at(point)
    with claim.opened(hours=hours) as graph:
        try:
            claim.act(graph, action)
        except RunBusy:
            raise SystemExit(BUSY) from None


def dies(claim: RealClaim, action: str, point: str, hours: int = 0) -> None:
    """Start processes until one of them has died at *point*; those before it met the lease of an earlier dead one."""

    def died() -> bool | None:
        process = start(one_act, claim, action, point, hours)
        process.join(60)
        if process.exitcode == BUSY:
            return None
        assert process.exitcode == -9, f"{action!r} did not die at {point!r}, it ended with {process.exitcode}"
        return True

    until(died)


@pytest.mark.parametrize(("story", "point"), calls())
def test_killed_at_a_call(url: str, tmp_path: Path, outside: SandboxProcess, story: str, point: str) -> None:
    claim, told = RealClaim(url, outside.url, tmp_path, uuid.uuid4().hex[:12]), STORIES[story]
    for action in told.before:
        finish(start(one_act, claim, action))
    if told.died:
        dies(claim, *told.died)
    dies(claim, told.dying, point, told.hours)

    # Whoever takes a doubtful call over counts as one who may have called: the look-up waits again until the receiver is sure to know.
    with claim.opened(hours=told.hours and told.hours + 1) as graph:

        def ended() -> bool | None:
            with suppress(RunBusy):
                return claim.act_next(graph)
            return None

        until(ended)
        journal = graph.journal
        run = journal.runs.get(claim.thread_id)
        assert (run.state, run.error) == ("done", None)
        assert graph.get_state({"configurable": {"thread_id": claim.thread_id}}).values["outcome"] == "paid"
        assert {one.state for one in journal.effects.list(thread_id=claim.thread_id)} == {"settled"}
        assert list(journal.audit.verify()) == []
        assert journal.leases.holder(f"thread:{claim.thread_id}") is None
    assert [payment.amount for payment in outside.control.payments(claim.claim_id)] == [1840_00]
    assert len(outside.control.messages(claim.claim_id)) == 1


def test_every_story_is_told() -> None:
    assert set(STORIES) == {story for passing in CALLS.values() for story in passing}
