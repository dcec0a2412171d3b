"""
Faults: how the sandbox misbehaves when told to. Each is used up by the calls it hits, first told first.

    kind              the call is        the caller gets
    drop_before       not executed       a closed connection
    rate_limit        not executed       429, not stored
    hold_before       executed later     the answer, once released
    error_500         not executed       500, stored where the service stores errors
    error_500_after   executed           500, stored where the service stores errors
    drop_after        executed           a closed connection
    hold_after        executed           the answer, once released
    forget_key        executed again     the answer; the key was past its life, as it were
    old_answer        not executed       the first answer, to another request under its key, instead of a refusal

A fault hits calls that write, unless it names a method of its own (`"method": "GET"`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from tools.sandbox.calls import Call
from tools.sandbox.store import SandboxStore

At: TypeAlias = Literal["transfers", "emails", "claims", "tickets", "chat"]
Kind: TypeAlias = Literal[
    "drop_before",
    "drop_after",
    "hold_before",
    "hold_after",
    "error_500",
    "error_500_after",
    "rate_limit",
    "forget_key",
    "old_answer",
]


class Fault(BaseModel):
    """
    One fault as it is ordered.

    Attributes:
        times: How many calls it hits.
        match: A text that must stand in the body of the call.
        method: The method it hits; `None`: every writing one.
        seconds: How long an answer is held at most; `None`: until it is released.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    at: At
    kind: Kind
    times: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    match: str | None = None
    method: Literal["GET", "POST", "PUT", "PATCH"] | None = None
    seconds: Annotated[float, Field(gt=0, le=3600)] | None = None


class Faults:
    """The faults that are still to come."""

    def __init__(self, store: SandboxStore) -> None:
        self._store = store

    ADD = """
        insert into faults (at, kind, method, match, seconds, times, left)
        values (:at, :kind, :method, :match, :seconds, :times, :times)
    """

    def add(self, fault: Fault) -> None:
        """Order *fault*."""
        self._store.rows(self.ADD, **fault.model_dump())

    TAKE = """
        update faults set left = left - 1
        where number = (
            select number from faults
            where left > 0 and at = :at and kind = :kind
              and (match is null or instr(:text, match) > 0)
              and (method = :method or (method is null and :method <> 'GET'))
            order by number limit 1
        )
        returning at, kind, times, match, method, seconds
    """

    def take(self, at: At, kind: Kind, call: Call) -> Fault | None:
        """Use up one of the first fault of this *kind* that hits *call*, and return it."""
        row = self._store.row(self.TAKE, at=at, kind=kind, text=call.text, method=call.method)
        return Fault(**dict(row)) if row else None

    CLEAR = "delete from faults returning number"

    def clear(self) -> int:
        """Order nothing any more; return how many orders there were."""
        return len(self._store.rows(self.CLEAR))

    ALL = "select at, kind, method, match, seconds, times, left from faults order by number"

    def all(self) -> list[dict[str, Any]]:
        """Return all faults, used-up ones too, first told first; `left` is how often each still hits."""
        return [dict(row) for row in self._store.rows(self.ALL)]
