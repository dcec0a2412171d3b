"""
Performing an effect: claim, call, settle; one protocol without I/O of its own, and two thin drivers.

`perform` is a generator. It yields `Call` (run this tool function) and `Wait`, and is sent what the tool returned or thrown what it raised;
`drive` and `adrive` do that, in sync and in async code. What happens when the process dies at a yield:

    claim ── Call ── settle ── return
          │        │         └─ nothing: the next claim is answered with the outcome
          │        └─ the receiver executed it; the claim's owner is gone, and `next_move` says how to find out
          └─ the same, though nothing happened: nobody can tell the two apart, so both are resolved in the same way
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from checkpointing.bridge import Bridge
from checkpointing.budget import Spend, checked_spend
from checkpointing.clock import from_ms
from checkpointing.digest import JSON
from checkpointing.doubts import in_doubt
from checkpointing.effects import Claim, EffectRecord, Request
from checkpointing.errors import (
    Declined,
    EffectConflict,
    EffectUnsettled,
    KeyInUse,
    KeyMismatch,
    Rejected,
    Stop,
    StoreUnreachable,
    Unreachable,
)
from checkpointing.ledger import Ledger
from checkpointing.steps import Feed
from checkpointing.text import storable
from tools.effect import Effect, ToolFunction
from tools.receiver import next_move


@dataclass(slots=True)
class Call:
    """
    Run *function* with *arguments*; send back what it returns, throw what it raises.

    Attributes:
        entered: The driver has begun to run it; a caller that was cancelled before leaves nothing that may have happened.
    """

    function: ToolFunction
    arguments: dict[str, Any]
    entered: bool = False

    def enter(self) -> Any:
        """Run the function; what it returns may have to be awaited."""
        self.entered = True
        return self.function(**self.arguments)


@dataclass(frozen=True, slots=True)
class Wait:
    """Let this much time pass."""

    time: timedelta


KEEPING = (timedelta(milliseconds=100), timedelta(seconds=1), timedelta(seconds=3))
"""The waits between the tries to record what came of a call, where the storage does not answer."""

T = TypeVar("T")
Steps = Generator[Call | Wait, Any, T]
"""A protocol that ends with a `T`."""


class _PersonNeeded(Exception):
    """Only a person can tell whether the call happened."""


def perform(ledger: Ledger, effect: Effect, asked: Request) -> Steps[EffectRecord]:
    """
    Have the effect executed once, now or before, and return its settled record.

    Raises:
        LeaseLost, EffectBusy, EffectConflict, SlotAmbiguous, EffectNotApproved: as `Ledger.claim`.
        EffectInDoubt: a person must say whether it happened.
        EffectUnsettled: the receiver did not answer; performing it again sends the same key.
        CapReached: what it takes does not fit under a cap of the run; nothing was called.
        Rejected: the receiver refused the request as wrong; nothing happened and the slot is free.
        Exception: whatever the tool raised without declaring it; the claim stays, as nobody knows. One that is harmless to repeat is released,
            with what was reserved for it.
    """
    with ledger.executing.hold(asked.slot, asked.place):
        claimed = ledger.claim(asked, person_needed=lambda age: _move(effect, age) == "person")
        if isinstance(claimed, EffectRecord):
            return claimed
        steps = _execute(ledger, effect, claimed)
        return (yield from _given_back(ledger, claimed, steps) if effect.receiver.repeatable else steps)


def drive(steps: Steps[T]) -> T:
    """Run *steps* to their end in this thread; an async tool runs in an event loop of its own."""
    feed = Feed(steps)
    try:
        while (step := feed.next()) is not None:
            if isinstance(step, Wait):
                threading.Event().wait(step.time.total_seconds())
                continue
            with feed.told():
                feed.answer = _finished(step.enter())
    finally:
        feed.close()
    return feed.outcome


async def adrive(steps: Steps[T], bridge: Bridge) -> T:
    """
    Run *steps* to their end: storage in the bridge's threads, an async tool in this event loop.

    A caller that is cancelled while the tool runs leaves the claim; the next claim of the slot resolves it.
    """
    feed = Feed(steps)
    try:
        while (step := await bridge.run(feed.next)) is not None:
            if isinstance(step, Wait):
                await asyncio.sleep(step.time.total_seconds())
                continue
            with feed.told():
                if inspect.iscoroutinefunction(step.function):
                    feed.answer = await step.enter()
                else:
                    # Before it is handed to a thread: a caller that is cancelled now cannot tell whether the thread has begun.
                    step.entered = True
                    feed.answer = await bridge.run(step.enter)
    finally:
        await asyncio.shield(bridge.run(feed.close))
    return feed.outcome


def _execute(ledger: Ledger, effect: Effect, claim: Claim) -> Steps[EffectRecord]:
    tried = _Tried(doubtful=claim.doubtful)
    key = claim.record.key
    try:
        outcome: JSON = yield from _obtain(ledger, effect, claim, tried)
    except GeneratorExit:
        if not tried.doubtful and not tried.entered:
            ledger.release(claim, why="its caller left before the call")
        raise
    except Declined as no:
        outcome = {"declined": storable(str(no))}
    except Rejected as wrong:
        # After a call that may have happened, a refusal (a revoked API key, say) proves nothing about that call.
        say = ledger.doubt if tried.doubtful else ledger.release
        why = storable(str(wrong))
        yield from _kept(lambda: say(claim, why=why))
        raise
    except KeyMismatch as other:
        why = storable(str(other))
        yield from _kept(lambda: ledger.doubt(claim, why=why))
        raise EffectConflict(f"the receiver knows key {key!r} with another payload: {other}") from other
    except _PersonNeeded as cause:
        why = storable(str(cause.__cause__ or "its key may have expired and the look-up found nothing"))
        yield from _kept(lambda: ledger.doubt(claim, why=why))
        raise in_doubt(key) from cause.__cause__
    except (Unreachable, KeyInUse) as unknown:
        if effect.receiver.repeatable:
            raise  # calling again does no harm, so this is a node's error like any other
        why = storable(str(unknown))
        yield from _kept(lambda: ledger.doubt(claim, why=why))
        raise EffectUnsettled(f"effect {key!r}: {unknown}; advancing the run asks again with the same key") from unknown
    spent = _spent(effect, claim, outcome)
    return (yield from _kept(lambda: ledger.settle(claim, outcome, spent=spent)))


def _given_back(ledger: Ledger, claim: Claim, steps: Steps[EffectRecord]) -> Steps[EffectRecord]:
    """Run the *steps* of what is harmless to repeat; where they fail its slot is free again, and what was reserved for it."""
    try:
        return (yield from steps)
    except (Stop, StoreUnreachable):
        raise
    except Exception as failed:
        why = type(failed).__name__
        yield from _kept(lambda: ledger.release(claim, why=why))
        raise


def _spent(effect: Effect, claim: Claim, outcome: JSON) -> Spend | None:
    """Return what the call came to; an effect that cannot say costs what was reserved, because the outcome counts for more than its price."""
    if effect.spent is None:
        return None
    try:
        return checked_spend(effect.spent(claim.record.arguments, outcome))
    except Exception as error:  # noqa: BLE001  # whatever it is, the receiver was called and its answer is to be kept
        return Spend(unknown=storable(f"{type(error).__name__}: {error}"))


def _kept(record: Callable[[], T]) -> Steps[T]:
    """
    Record what came of a call, again and again for a while: it is known here and nowhere else.

    Where the storage stays away the claim stays, and the next one resolves it as the receiver's profile says.
    """
    for time in KEEPING:
        try:
            return record()
        except StoreUnreachable:
            yield Wait(time)
    return record()


@dataclass(slots=True)
class _Tried:
    """Whether some call of this effect may have happened without our knowing, and the call under way."""

    doubtful: bool
    call: Call | None = None

    @property
    def entered(self) -> bool:
        return self.call is not None and self.call.entered


def _obtain(ledger: Ledger, effect: Effect, claim: Claim, tried: _Tried) -> Steps[Any]:
    """Find out what happened, or make it happen."""
    arguments = dict(claim.record.arguments)
    keyed = {**arguments, "key": claim.record.key}
    since_call = claim.since_call
    attempt = 0
    while True:
        if tried.doubtful:
            found = yield from _found(effect, _age(ledger, claim), since_call, _asked(effect, claim, keyed))
            if found is not None:
                return found
            ledger.check_mine(claim)  # the look-up and the waits took their time
        try:
            tried.call = Call(effect.function, keyed if effect.takes_key else arguments)
            return (yield tried.call)
        except (Unreachable, KeyInUse) as unknown:
            tried.doubtful, since_call, attempt = True, timedelta(0), attempt + 1
            if _move(effect, _age(ledger, claim)) == "person":
                raise _PersonNeeded from unknown
            if attempt >= effect.receiver.attempts:
                raise
        yield Wait(effect.receiver.backoff * 2 ** (attempt - 1))


def _asked(effect: Effect, claim: Claim, keyed: dict[str, Any]) -> dict[str, Any]:
    """Return what the look-up is asked with; an argument of the tool's own that is called `claimed_at` stays."""
    return {"claimed_at": claim.record.claimed_at, **keyed} if effect.asks_claimed_at else keyed


