"""
The effect ledger: one row a slot, and the outcome of a slot is recorded once.

            claim (fence, approval, caps, audit: one transaction)
    none ───────────────▶ claimed ──settle──▶ settled: succeeded | declined ──reissue──▶ released, under its next key
                            │   ▲
              owner is gone │   │ taken over: the receiver's profile decides how
                            ▼   │
                          in doubt ──a person──▶ settled | released

What a person says of an effect, `resolve` and `reissue`, is in `resolving.py`.

The order is: claim, call the receiver outside any transaction, settle, and only then go on. A crash before the claim leaves nothing; one
between claim and settle leaves a claim whose owner's lease ends, which the next claim of the slot finds and resolves as the receiver's
profile says; one after settle leaves nothing to do, and the next claim is answered with the outcome.

A stale worker may settle what it already called, because that is the truth; it can never claim.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from checkpointing.budget import Spend, reserve
from checkpointing.covering import check_covers
from checkpointing.digest import JSON, canonical, sha256
from checkpointing.doubts import in_doubt
from checkpointing.effects import Claim, EffectRecord, EffectState, Request, record_from, spent_columns
from checkpointing.errors import ClockBehind, EffectBusy, EffectConflict, EffectNotApproved, LeaseLost
from checkpointing.executing import Executing
from checkpointing.leases import Lease, check_fence, is_live
from checkpointing.recorded import PAST, get, page, past
from checkpointing.resolving import GET, audit, reissue, resolve, wake_and_audit
from checkpointing.restored import adopt_answer, answer_for
from checkpointing.slots import ambiguous
from checkpointing.store import Row, Store, Tx

CLAIM = """
insert into effects (slot, key, effect, thread_id, step, arguments, digest, state, approval_id, lease, fence, claimed_by, root, task,
    checkpoint, calls, replays, cost, tokens, repeatable, claimed_ms, called_ms)
values (:slot, :key, :effect, :thread_id, :step, :arguments, :digest, 'claimed', :approval_id, :lease, :fence, :owner, :root,
    :task, :checkpoint, 1, 0, :cost, :tokens, :repeatable, :now, :now)
on conflict do nothing
returning *, :now as now
"""
AT_SLOT = "select *, :now as now from effects where slot = :slot for update"
LAST_ALIVE = """
select case when fence = :fence then expires_ms else before_ms end as until_ms from leases where name = :name
"""
UNDER_APPROVAL = "select key from effects where approval_id = :approval_id and slot <> :slot"
REPLAYED = "update effects set replays = replays + 1 where slot = :slot"
TAKE_OVER = """
update effects set state = 'claimed', lease = :lease, fence = :fence, claimed_by = :owner, root = :root, task = :task, checkpoint = :checkpoint,
    calls = calls + 1, called_ms = :now
where slot = :slot and state in ('claimed', 'in_doubt') returning *, :now as now
"""
STILL_MINE = """
select effects.key from effects join leases on leases.name = effects.lease and leases.fence = effects.fence
where effects.slot = :slot and effects.key = :key and effects.state = 'claimed'
    and effects.lease = :lease and effects.fence = :fence and leases.owner = :owner
"""
CLAIM_AGAIN = """
update effects set state = 'claimed', key = :key, effect = :effect, thread_id = :thread_id, step = :step, arguments = :arguments,
    digest = :digest, approval_id = :approval_id, lease = :lease, fence = :fence, claimed_by = :owner, root = :root,
    task = :task, checkpoint = :checkpoint, calls = calls + 1, cost = :cost, tokens = :tokens, repeatable = :repeatable,
    spent_money = null, spent_tokens = null, claimed_ms = :now, called_ms = :now
where slot = :slot and state = 'released' returning *, :now as now
"""
DOUBT = """
update effects set state = 'in_doubt', called_ms = :now
where slot = :slot and key = :key and state = 'claimed' and lease = :lease and fence = :fence
    and (claimed_by is null or claimed_by = :owner) returning *
