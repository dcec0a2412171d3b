"""
Every error Counterfoil raises, in one tree.

The branches say what the caller must do: come back later, stop this worker, ask a person, or mend the call.

    CounterfoilError
    ├── TryAgain              nothing is wrong; the same call works later, and costs no attempt
    │   ├── RunBusy           another call holds the thread's lease
    │   ├── EffectBusy        another call is executing this very effect
    │   ├── EffectUnsettled   the receiver did not answer; next time the same key is sent again
    │   ├── ClockBehind       this host's clock is behind the thread's head
    │   ├── KeyBusy           the first request under this idempotency key is still being answered
    │   └── StoreUnreachable  the database did not answer; JournalUnreachable where it was to be opened
    ├── Stop                  this worker lost its right to write; whoever holds the lease carries on
    │   ├── LeaseLost
    │   └── CheckpointSuperseded
    ├── NeedsPerson           the run waits for somebody
    │   └── EffectInDoubt
    ├── RunDead               the run is a dead letter; `redrive` it or `discard` it
    │   └── CapReached        it took all that a cap allows; raise the cap first
    ├── NotRetryable          a node's own word that another attempt would only fail again; the run becomes a dead letter
    ├── Refused               the call is wrong; state is unchanged
    │   ├── UnknownThread, UnknownApproval, UnknownEffect, UnknownArtefact, UnknownToken
    │   ├── InputChanged, InputRefused
    │   ├── AlreadyDecided, ApprovalExpired, PayloadChanged, NotAllowed, DecisionInvalid
    │   ├── AlreadySettled, ReissueRefused, RunDiscarded
    │   ├── KeyReused         an idempotency key that is another request's
    │   ├── GraphChanged, GraphRefused
    │   └── JournalUnusable, SchemaTooNew
    ├── Bug                   the graph contradicts its own record; the run becomes a dead letter
    │   ├── EffectConflict, SlotAmbiguous, UnguardedEffect, ArgumentsNotJson, EffectNotApproved, CostUnknown
    │   └── ReplayMiss
    └── ToolError             what a tool says of its call
        ├── Declined          a business no: recorded, the run goes on
        ├── Rejected          our request is wrong: no retry, nothing happened
        ├── Unreachable       unknown whether it happened: the same key again, later in doubt
        ├── KeyInUse          the receiver is still at work on this key: wait, same key
        └── KeyMismatch       the receiver has this key with another payload: a conflict
"""

from __future__ import annotations

from typing import Any


class CounterfoilError(Exception):
    """The root: catch this to catch every error Counterfoil itself raises."""


class TryAgain(CounterfoilError):
    """Nothing is wrong and nothing was changed: call again later. It costs the run no attempt."""


class RunBusy(TryAgain):
    """Another call holds the thread's lease; that call carries the run on."""


class EffectBusy(TryAgain):
    """Another call is executing this very effect right now; its outcome will be in the ledger."""


class EffectUnsettled(TryAgain):
    """The receiver did not say whether it executed the effect; advancing the run asks again, with the same key."""


class ClockBehind(TryAgain):
    """This host's clock is behind the newest checkpoint; a checkpoint written now would never become the head."""


class KeyBusy(TryAgain):
    """The first request under this idempotency key is still being answered; ask again in a moment."""


class StoreUnreachable(TryAgain, ConnectionError):
    """The database did not answer, or dropped the connection; nothing of this call's last write is certain."""


class Stop(CounterfoilError):
    """This worker may not write to the thread any more. Drop what is in hand; do not retry the effect."""


class LeaseLost(Stop):
    """The lease was taken over or given back; its new holder carries the run on."""


class CheckpointSuperseded(Stop):
    """The checkpoint to be written does not follow the thread's head; somebody else moved it."""


class NeedsPerson(CounterfoilError):
    """The run waits until somebody says what is the case."""


class EffectInDoubt(NeedsPerson):
    """
    It is not known whether the receiver executed the effect, and only a person can find out.

    Attributes:
        key: The effect's key; `journal.effects.resolve(key, ...)` settles it and wakes the run.
    """

    def __init__(self, message: str, *, key: str) -> None:
        """Say which effect waits for whom."""
        super().__init__(message)
        self.key = key


class RunDead(CounterfoilError):
    """The run is a dead letter; its row says why. `redrive` continues it from its last checkpoint."""


class CapReached(RunDead):
    """
    The run has taken all that one of its caps allows; raise the cap, then `redrive`. Nothing was called.

    Attributes:
        reason: What the run's row says: `cap_supersteps`, `cap_money`, `cap_tokens` or `cap_age`.
        thread_id: Whose run it is.
    """

    def __init__(self, message: str, *, reason: str, thread_id: str) -> None:
        """Say which cap, and how far the run went."""
        super().__init__(message)
        self.reason = reason
        self.thread_id = thread_id