def _found(effect: Effect, age: timedelta, since_call: timedelta, asked: dict[str, Any]) -> Steps[Any]:
    """Look a doubtful call up where the profile says so; `None` means: call."""
    move = _move(effect, age)
    if move == "call":
        return None
    if move == "person" or effect.find is None:
        raise _PersonNeeded
    yield Wait(max(timedelta(0), effect.receiver.settle_delay - since_call))
    found = yield Call(effect.find, asked)
    if found is None and move == "look_up_or_person":
        raise _PersonNeeded
    return found


def _age(ledger: Ledger, claim: Claim) -> timedelta:
    """Return how old the key is by now: attempts and their waits add to what it was when this claim began."""
    return max(claim.age, from_ms(ledger.store.now_ms()) - claim.record.claimed_at)


def _move(effect: Effect, age: timedelta) -> str:
    return next_move(effect.receiver, age=age, has_lookup=effect.find is not None)


def _finished(answer: Any) -> Any:
    """Return *answer*, awaited if it is awaitable; in a thread of its own, because this one may have a running loop."""
    if not inspect.isawaitable(answer):
        return answer
    context = contextvars.copy_context()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(context.run, asyncio.run, _awaited(answer)).result()


async def _awaited(answer: Awaitable[Any]) -> Any:
    return await answer
