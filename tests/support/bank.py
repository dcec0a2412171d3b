"""
A bank that counts: what it executed stands in a file, one line a call, so that it survives the death of whoever called it.

It honours keys: a repeat of a key is answered with the first result and counted as a repeat. Its mood stands in a file too, so that it is the same
for every process: `silent` executes and gives no answer, `slow` executes and answers after half a minute, `refusing` executes nothing.
"""

from __future__ import annotations

import json
import os
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

from tools import Effect, Receiver, Rejected, Unreachable, effect

KEYED = Receiver(honours_keys=True, key_life=timedelta(hours=24), attempts=2, backoff=timedelta(milliseconds=1))
SLOW_S = 30


class Bank:
    """Executes payments, once a key."""

    def __init__(self, file: Path) -> None:
        """Keep the executed calls in *file*."""
        self.file = file
        self.mood_file = file.with_name(f"{file.name}.mood")
        file.touch()

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Every call, repeats too, in order."""
        return [json.loads(line) for line in self.file.read_text().splitlines()]

    @property
    def executed(self) -> list[dict[str, Any]]:
        """What really moved money: the first call of every key."""
        first: dict[str, dict[str, Any]] = {}
        for call in self.calls:
            first.setdefault(call["key"], call)
        return list(first.values())

    @property
    def mood(self) -> str:
        """How it takes calls now; empty for as it should."""
        return self.mood_file.read_text() if self.mood_file.exists() else ""

    def become(self, mood: str) -> None:
        """Take calls in that way from now on."""
        self.mood_file.write_text(mood)

    def execute(self, **call: Any) -> dict[str, Any]:
        """Take one call; one write of one line, so that a kill leaves the whole line or none."""
        mood = self.mood
        if mood == "refusing":
            raise Rejected("no such payee")
        with self.file.open("ab", buffering=0) as file:
            os.write(file.fileno(), (json.dumps(call) + "\n").encode())
        if mood == "silent":
            raise Unreachable("the line went dead")
        if mood == "slow":
            threading.Event().wait(SLOW_S)
        return {"paid": call.get("amount"), "key": call["key"]}

    def effect(self, receiver: Receiver = KEYED, **options: Any) -> Effect:
        """Return the effect `pay` at this bank."""

        @effect(receiver=receiver, name="pay", **options)
        def pay(*, claim_id: str, amount: int, key: str) -> dict[str, Any]:
            return self.execute(claim_id=claim_id, amount=amount, key=key)

        return pay
