"""
The effect ledger: one row a slot, and the outcome of a slot is recorded once.

            claim (fence, approval, audit: one transaction)
    none ───────────────▶ claimed ──settle──▶ settled: succeeded | declined
                            │   ▲
              owner is gone │   │ taken over: the receiver's profile decides how
                            ▼   │
                          in doubt ──a person──▶ settled | released

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

from checkpointing.approvals import check_covers
from checkpointing.audit import append
from checkpointing.digest import JSON, canonical, sha256
from checkpointing.effects import Claim, EffectRecord, EffectState, Request, record_from
from checkpointing.errors import (
    AlreadySettled,
    ArgumentsNotJson,
    ClockBehind,
    DecisionInvalid,
    EffectBusy,
    EffectConflict,
    EffectInDoubt,
    EffectNotApproved,
    NotAllowed,
    UnknownEffect,
)
from checkpointing.executing import Executing
from checkpointing.leases import Lease, check_fence, is_live
from checkpointing.runs import wake_waiting
from checkpointing.slots import ambiguous
from checkpointing.store import Row, Store, Tx

CLAIM = """
insert into effects (slot, key, effect, thread_id, step, arguments, digest, state, approval_id, lease, fence, root, task, checkpoint,
    calls, replays, cost, claimed_ms, called_ms)
values (:slot, :key, :effect, :thread_id, :step, :arguments, :digest, 'claimed', :approval_id, :lease, :fence, :root, :task,
    :checkpoint, 1, 0, :cost, :now, :now)
on conflict do nothing
returning *, :now as now
"""
AT_SLOT = "select *, :now as now from effects where slot = :slot for update"
UNDER_APPROVAL = "select key from effects where approval_id = :approval_id and slot <> :slot"
REPLAYED = "update effects set replays = replays + 1 where slot = :slot"
TAKE_OVER = """
update effects set state = 'claimed', lease = :lease, fence = :fence, root = :root, task = :task, checkpoint = :checkpoint,
    calls = calls + 1, called_ms = :now
where slot = :slot and state in ('claimed', 'in_doubt') returning *, :now as now
"""
CLAIM_AGAIN = """
update effects set state = 'claimed', key = :key, effect = :effect, thread_id = :thread_id, step = :step, arguments = :arguments,
    digest = :digest, approval_id = :approval_id, lease = :lease, fence = :fence, root = :root, task = :task,
    checkpoint = :checkpoint, calls = calls + 1, cost = :cost, claimed_ms = :now, called_ms = :now
