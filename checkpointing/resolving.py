"""
What a person says of an effect: what became of a doubtful one, and that a declined one is to be tried again.

    claimed, in doubt ──resolve──▶ settled, or released because nothing happened
    settled: declined, released ──reissue──▶ released, under the next key of the slot

A receiver answers a key that it declined with the same no for as long as it remembers it, and some store a failure in the same way. So a
reissue never uses the old key: it begins the slot's next *generation*, and the one before stays on record as it was. An effect in
doubt gets no new key, because two keys are two effects if the first happened after all.

A crash before the commit leaves everything as it was; after it the slot is settled, or free for whoever claims it next.
"""

from __future__ import annotations

import json
from typing import Any

from checkpointing.audit import append
from checkpointing.covering import check_covers
from checkpointing.digest import JSON, canonical, sha256
from checkpointing.effects import EffectRecord, Request, record_from, spent_columns
from checkpointing.errors import (
    AlreadySettled,
    ArgumentsNotJson,
    DecisionInvalid,
    EffectBusy,
    ReissueRefused,
    UnknownEffect,
)
from checkpointing.leases import Lease, is_live
from checkpointing.principals import named
from checkpointing.slots import Place, make_key, slot_of
from checkpointing.store import Row, Store, Tx
from checkpointing.text import storable
from checkpointing.waking import wake_waiting

GET = "select * from effects where key = :key"
GET_LOCKED = GET + " for update"
RESOLVE_HAPPENED = """
update effects set state = 'settled', outcome = :outcome, settled_ms = :now, spent_money = :money, spent_tokens = :tokens
where key = :key and state in ('claimed', 'in_doubt') returning *
"""
RESOLVE_NOTHING = """
update effects set state = 'released' where key = :key and state in ('claimed', 'in_doubt') returning *
"""
KEEP = """
insert into effect_generations (slot, generation, key, effect, thread_id, step, arguments, digest, state, outcome, approval_id,
    calls, replays, cost, claimed_ms, settled_ms, reissued_as, reissued_by, reissued_ms, spent_money, spent_tokens)
select slot, generation, key, effect, thread_id, step, arguments, digest, state, outcome, approval_id,
    calls, replays, cost, claimed_ms, settled_ms, :next_key, :principal, :now,
    case when state = 'settled' then coalesce(spent_money, 0) else 0 end,
    case when state = 'settled' then coalesce(spent_tokens, tokens) else 0 end
from effects where key = :key
"""
REISSUE = """
update effects set state = 'released', key = :next_key, generation = generation + 1, outcome = null, settled_ms = null, calls = 0,
    replays = 0, spent_money = null, spent_tokens = null
where key = :key and state in ('settled', 'released') returning *
"""
REISSUED_AS = "select reissued_as, reissued_by from effect_generations where key = :key"


def resolve(store: Store, key: str, *, happened: bool, outcome: JSON, principal: str | None) -> EffectRecord:
    """
    Settle a doubtful effect with what a person found out, or free its slot because nothing happened; the runs that wait for it are woken.

    Raises:
        UnknownEffect: no effect has this key.
        AlreadySettled: it has its outcome.
        NotAllowed: no principal was named.
        EffectBusy: its owner is still at work on it.
        DecisionInvalid: the outcome is not JSON.
    """
    principal = named(principal, f"resolving effect {key!r} needs a principal: who found out?")
    try:
        canonical(outcome, what="outcome")
    except ArgumentsNotJson as error:
        raise DecisionInvalid(f"what was found out about effect {key!r} is not JSON: {error}") from error
    with store.transaction("effect.resolve") as tx:
        found = existing(tx, key, sql=GET_LOCKED)
        if found["state"] == "claimed" and is_live(tx, name=found["lease"], fence=found["fence"]):
            raise EffectBusy(f"effect {key!r} is being executed; resolve it if its worker does not settle it")
        row = (
            tx.one(RESOLVE_HAPPENED, key=key, outcome=json.dumps(outcome), **spent_columns(outcome))
            if happened
            else tx.one(RESOLVE_NOTHING, key=key)
        )
        if row is None:
            raise AlreadySettled(f"effect {key!r} is {found['state']}; an outcome is never replaced")
        record = record_from(row)
        found_out = {"outcome": sha256(outcome)} if happened else {}
        wake_and_audit(tx, record, "effect.resolve", actor=principal, happened=happened, **found_out)
        return record