class NotRetryable(CounterfoilError, RuntimeError):
    """
    A node raises this, or a subclass, to say that another attempt would only fail again: the run is a dead letter at once.

    The dead letter's reason is the class's name, in lower case with underscores. LangGraph's default `RetryPolicy` does not try it again either.
    """


class Refused(CounterfoilError):
    """The call is wrong as it stands; the state is what it was before."""


class UnknownThread(Refused, LookupError):
    """No run has this thread id."""


class UnknownApproval(Refused, LookupError):
    """No approval has this id."""


class UnknownEffect(Refused, LookupError):
    """No effect has this key."""


class UnknownArtefact(Refused, LookupError):
    """No stored artefact has this digest."""


class UnknownToken(Refused, LookupError):
    """No token has this id."""


class KeyReused(Refused):
    """The idempotency key was used for another request; give every request a key of its own."""


class InputChanged(Refused, ValueError):
    """The thread was admitted with other input; use another thread id for another job."""


class InputRefused(Refused, ValueError):
    """This kind of input is not taken here; the message names what to call instead."""


class AlreadyDecided(Refused):
    """
    Somebody was faster, and their decision stands.

    Attributes:
        decision: The winner's decision, as recorded.
        decided_by: The winner.
    """

    def __init__(self, message: str, *, decision: dict[str, Any] | None = None, decided_by: str | None = None) -> None:
        """Say what stands, for people and for programs."""
        super().__init__(message)
        self.decision = decision
        self.decided_by = decided_by


class ApprovalExpired(Refused):
    """The time to decide is over; the approval's own outcome at expiry stands."""


class PayloadChanged(Refused):
    """What was to be approved has changed since it was shown; decide the approval the message names."""


class NotAllowed(Refused, PermissionError):
    """This principal, or nobody in particular, may not do that."""


class DecisionInvalid(Refused, ValueError):
    """The decision names no approval, or is of a kind the approval does not take."""


class AlreadySettled(Refused):
    """The effect has its outcome; an outcome is never replaced."""


class ReissueRefused(Refused):
    """The effect happened, or may have: a new key would be a second effect."""


class RunDiscarded(Refused):
    """Somebody gave the dead letter up, as the message says who and why; it is not redriven."""


class GraphChanged(Refused):
    """This code cannot carry the run on: the node it stands at is gone. The run is untouched."""


class GraphRefused(Refused, TypeError):
    """The graph cannot be made durable as it is; the message names what to change."""


class JournalUnusable(Refused, OSError):
    """The URL, file or server cannot hold a journal; the message says which and why."""


class JournalUnreachable(StoreUnreachable, JournalUnusable):
    """No server answers where the journal should be: it is down, or starting, or the address is another's."""


class SchemaTooNew(JournalUnusable):
    """The journal was written by a newer Counterfoil; update this one."""


class Bug(CounterfoilError):
    """The graph contradicts its own record; nothing was called, and a person must look at the code."""


class EffectConflict(Bug):
    """The slot is recorded with other arguments, or its receiver knows the key with another payload."""


class SlotAmbiguous(Bug):
    """Two different operations claim the same slot; give the effect a business identity with `once=`."""


class UnguardedEffect(Bug, TypeError):
    """An effect was called directly; only a node made by `effect_node` may call it."""


class ArgumentsNotJson(Bug, TypeError):
    """Arguments cannot be written as RFC 8785 JSON, so no digest can bind them; money is integer minor units."""


class EffectNotApproved(Bug):
    """The effect names an approval that does not cover these arguments, or was used already."""


class CostUnknown(Bug, ValueError):
    """An effect could not say beforehand what a call takes, so it cannot be held against a cap."""


class ReplayMiss(Bug, LookupError):
    """The record has no answer for what a replay asks."""


class ToolError(CounterfoilError):
    """What a tool says of its call; which of the five decides what happens to the claim."""


class Declined(ToolError):
    """The receiver said no for a business reason. Recorded as the effect's outcome; the run goes on."""


class Rejected(ToolError):
    """The receiver refused the request as wrong; nothing happened, no retry. The slot is released."""


class Unreachable(ToolError):
    """It is unknown whether the receiver executed the call. The same key again, and in doubt in the end."""


class KeyInUse(ToolError):
    """The receiver is still at work on this key. Wait, and ask again with the same key."""


class KeyMismatch(ToolError):
    """The receiver knows this key with another payload: a conflict, never a second key."""