"""
SETTLE = """
update effects set state = 'settled', outcome = :outcome, settled_ms = :now, spent_money = :money, spent_tokens = :tokens
where slot = :slot and key = :key and state in ('claimed', 'in_doubt', 'released') returning *
"""
RELEASE = """
update effects set state = 'released'
where slot = :slot and key = :key and state = 'claimed' and lease = :lease and fence = :fence
    and (claimed_by is null or claimed_by = :owner) returning *
"""


class Ledger:
    """
    The `effects` table and all its transitions.

    Attributes:
        executing: Which slots' tools run in this process.
    """

    def __init__(self, store: Store) -> None:
        """Use *store*."""
        self.store = store
        self.executing = Executing()

    def claim(self, asked: Request, *, person_needed: Callable[[timedelta], bool]) -> Claim | EffectRecord:
        """
        Claim the slot, or return its record if it is settled.

        A crash before the commit leaves the slot as it was, a crash after it a claim whose owner is gone.

        Args:
            asked: the effect, its place and its arguments.
            person_needed: whether a doubtful claim of this age takes a person.

        Raises:
            LeaseLost: stop.
            EffectBusy: another worker is executing it.
            EffectConflict: the slot is recorded with other arguments, or was executed with others before the journal was restored.
            SlotAmbiguous: another operation has this slot.
            EffectInDoubt: nobody but a person can tell whether it happened.
            EffectNotApproved: the approval does not cover it, or was used by another slot.
            CapReached: what it takes does not fit under a cap of the run; stop, the run is a dead letter.
        """
        with self.store.transaction("effect.claim") as tx:
            check_fence(tx, asked.place.held)
            row = tx.one(AT_SLOT, slot=asked.slot.id)
            if row is None or row["state"] == "released":
                return self._first_claim(tx, asked, released=row)
            record = record_from(row)
            if (record.effect, record.digest) != (asked.effect, asked.digest):
                raise EffectConflict(_conflict(record, asked))
            if asked.slot.identity is None and not asked.place.answers(tx, row):
                raise ambiguous(asked.slot, f"{record.key!r} is recorded for the first")
            if record.state == "settled":
                tx.all(REPLAYED, slot=asked.slot.id)
                return record
            if int(row["now"]) < int(row["called_ms"]):
                # An age counted by a clock that was set back would make an expired key look young.
                raise ClockBehind(
                    f"effect {record.key!r} was called at a time that this clock has yet to reach; set the clock"
                )
            if record.state == "claimed" and _has_live_owner(tx, row, asked.place.held):
                raise EffectBusy(f"effect {record.key!r} is being executed by another worker")
            if not person_needed(_age(row, "claimed_ms")):
                return self._take_over(tx, asked, row)
            holding = {"lease": row["lease"], "fence": row["fence"], "owner": row["claimed_by"]}
            if tx.one(DOUBT, slot=asked.slot.id, key=record.key, **holding):
                audit(tx, record, "effect.in_doubt", actor=asked.place.held.owner)
        raise in_doubt(record.key)

    def check_mine(self, claim: Claim) -> None:
        """
        Make sure that nobody has taken the claim over, before its receiver is called once more.

        What stands still after this and before the call can be overtaken all the same: only a receiver's key, or its look-up, helps there.

        Raises:
            LeaseLost: stop; whoever took it over finds out what happened.
        """
        with self.store.reading() as tx:
            if tx.one(STILL_MINE, **_mine(claim)) is None:
                raise LeaseLost(
                    f"effect {claim.record.key!r} is not {claim.lease.owner}'s any more; nothing more is called by it"
                )

    def settle(self, claim: Claim, outcome: JSON, *, spent: Spend | None = None) -> EffectRecord:
        """
        Record *outcome* as the effect's only outcome, with what it came to, and return the record.

        Needs no lease: what was called was called, even where a person has said meanwhile that nothing happened. If somebody settled
        it, theirs stands and is returned. A crash before the commit leaves the claim, to be resolved by the receiver's profile.

        Raises:
            EffectConflict: it was executed, and a no is on record, or the slot was freed and claimed again; the audit keeps it.
            LeaseLost: the receiver said no, and the slot has gone on meanwhile; stop.
            ArgumentsNotJson: the outcome is not JSON; the claim stays.
        """
        canonical(outcome, what=f"the outcome of effect {claim.record.key!r}")
        with self.store.transaction("effect.settle") as tx:
            came_to = spent_columns(outcome, spent)
            row = tx.one(SETTLE, slot=claim.record.slot, key=claim.record.key, outcome=json.dumps(outcome), **came_to)
            if row is not None:
                record = record_from(row)
                unknown = {"spend_unknown": spent.unknown} if spent and spent.unknown else {}
                wake_and_audit(tx, record, "effect.settle", actor=claim.lease.owner, outcome=sha256(outcome), **unknown)
                return record
            if known := _stands(tx, claim, outcome):
                return known
            audit(tx, claim.record, "effect.settle_late", actor=claim.lease.owner, outcome=sha256(outcome))
        raise EffectConflict(
            f"effect {claim.record.key!r} was executed, but something else is on record of its slot by now: both may have happened. "
            f"See counterfoil audit show {claim.record.thread_id}"
        )

    def release(self, claim: Claim, *, why: str) -> None:
        """Free the slot, because the receiver refused the request and nothing happened; a repaired request may claim it."""
        with self.store.transaction("effect.release") as tx:
            if row := tx.one(RELEASE, **_mine(claim)):
                audit(tx, record_from(row), "effect.release", actor=claim.lease.owner, why=why)

    def doubt(self, claim: Claim, *, why: str) -> None:
        """Record that nobody knows whether the call happened; nothing changes once another worker has taken the claim over."""
        with self.store.transaction("effect.doubt") as tx:
            if row := tx.one(DOUBT, **_mine(claim)):
                audit(tx, record_from(row), "effect.in_doubt", actor=claim.lease.owner, why=why)

    def resolve(self, key: str, *, happened: bool, outcome: JSON = None, principal: str | None) -> EffectRecord:
        """Record what a person found out about a doubtful effect, and wake the runs that wait for it; see `resolving.resolve`."""
        return resolve(self.store, key, happened=happened, outcome=outcome, principal=principal)

    def reissue(
        self, key: str, *, principal: str | None, max_key_length: int, reason: str = "", spoilt: bool = False
    ) -> EffectRecord:
        """Free the slot of a declined effect, or of one with a spoilt key, under its next key; see `resolving.reissue`."""
        return reissue(
            self.store, key, principal=principal, reason=reason, max_key_length=max_key_length, spoilt=spoilt
        )

    def get(self, key: str) -> EffectRecord:
        """
        Return one effect, an earlier generation of it too.

        Raises:
            UnknownEffect: no effect has this key.
        """
        return get(self.store, key)

    def past(self, thread_id: str) -> list[EffectRecord]:
        """Return the earlier generations of the thread's reissued effects, in the order they were claimed."""
        return past(self.store, thread_id)

    def list(
        self,
        *,
        thread_id: str | None = None,
        state: EffectState | None = None,
        after: EffectRecord | None = None,
        limit: int = 1000,
    ) -> list[EffectRecord]:
        """Return up to *limit* effects in the order they were claimed, from the one after *after*."""
        return page(self.store, thread_id=thread_id, state=state, after=after, limit=limit)

    def _first_claim(self, tx: Tx, asked: Request, *, released: Row | None) -> Claim | EffectRecord:
        if asked.approval_id:
            check_covers(
                tx,
                asked.approval_id,
                thread_id=asked.slot.thread_id,
                arguments_hash=asked.approved_hash,
                again=released is not None and released["approval_id"] == asked.approval_id,
            )
            if used := tx.one(UNDER_APPROVAL, approval_id=asked.approval_id, slot=asked.slot.id):
                raise EffectNotApproved(
                    f"approval {asked.approval_id!r} was used by effect {used['key']!r}; it allows one"
                )
        executed = answer_for(tx, asked, released)
        key = executed.key if executed else _key(asked, released)
        row = tx.one(CLAIM_AGAIN if released else CLAIM, key=key, **asked.columns())
        if row is None:
            if tx.one(GET, key=key):
                raise ambiguous(asked.slot, f"its key {key!r} is another slot's")
            # Another thread claimed the same `once=` slot, or used the approval, between our two statements.
            raise EffectBusy(f"effect {key!r} was claimed by another worker just now")
        record = record_from(row)
        if asked.place.caps and not executed:  # what was executed is spent, whatever a cap says
            reserve(tx, record.thread_id, asked.place.caps, money=record.cost, tokens=record.tokens)
        audit(
            tx,
            record,
            "effect.claim",
            actor=asked.place.held.owner,
            digest=asked.digest,
            approval=asked.approval_id,
        )
        if executed:
            return adopt_answer(tx, record, executed, actor=asked.place.held.owner)
        return Claim(record, asked.place.held, doubtful=False, age=timedelta(0), since_call=timedelta(0))

    def _take_over(self, tx: Tx, asked: Request, before: Row) -> Claim:
        row = tx.one(TAKE_OVER, slot=asked.slot.id, **asked.place.columns())
        assert row is not None
        record = record_from(row)
        audit(tx, record, "effect.take_over", actor=asked.place.held.owner, call=record.calls)
        return Claim(
            record,
            asked.place.held,
            doubtful=True,
            age=_age(before, "claimed_ms"),
            since_call=_since_call(tx, before),
        )


