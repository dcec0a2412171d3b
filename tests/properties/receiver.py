"""
The receiver of every effect: it writes down each call, in one file that survives whoever called, and has moods.

A keyed one executes a key once and forgets keys after a day; the others execute whatever they are sent.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.properties.history import Kind
from tools import Declined, Effect, Receiver, Rejected, Unreachable, effect

DAY = timedelta(hours=24)
BRIEFLY = timedelta(milliseconds=1)
PROFILES = {
    "keyed": Receiver(honours_keys=True, key_life=DAY, attempts=2, backoff=BRIEFLY),
    "looked_up": Receiver(settle_delay=timedelta(0), attempts=2, backoff=BRIEFLY),
    "asked": Receiver(attempts=2, backoff=BRIEFLY),
}
MOODS = ("drops", "silent", "declines", "rejects", "breaks")
"""Executes and gives no answer; gives none and does nothing; says no; refuses; executes and breaks off with an error nobody declared."""

Call = dict[str, Any]


class BrokeOff(Exception):
    """What a tool raises that did not declare it."""


class Desk:
    """Where effects are executed."""

    def __init__(self, folder: Path, now: Callable[[], datetime]) -> None:
        """Keep the book in *folder*."""
        self.book, self.moods, self.now = folder / "book", folder / "moods", now

    def calls(self) -> list[Call]:
        """Return every call, in order."""
        return lines_of(self.book)

    def happened(self, claim_id: str) -> Call | None:
        """Return the call that executed this operation, as whoever rings up the receiver is told."""
        return next((call for call in self.calls() if call["claim_id"] == claim_id and call["executed"]), None)

    def execute(self, kind: Kind, **call: Any) -> dict[str, Any]:
        """Take one call."""
        with self._alone():
            known = self._known(call["key"]) if kind == "keyed" else None
            mood = "" if known else self._mood()
            if mood in ("silent", "rejects"):
                raise Unreachable("no answer") if mood == "silent" else Rejected("not like this")
            executed = known is None and mood != "declines"
            declined = known["declined"] if known else mood == "declines"
            append(self.book, {**call, "at": self.now().timestamp(), "executed": executed, "declined": declined})
        if declined:
            raise Declined("no")
        if mood == "drops":
            raise Unreachable("the line went dead")
        if mood == "breaks":
            raise BrokeOff
        return {"paid": call["amount"]}

    def effect(self, kind: Kind) -> Effect:
        """Return the effect of calling this receiver."""

        @effect(receiver=PROFILES[kind], name=f"pay-{kind}")
        def pay(*, claim_id: str, amount: int, key: str) -> dict[str, Any]:
            return self.execute(kind, claim_id=claim_id, amount=amount, key=key)

        if kind != "asked":

            @pay.lookup
            def find(*, claim_id: str, **_: Any) -> dict[str, Any] | None:
                found = self.happened(claim_id)
                return {"paid": found["amount"]} if found else None

        return pay

    def add_mood(self, mood: str) -> None:
        """Be in this mood at some later call; each mood lasts for one."""
        append(self.moods, mood)

    def cheer_up(self) -> None:
        """Forget every mood."""
        self.moods.write_text("")

    def _known(self, key: str) -> Call | None:
        oldest = self.now().timestamp() - DAY.total_seconds()
        return next((call for call in self.calls() if call["key"] == key and call["at"] > oldest), None)

    def _mood(self) -> str:
        first, *rest = lines_of(self.moods) or [""]
        self.moods.write_text("".join(json.dumps(mood) + "\n" for mood in rest))
        return str(first)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One call after the other, whichever process makes it; the lock ends with its process."""
        with self.book.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def append(file: Path, line: Any) -> None:
    """Add one line with one write, so that a kill leaves the whole line or none."""
    with file.open("ab", buffering=0) as opened:
        os.write(opened.fileno(), (json.dumps(line) + "\n").encode())


def lines_of(file: Path) -> list[Any]:
    """Return what was appended."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
