"""
A day at a carrier, for the tests that look at every page and for the screenshots: claims that wait, were decided, ran out of time; runs in trouble.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Any, Self
from unittest.mock import patch
from urllib.parse import quote

from tests.browser.site import EXAMPLES, Site
from tests.support.clock import MovingClock
from tools.claim_models import EstimateLine
from tools.sandbox import SandboxControl

HOUR = timedelta(hours=1)


class TickingClock(MovingClock):
    """A clock that goes on a little whenever somebody looks at it, so that what follows is later."""

    def __call__(self) -> datetime:
        self.move(timedelta(milliseconds=4))
        return self.now


@contextmanager
def one_clock(clock: MovingClock) -> Iterator[None]:
    """Have LangGraph date its checkpoints by *clock* too: a run that is drawn has its steps and its waits on one axis then."""

    class Clocked(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            at = clock().astimezone(tz)
            return cls(*at.timetuple()[:6], at.microsecond, tzinfo=at.tzinfo)

    with patch("langgraph.pregel._checkpoint.datetime", Clocked):
        yield


@dataclass(frozen=True)
class Scene:
    """
    What there is to look at: approvals by their id, runs by their thread, an effect by its key.

    Attributes:
        waiting: An approval that waits, of an ordinary claim.
        changed: One that is asked anew, because the estimate grew.
        taken: One that a colleague decides while somebody looks at it.
    """

    waiting: str
    changed: str
    before: str
    taken: str
    expired: str
    withdrawn: str
    done: str
    dead: str
    doubt: str

    @property
    def pages(self) -> dict[str, str]:
        """Every page that there is to see, by what it is called."""
        return {
            "queue": "/",
            "all": "/?show=all&least=1",
            "empty": "/?name=nothing",
            "approval": f"/approvals/{self.waiting}",
            "changed": f"/approvals/{self.changed}",
            "before": f"/approvals/{self.before}",
            "expired": f"/approvals/{self.expired}",
            "withdrawn": f"/approvals/{self.withdrawn}",
            "operator": "/operate",
            "runs": "/runs",
            "run": f"/run?id={self.done}",
            "dead": f"/run?id={self.dead}",
            "missing": "/approvals/apr_nothing",
            "redrive": f"/act/redrive?of={self.dead}",
            "resolve": f"/act/resolve?of={quote(self.doubt, safe='')}",
            "extend": f"/act/extend?of={self.waiting}",
            "reassign": f"/act/reassign?of={self.waiting}",
            "withdraw": f"/act/withdraw?of={self.waiting}",
        }


def play(site: Site, control: SandboxControl, *, prefix: str = "") -> Scene:
    """Let it all happen; *prefix* keeps the claims apart from those of other plays at the same sandbox."""
    clock = site.clock
    site.doubt_one(f"{prefix}0038", control)
    expired = site.pending(site.submit(f"{prefix}0039", example="0045")).id
    clock.move(timedelta(days=3))
    site.go_on(f"claim-{prefix}0039")
    dead = site.kill_one(f"{prefix}0040")
    history(site, prefix)
    done = _done(site, f"{prefix}0041")
    withdrawn = site.pending(site.submit(f"{prefix}0043", example="0043")).id
    site.journal.approvals.withdraw(withdrawn, principal="intake", reason="Entered twice.")
    site.go_on(f"claim-{prefix}0043")
    before, changed = _grown(site, control, f"{prefix}0049")
    clock.move(45 * HOUR)
    taken = site.pending(site.submit(f"{prefix}0045", example="0045")).id
    clock.move(24 * HOUR)
    waiting = site.pending(site.submit(f"{prefix}0042")).id
    stuck = site.submit(f"{prefix}0044", example="0050")
    site.approve(stuck, by="ben.okafor")
    clock.move(timedelta(minutes=7))
    [doubt] = [one.key for one in site.journal.effects.list(state="in_doubt")]
    return Scene(waiting, changed, before, taken, expired, withdrawn, done, dead, doubt)


def history(site: Site, prefix: str) -> None:
    """Have some claims decided that are like the others."""
    for number, (kind, reason) in enumerate(
        (("approve", ""), ("approve", ""), ("reject", "The same damage was claimed in March."), ("approve", ""))
    ):
        asked = site.pending(site.submit(f"{prefix}003{number}"))
        decision: dict[str, Any] = {"type": kind, **({"reason": reason} if reason else {})}
        site.journal.approvals.decide(asked.id, decision, principal="ben.okafor")
        site.go_on(asked.thread_id)
        site.clock.move(timedelta(minutes=50))


def _done(site: Site, claim_id: str) -> str:
    thread_id = site.submit(claim_id)
    site.clock.move(5 * HOUR + timedelta(minutes=20))
    asked = site.pending(thread_id)
    payload = {**asked.payload, "amount": 179_000}
    reason = "The garage gave a discount of 50.00."
    site.journal.approvals.decide(
        asked.id, {"type": "edit", "payload": payload, "reason": reason}, principal="ada.lindqvist"
    )
    site.go_on(thread_id)
    return thread_id


def _grown(site: Site, control: SandboxControl, claim_id: str) -> tuple[str, str]:
    """Approve a claim whose estimate has grown meanwhile; return what was asked before, and what is asked now."""
    thread_id = site.submit(claim_id, example="0049")
    before = site.pending(thread_id)
    lines = json.loads((EXAMPLES / "0049" / "later.json").read_text())["estimate"]
    control.grow_estimate(claim_id, [EstimateLine.model_validate(line) for line in lines])
    site.approve(thread_id, by="ben.okafor")
    site.go_on(thread_id)
    return before.id, site.pending(thread_id).id
