"""
What a run may take over its whole life, and what it has taken: supersteps, money, tokens of a model, time.

What was spent is never counted up anywhere; it is read from the effects, of which there is one row a slot:

    claimed, in doubt     what was reserved
    settled               what it came to: the reservation, unless the effect says otherwise; no money where the receiver declined
    released              nothing
    earlier generations   what each came to

So a crash cannot lose or double it. A reservation is made in the transaction of the claim, after the claim's own row is written and under a lock on
the run's row: of two branches that would overspend together, the second sees what the first reserved, and its claim never was.

A cap says how much may be taken at most. What fits exactly goes on; a claim that would not fit is refused, and a run that has used up its
supersteps, is too old, or turned out dearer than was reserved stops before its next superstep.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any, Literal

from checkpointing.clock import duration_ms
from checkpointing.errors import CapReached, CostUnknown, GraphRefused
from checkpointing.store import Tx

CAPS, STOP = "__counterfoil_caps", "__counterfoil_stop"
"""Where the config carries the caps and what stops the run before its next superstep. LangGraph stores no key that begins with two underscores."""

Cap = Literal["supersteps", "money", "tokens", "age"]
LARGEST = 2**53
"""The largest amount: beyond it JSON numbers are not exact."""

LOCK = "select thread_id from runs where thread_id = :thread_id for update"
SPENT = """
select coalesce(sum(money), 0) as money, coalesce(sum(tokens), 0) as tokens from (
    select coalesce(spent_money, cost) as money, coalesce(spent_tokens, tokens) as tokens from effects
    where thread_id = :thread_id and state <> 'released'
    union all
    select spent_money as money, spent_tokens as tokens from effect_generations where thread_id = :thread_id
) as taken
"""
INPUT_TAKEN = "update runs set steps = -1 where thread_id = :thread_id and state = 'running'"
STEP_DONE = """
update runs set steps = steps + 1 where thread_id = :thread_id and state = 'running' and not exists
    (select 1 from checkpoints where thread_id = :thread_id and checkpoint_ns = '' and checkpoint_id = :checkpoint_id)