def _key(asked: Request, released: Row | None) -> str:
    """Return the key of a claim: the same request keeps the one it was released with, so that the receiver too can tell."""
    if released is None:
        return asked.key
    if (released["effect"], released["digest"]) == (asked.effect, asked.digest):
        return str(released["key"])
    return asked.key_of(int(released["generation"]))


def _has_live_owner(tx: Tx, row: Row, mine: Lease) -> bool:
    if row["lease"] == mine.name:
        return False  # we hold that lease now: an earlier holding is over, and this one is not executing it (see `executing.py`)
    return is_live(tx, name=row["lease"], fence=row["fence"])


def _conflict(record: EffectRecord, asked: Request) -> str:
    other = f"as effect {record.effect!r}, and {asked.effect!r} is asked for now"
    if record.effect == asked.effect:
        other = f"with other arguments (digest {record.digest}, now {asked.digest})"
    return (
        f"effect {record.key!r} is recorded {other}; nothing was called. "
        f"thread {asked.slot.thread_id!r} asks again for what thread {record.thread_id!r} did; see counterfoil show {record.thread_id}"
    )


def _mine(claim: Claim) -> dict[str, Any]:
    """Return what names this claim and no later one of the same slot."""
    return {
        "slot": claim.record.slot,
        "key": claim.record.key,
        "lease": claim.lease.name,
        "fence": claim.lease.fence,
        "owner": claim.lease.owner,
    }


