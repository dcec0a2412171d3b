"""How long a doubtful call without a key is left alone before it is looked up, step by step and without waiting."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from checkpointing import Journal
from checkpointing.effects import Request
from checkpointing.errors import EffectUnsettled, LeaseLost, Unreachable
from checkpointing.slots import Place, Slot
from tests.support.clock import MovingClock
from tools import Effect, Receiver, effect
from tools.perform import Call, Steps, Wait, perform

DELAY, BACKOFF = timedelta(seconds=30), timedelta(seconds=1)
LEASE = "thread:claim-0042"


@pytest.fixture
def journal(opened: Callable[..., Journal], clock: MovingClock) -> Journal:
    return opened(clock=clock, lease=timedelta(seconds=5))


@pytest.fixture
def pay() -> Effect:
    @effect(receiver=Receiver(settle_delay=DELAY, backoff=BACKOFF, attempts=2), name="pay")
    def pay(*, key: str) -> str:
        return f"paid under {key}"

    pay.lookup(lambda *, key: None)
    return pay


def begin(journal: Journal, effect: Effect) -> Steps[Any]:
    """Begin to perform the effect under a new lease, as a worker does."""
    lease = journal.leases.take(LEASE)
    asked = Request(
        slot=Slot("claim-0042", "pay.0", "pay"),
        place=Place(lease, root="r", task="t", checkpoint="@r"),
        effect="pay",
        arguments={},
        digest="d",
        approved_hash="h",
        approval_id=None,
        cost=0,
    )
    return perform(journal.effects, effect, asked)


def step(steps: Steps[Any], answer: object = None) -> Call | Wait:
    return steps.send(answer)


def dies_in_the_call(steps: Steps[Any]) -> None:
    call = step(steps)
    assert isinstance(call, Call)
    call.enter()
    steps.close()


@pytest.mark.parametrize(("passed", "left"), [(10, 25), (35, 0), (4000, 0)])
def test_who_takes_over_waits_for_what_is_left_of_the_delay(
    journal: Journal, clock: MovingClock, pay: Effect, passed: int, left: int
) -> None:
    """A worker may be at its call until its lease is over, 5 seconds after it was taken: the delay counts from there."""
    dies_in_the_call(begin(journal, pay))
    clock.move(timedelta(seconds=passed))
    steps = begin(journal, pay)

    assert step(steps) == Wait(timedelta(seconds=left))
    look_up = step(steps)
    assert isinstance(look_up, Call)
    assert look_up.function is pay.find
    call = step(steps, None)
    assert isinstance(call, Call)
    assert call.function is pay.function
    with pytest.raises(StopIteration):
        step(steps, "paid")
    assert journal.effects.get("claim-0042:pay.0:pay:d").outcome == "paid"


def test_the_delay_counts_from_the_last_call_not_the_first(journal: Journal, clock: MovingClock, pay: Effect) -> None:
    """The second worker called too, so its call is the one that has to show."""
    dies_in_the_call(begin(journal, pay))
    clock.move(DELAY * 2)
    steps = begin(journal, pay)
    assert step(steps) == Wait(timedelta(0))
    assert isinstance(step(steps), Call)
    call = step(steps, None)
    assert isinstance(call, Call)
    call.enter()
    steps.close()
    clock.move(timedelta(seconds=12))

    assert step(begin(journal, pay)) == Wait(timedelta(seconds=23))


def test_the_delay_counts_from_the_end_of_a_call_that_got_no_answer(
    journal: Journal, clock: MovingClock, pay: Effect
) -> None:
    """A call may take longer than the delay; what it left behind shows only after its end."""
    steps = begin(journal, pay)
    step(steps)
    clock.move(DELAY * 2)
    steps.throw(Unreachable("no answer"))
    step(steps)
    step(steps)
    assert isinstance(step(steps, None), Call)
    with pytest.raises(EffectUnsettled):
        steps.throw(Unreachable("no answer again"))
    clock.move(timedelta(seconds=12))

    assert step(begin(journal, pay)) == Wait(timedelta(seconds=18))


def test_an_attempt_after_a_lost_answer_waits_the_whole_delay(journal: Journal, pay: Effect) -> None:
    steps = begin(journal, pay)
    step(steps)

    assert steps.throw(Unreachable("no answer")) == Wait(BACKOFF)
    assert step(steps) == Wait(DELAY)
    look_up = step(steps)
    assert isinstance(look_up, Call)
    with pytest.raises(StopIteration):
        step(steps, "found")
    assert journal.effects.get("claim-0042:pay.0:pay:d").outcome == "found"


def test_who_was_overtaken_while_it_waited_calls_nothing(
    journal: Journal, opened: Callable[..., Journal], clock: MovingClock, pay: Effect
) -> None:
    """It stood still past its lease between two attempts; another worker looked up, found nothing, and calls."""
    stopped = begin(journal, pay)
    step(stopped)
    assert stopped.throw(Unreachable("no answer")) == Wait(BACKOFF)
    clock.move(DELAY * 2)
    other = begin(opened(clock=clock), pay)
    assert step(other) == Wait(timedelta(0))
    assert isinstance(step(other), Call)
    call = step(other, None)

    assert isinstance(call, Call)
    assert call.function is pay.function
    assert step(stopped) == Wait(DELAY)
    assert isinstance(step(stopped), Call)  # looking up does no harm
    with pytest.raises(LeaseLost, match="nothing more is called"):
        step(stopped, None)