"""
TAKEN = "select steps, :now - admitted_ms as age_ms from runs where thread_id = :thread_id"


@dataclass(frozen=True, slots=True)
class Caps:
    """
    The most a run may take; `None` is no cap.

    Attributes:
        supersteps: Supersteps of the root graph, in one turn.
        money: What its effects cost, in minor units, over the thread's life.
        tokens: What its models use, over the thread's life.
        age: The time since the turn was admitted, the time parked among it.
    """

    supersteps: int | None = None
    money: int | None = None
    tokens: int | None = None
    age: timedelta | None = None

    def __post_init__(self) -> None:
        """Refuse what caps nothing sensible."""
        for name, least in (("supersteps", 1), ("money", 0), ("tokens", 0)):
            given = getattr(self, name)
            if given is not None and not _is_amount(given, least=least):
                raise GraphRefused(f"the cap on {name} is {given!r}: it is a whole number of at least {least}")
        age: object = self.age
        if age is not None and not (isinstance(age, timedelta) and age > timedelta(0)):
            raise GraphRefused(f"the cap on age is {self.age!r}: it is a timedelta longer than nothing")

    def __bool__(self) -> bool:
        """Whether there is any."""
        return any(getattr(self, one.name) is not None for one in fields(self))

    @property
    def age_ms(self) -> int | None:
        """The age in milliseconds."""
        return None if self.age is None else duration_ms(self.age)


@dataclass(frozen=True, slots=True)
class Spend:
    """
    What one call came to; `None` is what was reserved for it.

    Attributes:
        money: In minor units.
        tokens: Of a model.
        unknown: Why it is not known, where the effect could not say.
    """

    money: int | None = None
    tokens: int | None = None
    unknown: str | None = None


@dataclass(frozen=True, slots=True)
class Taken:
    """What a run has taken so far, what is reserved among it; units as those of `Caps`."""

    supersteps: int
    money: int
    tokens: int
    age: timedelta


def reserve(tx: Tx, thread_id: str, caps: Caps, *, money: int, tokens: int) -> None:
    """
    Make sure that what was just claimed fits, as part of the claim's transaction.

    What costs nothing always fits and waits for nobody.

    Raises:
        CapReached: it does not; nothing of *tx* may happen.
    """
    asked = {"money": money, "tokens": tokens}
    capped = [name for name in asked if asked[name] and getattr(caps, name) is not None]
    if not capped:
        return
    tx.one(LOCK, thread_id=thread_id)
    spent = _spent(tx, thread_id)
    for name in capped:
        cap: int = getattr(caps, name)
        if spent[name] > cap:
            before = spent[name] - asked[name]
            raise reached(
                thread_id, f"cap_{name}", f"{before} of {cap} {name} are spent, and the next effect takes {asked[name]}"
            )


def over(tx: Tx, thread_id: str, caps: Caps) -> CapReached | None:
    """Return the cap that keeps the run from another superstep, as an error to raise or to write down; `None` if there is none."""
    if not caps:
        return None
    at = taken(tx, thread_id)
    if caps.supersteps is not None and at.supersteps >= caps.supersteps:
        return reached(thread_id, "cap_supersteps", f"it has taken its {caps.supersteps} supersteps and is not done")
    if caps.age is not None and at.age >= caps.age:
        return reached(thread_id, "cap_age", f"it was admitted longer than {caps.age} ago and is not done")
    for name in ("money", "tokens"):
        cap, spent = getattr(caps, name), getattr(at, name)
        if cap is not None and spent > cap:
            return reached(thread_id, f"cap_{name}", f"it has spent {spent} {name} of {cap}")
    return None


def taken(tx: Tx, thread_id: str) -> Taken:
    """Return what the run has taken."""
    row = tx.one(TAKEN, thread_id=thread_id)
    steps, age_ms = (int(row["steps"]), int(row["age_ms"])) if row else (0, 0)
    return Taken(max(0, steps), age=timedelta(milliseconds=age_ms), **_spent(tx, thread_id))


def count_step(tx: Tx, configurable: Mapping[str, Any], checkpoint_id: str, source: str) -> CapReached | None:
    """
    Count the superstep whose checkpoint is about to be written, as part of *tx*, and return the cap that lets no other follow.

    A turn's input is a checkpoint (`input`), and taking it in a superstep of LangGraph's own: neither counts. A checkpoint that is written
    twice counts once. A subgraph's steps are a part of its node's, and do not count; what they spend, and the time they take, does.
    """
    thread_id = str(configurable["thread_id"])
    if not configurable.get("checkpoint_ns"):
        if source == "input":
            tx.all(INPUT_TAKEN, thread_id=thread_id)
        elif source == "loop":
            tx.all(STEP_DONE, thread_id=thread_id, checkpoint_id=checkpoint_id)
    return over(tx, thread_id, configurable.get(CAPS) or Caps())


def reached(thread_id: str, reason: str, why: str) -> CapReached:
    """Return the error that names the cap and what to do."""
    return CapReached(
        f"thread {thread_id!r} reached {reason}: {why}. Raise the cap, then redrive it: counterfoil redrive {thread_id}",
        reason=reason,
        thread_id=thread_id,
    )


def amount(given: Callable[[Mapping[str, Any]], int] | None, arguments: Mapping[str, Any], *, what: str) -> int:
    """
    Return what one call is to take, before it is made; 0 where nobody says.

    Raises:
        CostUnknown: the function failed, or returned no whole number of zero or more.
    """
    if given is None:
        return 0
    try:
        found = given(arguments)
    except Exception as error:
        raise CostUnknown(f"{what} could not be told ({type(error).__name__}: {error}); nothing was called") from error
    if not _is_amount(found):
        raise CostUnknown(
            f"{what} is {found!r}; it is a whole number of zero or more, money in minor units. Nothing was called"
        )
    return found


def checked_spend(found: object) -> Spend:
    """Return what an effect says it came to, if it is that; else a spend that is not known."""
    if not isinstance(found, Spend):
        return Spend(unknown=f"spent= returned {type(found).__name__} and not Spend")
    if wrong := [one for one in (found.money, found.tokens) if one is not None and not _is_amount(one)]:
        return Spend(unknown=f"spent= returned {wrong[0]!r}; it is a whole number of zero or more")
    return found


def _spent(tx: Tx, thread_id: str) -> dict[str, int]:
    row = tx.one(SPENT, thread_id=thread_id)
    assert row is not None
    return {"money": int(row["money"]), "tokens": int(row["tokens"])}


def _is_amount(given: object, *, least: int = 0) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and least <= given <= LARGEST