def _stands(tx: Tx, claim: Claim, outcome: JSON) -> EffectRecord | None:
    """Return what is on record under the claim's key, if it stands whatever came of this call; `None` if this call is one too many."""
    row = tx.one(GET, key=claim.record.key) or tx.one(PAST, key=claim.record.key)
    known = record_from(row) if row else None
    is_no = isinstance(outcome, dict) and outcome.keys() == {"declined"}
    if known and known.state == "settled" and (is_no or known.declined is None):
        return known
    if is_no:
        raise LeaseLost(
            f"effect {claim.record.key!r} is not {claim.lease.owner}'s any more, and its receiver said no to it"
        )
    return None


def _since_call(tx: Tx, row: Row) -> timedelta:
    """
    Return how long the last call is certainly over.

    A holder that said it was in doubt said so after its call. One that is gone was at work until its lease was over, for all anybody knows;
    whoever took the lease since found it expired, so the expiry that the last of them found is no earlier.
    """
    if row["state"] == "in_doubt":
        return _age(row, "called_ms")
    lease = tx.one(LAST_ALIVE, name=row["lease"], fence=row["fence"])
    until_ms = int(lease["until_ms"]) if lease else int(row["now"])
    return timedelta(milliseconds=max(0, int(row["now"]) - until_ms))


def _age(row: Row, since: str) -> timedelta:
    return timedelta(milliseconds=int(row["now"]) - int(row[since]))