where slot = :slot and state = 'released' returning *, :now as now
"""
DOUBT = """
update effects set state = 'in_doubt'
where slot = :slot and key = :key and state = 'claimed' and lease = :lease and fence = :fence returning *
"""
SETTLE = """
update effects set state = 'settled', outcome = :outcome, settled_ms = :now
where slot = :slot and key = :key and state in ('claimed', 'in_doubt', 'released') returning *
"""
RELEASE = """
update effects set state = 'released', approval_id = null
where slot = :slot and key = :key and state = 'claimed' and lease = :lease and fence = :fence returning *
"""
RESOLVE_HAPPENED = """
update effects set state = 'settled', outcome = :outcome, settled_ms = :now
where key = :key and state in ('claimed', 'in_doubt') returning *
"""
RESOLVE_NOTHING = """
update effects set state = 'released' where key = :key and state in ('claimed', 'in_doubt') returning *
"""
GET = "select * from effects where key = :key"
GET_LOCKED = GET + " for update"
ALL = """
select * from effects where (claimed_ms, slot) > (:after_ms, :after) order by claimed_ms, slot limit :limit
"""
OF_THREAD = ALL.replace("where", "where thread_id = :thread_id and")
IN_STATE = ALL.replace("where", "where state = :state and")
OF_THREAD_IN_STATE = IN_STATE.replace("where", "where thread_id = :thread_id and")
UNSETTLED = "select key from effects where thread_id = :thread_id and state in ('claimed', 'in_doubt') limit 1"
LOCK_KEY = "select state from effects where key = :key for update"


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
            EffectConflict: the slot is recorded with other arguments.
            SlotAmbiguous: another operation has this slot.
            EffectInDoubt: nobody but a person can tell whether it happened.
            EffectNotApproved: the approval does not cover it, or was used by another slot.
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
            if tx.one(DOUBT, slot=asked.slot.id, key=record.key, lease=row["lease"], fence=row["fence"]):
                _audit(tx, record, "effect.in_doubt", actor=asked.place.held.owner)
        raise in_doubt(record.key)

    def settle(self, claim: Claim, outcome: JSON) -> EffectRecord:
        """
        Record *outcome* as the effect's only outcome and return the record.

        Needs no lease: what was called was called, even where a person has said meanwhile that nothing happened. If somebody settled
        it, theirs stands and is returned. A crash before the commit leaves the claim, to be resolved by the receiver's profile.

        Raises:
            EffectConflict: the slot was freed and claimed again with another request; the outcome belongs to nothing any more.
            ArgumentsNotJson: the outcome is not JSON; the claim stays.
        """
        canonical(outcome, what=f"the outcome of effect {claim.record.key!r}")
        with self.store.transaction("effect.settle") as tx:
            row = tx.one(SETTLE, slot=claim.record.slot, key=claim.record.key, outcome=json.dumps(outcome))
            if row is None:
                row = tx.one(GET, key=claim.record.key)
                if row:
                    return record_from(row)
                lost = {"effect": claim.record.effect, "outcome": sha256(outcome)}
                append(
                    tx,
                    claim.record.thread_id,
                    "effect.settle_late",
                    actor=claim.lease.owner,
                    subject=claim.record.key,
                    **lost,
                )
            else:
                record = record_from(row)
                _wake_and_audit(tx, record, "effect.settle", actor=claim.lease.owner, outcome=sha256(outcome))
                return record
        raise EffectConflict(
            f"effect {claim.record.key!r} was executed, but its slot was freed and claimed again with another request: both may have "
            f"happened. See counterfoil audit show {claim.record.thread_id}"
        )

    def release(self, claim: Claim, *, why: str) -> None:
        """Free the slot, because the receiver refused the request and nothing happened; a repaired request may claim it."""
        with self.store.transaction("effect.release") as tx:
            if row := tx.one(RELEASE, **_mine(claim)):
                _audit(tx, record_from(row), "effect.release", actor=claim.lease.owner, why=why)

    def doubt(self, claim: Claim, *, why: str) -> None:
        """Record that nobody knows whether the call happened; nothing changes once another worker has taken the claim over."""
        with self.store.transaction("effect.doubt") as tx:
            if row := tx.one(DOUBT, **_mine(claim)):
                _audit(tx, record_from(row), "effect.in_doubt", actor=claim.lease.owner, why=why)

    def resolve(self, key: str, *, happened: bool, outcome: JSON = None, principal: str | None) -> EffectRecord:
        """
        Settle a doubtful effect with what a person found out, or free its slot because nothing happened; the runs that wait for it are woken.

        Raises:
            UnknownEffect: no effect has this key.
            AlreadySettled: it has its outcome.
            NotAllowed: no principal was named.
            EffectBusy: its owner is still at work on it.
        """
        if not principal:
            raise NotAllowed(f"resolving effect {key!r} needs a principal: who found out?")
        try:
            canonical(outcome, what="outcome")
        except ArgumentsNotJson as error:
            raise DecisionInvalid(f"what was found out about effect {key!r} is not JSON: {error}") from error
        with self.store.transaction("effect.resolve") as tx:
            found = _existing(tx, key, sql=GET_LOCKED)
            if found["state"] == "claimed" and is_live(tx, name=found["lease"], fence=found["fence"]):
                raise EffectBusy(f"effect {key!r} is being executed; resolve it if its worker does not settle it")
            row = (
                tx.one(RESOLVE_HAPPENED, key=key, outcome=json.dumps(outcome))
                if happened
                else tx.one(RESOLVE_NOTHING, key=key)
            )
            if row is None:
                raise AlreadySettled(f"effect {key!r} is {found['state']}; an outcome is never replaced")
            record = record_from(row)
            found_out = {"outcome": sha256(outcome)} if happened else {}
            _wake_and_audit(tx, record, "effect.resolve", actor=principal, happened=happened, **found_out)
            return record

    def get(self, key: str) -> EffectRecord:
        """
        Return one effect.

        Raises:
            UnknownEffect: no effect has this key.
        """
        with self.store.reading() as tx:
            return record_from(_existing(tx, key))

    def list(
        self,
        *,
        thread_id: str | None = None,
        state: EffectState | None = None,
        after: EffectRecord | None = None,
        limit: int = 1000,
    ) -> list[EffectRecord]:
        """Return up to *limit* effects in the order they were claimed, from the one after *after*."""
        # One text a question, not one with empty conditions: neither engine uses an index under those.
        sql = (OF_THREAD_IN_STATE if state else OF_THREAD) if thread_id else IN_STATE if state else ALL
        after_ms = int(after.claimed_at.timestamp() * 1000) if after else -1
        with self.store.reading() as tx:
            rows = tx.all(
                sql, thread_id=thread_id, state=state, after_ms=after_ms, after=after.slot if after else "", limit=limit
            )
        return [record_from(row) for row in rows]

    def _first_claim(self, tx: Tx, asked: Request, *, released: Row | None) -> Claim:
        if asked.approval_id:
            check_covers(
                tx,
                asked.approval_id,
                thread_id=asked.slot.thread_id,
                arguments_hash=asked.approved_hash,
            )
            if used := tx.one(UNDER_APPROVAL, approval_id=asked.approval_id, slot=asked.slot.id):
                raise EffectNotApproved(
                    f"approval {asked.approval_id!r} was used by effect {used['key']!r}; it allows one"
                )
        columns = asked.columns()
        if released and (released["effect"], released["digest"]) == (asked.effect, asked.digest):
            columns["key"] = released["key"]  # the same request keeps its key, so that the receiver too can tell
        row = tx.one(CLAIM_AGAIN if released else CLAIM, **columns)
        if row is None:
            if tx.one(GET, key=asked.key):
                raise ambiguous(asked.slot, f"its key {asked.key!r} is another slot's")
            # Another thread claimed the same `once=` slot, or used the approval, between our two statements.
            raise EffectBusy(f"effect {asked.key!r} was claimed by another worker just now")
        record = record_from(row)
        _audit(
            tx,
            record,
            "effect.claim",
            actor=asked.place.held.owner,
            digest=asked.digest,
            approval=asked.approval_id,
        )
        return Claim(record, asked.place.held, doubtful=False, age=timedelta(0), since_call=timedelta(0))

    def _take_over(self, tx: Tx, asked: Request, before: Row) -> Claim:
        row = tx.one(TAKE_OVER, slot=asked.slot.id, **asked.place.columns())
        assert row is not None
        record = record_from(row)
        _audit(tx, record, "effect.take_over", actor=asked.place.held.owner, call=record.calls)
        return Claim(
            record,
            asked.place.held,
            doubtful=True,
            age=_age(before, "claimed_ms"),
            since_call=_age(before, "called_ms"),
        )


def unsettled(tx: Tx, thread_id: str) -> str | None:
    """Return the key of an effect of the thread of which nobody knows yet whether it happened, or `None`."""
    row = tx.one(UNSETTLED, thread_id=thread_id)
    return str(row["key"]) if row else None


def still_in_doubt(tx: Tx, key: str) -> bool:
    """Tell, holding its row locked until *tx* ends, whether the effect still waits for a person."""
    row = tx.one(LOCK_KEY, key=key)
    return row is not None and row["state"] == "in_doubt"


def in_doubt(key: str) -> EffectInDoubt:
    """Return the error that says whom an effect waits for."""
    return EffectInDoubt(
        f"effect {key!r} is in doubt: its receiver cannot tell whether it happened. "
        f"Find out, then: counterfoil effects resolve {key!r} --happened|--nothing-happened --as NAME",
        key=key,
    )


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
    }


def _age(row: Row, since: str) -> timedelta:
    return timedelta(milliseconds=int(row["now"]) - int(row[since]))


def _existing(tx: Tx, key: str, *, sql: str = GET) -> Row:
    row = tx.one(sql, key=key)
    if row is None:
        raise UnknownEffect(f"there is no effect with key {key!r}; see counterfoil effects")
    return row


def _wake_and_audit(tx: Tx, record: EffectRecord, event: str, *, actor: str, **body: Any) -> None:
    """Wake every run that waits for the effect, and write all of it into the audits, in the order of their threads."""
    woken = wake_waiting(tx, record.key)
    for thread_id in sorted({record.thread_id, *woken}):
        if thread_id == record.thread_id:
            _audit(tx, record, event, actor=actor, **body)
        if thread_id in woken:
            append(tx, thread_id, "run.wake", actor=actor, subject=thread_id, effect=record.key)


def _audit(tx: Tx, record: EffectRecord, event: str, *, actor: str, **body: Any) -> None:
    append(tx, record.thread_id, event, actor=actor, subject=record.key, effect=record.effect, **body)