def reissue(
    store: Store, key: str, *, principal: str | None, reason: str, max_key_length: int, spoilt: bool
) -> EffectRecord:
    """
    Free the slot of an effect that was declined, or that did not happen, under its next key, and return it.

    Whoever claims the slot next sends the new key: `tools.reissue` at once, or the run if it asks again.

    Args:
        store: the store.
        key: the key as it is now.
        principal: who wants it tried again.
        reason: why, for the audit.
        max_key_length: the longest key the receiver takes.
        spoilt: the receiver stored a failure under the key of an effect that did not happen, so the key is of no use any more.

    Raises:
        UnknownEffect: no effect has this key.
        ReissueRefused: it happened, or nobody knows yet whether it did, or its key still serves, or it was reissued already.
        EffectNotApproved: its approval covers it no more.
        NotAllowed: no principal was named.
    """
    principal = named(principal, f"reissuing effect {key!r} needs a principal: who wants it tried again?")
    with store.transaction("effect.reissue") as tx:
        # Under the row's lock first: of two reissues at once the second waits, and then finds the key in the past.
        found = tx.one(GET_LOCKED, key=key)
        if found is None and (past := tx.one(REISSUED_AS, key=key)):
            raise ReissueRefused(f"effect {key!r} was reissued by {past['reissued_by']!r}, as {past['reissued_as']!r}")
        found = found or existing(tx, key)
        before = record_from(found)
        if refused := _why_not(before, spoilt=spoilt):
            raise ReissueRefused(f"effect {key!r} {refused}")
        if before.approval_id:
            covers = {"thread_id": before.thread_id, "arguments_hash": sha256(before.arguments)}
            check_covers(tx, before.approval_id, again=True, **covers)
        next_key = make_key(slot_of(found), before.digest, max_length=max_key_length, generation=before.generation + 1)
        tx.all(KEEP, key=key, next_key=next_key, principal=principal)
        row = tx.one(REISSUE, key=key, next_key=next_key)
        assert row is not None
        of_it = {"digest": before.digest, "approval": before.approval_id}
        audit(tx, before, "effect.reissue", actor=principal, reissued_as=next_key, reason=storable(reason), **of_it)
        return record_from(row)


def asked_again(store: Store, key: str, lease: Lease, *, max_key_length: int) -> Request:
    """
    Return the recorded effect as a request under *lease*: the same slot, place and arguments.

    Raises:
        UnknownEffect: no effect has this key now.
    """
    with store.reading() as tx:
        row = existing(tx, key)
    record = record_from(row)
    return Request(
        slot=slot_of(row),
        place=Place(lease, row["root"], row["task"], row["checkpoint"]),
        effect=record.effect,
        arguments=record.arguments,
        digest=record.digest,
        approved_hash=sha256(record.arguments),
        approval_id=record.approval_id,
        cost=record.cost,
        max_key_length=max_key_length,
        tokens=record.tokens,
        repeatable=bool(row["repeatable"]),
    )


def existing(tx: Tx, key: str, *, sql: str = GET) -> Row:
    """
    Return the row with this key.

    Raises:
        UnknownEffect: there is none.
    """
    row = tx.one(sql, key=key)
    if row is None:
        raise UnknownEffect(f"there is no effect with key {key!r}; see counterfoil effects")
    return row


def wake_and_audit(tx: Tx, record: EffectRecord, event: str, *, actor: str, **body: Any) -> set[str]:
    """Wake every run that waits for the effect, write all of it into the audits, in the order of their threads, and return who was woken."""
    woken = wake_waiting(tx, record.key)
    for thread_id in sorted({record.thread_id, *woken}):
        if thread_id == record.thread_id:
            audit(tx, record, event, actor=actor, **body)
        if thread_id in woken:
            append(tx, thread_id, "run.wake", actor=actor, subject=thread_id, effect=record.key)
    return woken


def audit(tx: Tx, record: EffectRecord, event: str, *, actor: str, **body: Any) -> None:
    """Write what happened to the effect into its thread's audit, as part of *tx*."""
    append(tx, record.thread_id, event, actor=actor, subject=record.key, effect=record.effect, **body)


def _why_not(record: EffectRecord, *, spoilt: bool) -> str | None:
    """Return why this effect is not to be tried again under another key, or `None`."""
    if record.state in ("claimed", "in_doubt"):
        return f"is {record.state}: another key would be another effect. See counterfoil effects resolve"
    if record.state == "settled" and record.declined is None:
        return "happened; there is nothing to try again"
    if record.state == "released" and not spoilt:
        return (
            "did not happen, and its key still serves: counterfoil resume sends it again, and if it happened after all, the receiver can tell. "
            "Where the receiver stored a failure under the key, say that it is spoilt"
        )
    return None
