"""
What receivers executed and a restored ledger does not know: everything since the copy was made from which the journal was restored.

    copy made ── pay, key K ── disk lost ── copy restored: no row of K ── K recorded here ── pay asked for: settled with what K did
                                                          └─ pay asked for: K is sent again, and honoured only while its receiver remembers it

Whoever makes the first claim of a slot is answered with what was executed for it, in the claim's own transaction, and no receiver is called:

    one of the keys that the request would be sent with       it was this request; adopted
    the same business identity and the same arguments         it was this effect, asked for by another thread; adopted
    the same business identity, and anything else             `EffectConflict`, as if the row had never been lost

Nothing gets here but by a principal's word that the journal was restored (`counterfoil reconcile --restored --fix`): otherwise what a receiver executed
and no ledger knows is somebody else's. A crash before a commit leaves everything as it was, and the same command does the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from checkpointing.audit import append
from checkpointing.digest import sha256
from checkpointing.effects import EffectRecord, Request, record_from
from checkpointing.errors import EffectConflict
from checkpointing.slots import MAX_KEY_LENGTH, make_key
from checkpointing.store import Row, Store, Tx

GENERATIONS = 8
"""How many keys of a slot are looked for; each further one is a reissue of what was declined before it."""

RECORD = """
insert into executions (effect, executed_id, key, identity, outcome, at_ms, taken_back, recorded_by, recorded_ms)
select :effect, :executed_id, :key, :identity, :outcome, :at_ms, :taken_back, :principal, :now
where not exists (select 1 from effects where effects.key = :key)
on conflict (effect, executed_id) do update set taken_back = excluded.taken_back, recorded_by = excluded.recorded_by,
    recorded_ms = excluded.recorded_ms
where executions.taken_back <> excluded.taken_back
returning executed_id
"""
STANDING = "select * from executions where effect = :effect and taken_back = 0"
IN_TIME = "order by at_ms, executed_id"
OF_KEYS = f"{STANDING} and key in ({', '.join(f':key_{n}' for n in range(3 * GENERATIONS))}) {IN_TIME} limit 1"
OF_IDENTITY = f"{STANDING} and identity = :identity {IN_TIME}"
RECORDED = "select * from executions where effect = :effect and executed_id = :executed_id"
ADOPT = """
update effects set state = 'settled', outcome = :outcome, generation = :generation, settled_ms = :now, spent_money = cost, calls = calls - 1,
    replays = replays + 1
where key = :key and state = 'claimed' returning *
"""
THREAD = "select thread_id from audit_heads where thread_id = :thread_id"
RUN = "select state from runs where thread_id = :thread_id"
NEWEST = "select max(at_ms) as at_ms from audit"


@dataclass(frozen=True, slots=True)
class Execution:
    """
    One execution that the ledger lost.

    Attributes:
        id: The receiver's own id of it.
        key: As it was sent; `None` where the receiver does not tell.
        identity: What `once=` returns for it, or `None`.
        outcome: What the tool would have returned.
        at_ms: When, by the receiver's clock.
        taken_back: The receiver undid all of it since; it answers for nothing.
        recorded_by: Who said that it is this journal's.
    """

    effect: str
    id: str
    key: str | None
    identity: str | None
    outcome: Mapping[str, Any]
    at_ms: int
    taken_back: bool
    recorded_by: str


@dataclass(frozen=True, slots=True)
class Answer:
    """An execution that answers for a request, the key of the effect's row, and which generation of the slot that is."""

    execution: Execution
    key: str
    generation: int


def record(store: Store, lost: Execution) -> bool:
    """
    Record an execution by its receiver's id, so that it answers whoever asks for it; return whether anything changed.

    Nothing changes where the ledger has its key by now: a worker was faster, and sent it.
    """
    values = {
        "effect": lost.effect,
        "executed_id": lost.id,
        "key": lost.key,
        "identity": lost.identity,
        "outcome": json.dumps(dict(lost.outcome)),
        "at_ms": lost.at_ms,
        "taken_back": int(lost.taken_back),
    }
    with store.transaction("execution.record") as tx:
        if tx.one(RECORD, principal=lost.recorded_by, **values) is None:
            return False
        thread_id = thread_of(lost)
        if thread_id and tx.one(THREAD, thread_id=thread_id):
            body = {"effect": lost.effect, "executed": lost.id, "outcome": sha256(dict(lost.outcome))}
            subject = lost.key or lost.id
            append(
                tx, thread_id, "execution.record", actor=lost.recorded_by, subject=subject, back=lost.taken_back, **body
            )
        return True


def recorded(store: Store, effect: str, executed_id: str) -> Execution | None:
    """Return what was recorded of this execution, or `None`."""
    with store.reading() as tx:
        row = tx.one(RECORDED, effect=effect, executed_id=executed_id)
    return _execution(row) if row else None


def newest_ms(store: Store) -> int | None:
    """Return when the last transition of the journal was, or `None` for an empty one."""
    with store.reading() as tx:
        row = tx.one(NEWEST)
    return int(row["at_ms"]) if row and row["at_ms"] is not None else None


def thread_of(lost: Execution) -> str | None:
    """Return the thread whose key it was sent with; `None` where the key does not say it."""
    asked = re.fullmatch(rf"(.+):[^:]+:{re.escape(lost.effect)}:[0-9a-f]{{16}}(\.[0-9]+)?", lost.key or "")
    return asked[1] if asked else None


def state_of(store: Store, thread_id: str) -> str | None:
    """Return the state of the thread's run, or `None` if there is no such run."""
    with store.reading() as tx:
        row = tx.one(RUN, thread_id=thread_id)
    return str(row["state"]) if row else None


def answer_for(tx: Tx, asked: Request, released: Row | None) -> Answer | None:
    """
    Return what was executed for this request before the journal was restored, or `None`.

    Raises:
        EffectConflict: something else was executed for the same business identity. Stop; nothing may be called.
    """
    first = int(released["generation"]) if released else 1
    keys = {key: n for n in range(first, first + GENERATIONS) for key in _keys_of(asked, n)}
    if row := tx.one(OF_KEYS, effect=asked.effect, **_padded(list(keys))):
        return Answer(_execution(row), str(row["key"]), keys[row["key"]])
    if asked.slot.identity is None:
        return None
    found = [_execution(row) for row in tx.all(OF_IDENTITY, effect=asked.effect, identity=asked.slot.identity)]
    for one in found:
        if _is_the_same(asked, one):
            return Answer(one, one.key or asked.key_of(first), first)
    if found:
        raise EffectConflict(
            f"effect {asked.effect!r} for {asked.slot.identity!r} was executed as {found[0].id!r} with other arguments, before the journal "
            "was restored; nothing was called. If it is taken back at the receiver, counterfoil reconcile --fix lets it be asked for anew"
        )
    return None


def adopt_answer(tx: Tx, claimed: EffectRecord, answer: Answer, *, actor: str) -> EffectRecord:
    """Settle what was claimed a moment ago, in the same *tx*, with what was executed for it; money that was spent counts as spent."""
    outcome = dict(answer.execution.outcome)
    row = tx.one(ADOPT, key=claimed.key, outcome=json.dumps(outcome), generation=answer.generation)
    assert row is not None
    append(
        tx,
        claimed.thread_id,
        "effect.adopt",
        actor=actor,
        subject=claimed.key,
        effect=claimed.effect,
        outcome=sha256(outcome),
        executed=answer.execution.id,
        recorded_by=answer.execution.recorded_by,
    )
    return record_from(row)


def same_fact(field: str, here: object, there: object) -> bool:
    """Tell whether a fact is the same on both sides; of a currency the case does not count."""
    if field == "currency" and isinstance(here, str) and isinstance(there, str):
        return here.casefold() == there.casefold()
    return here == there


def _keys_of(asked: Request, generation: int) -> list[str]:
    """Return what this generation may have been sent as: by the receiver's profile as it is now, whole, and in the short form."""
    lengths = (asked.max_key_length, MAX_KEY_LENGTH, 0)
    return [make_key(asked.slot, asked.digest, max_length=longest, generation=generation) for longest in lengths]


def _is_the_same(asked: Request, one: Execution) -> bool:
    """Tell whether another thread's execution had the arguments that are asked with: by its key's digest, or fact by fact, all of them."""
    if re.search(rf":{re.escape(asked.effect)}:{asked.digest}(\.[0-9]+)?$", one.key or ""):
        return True
    return all(
        name in one.outcome and same_fact(name, value, one.outcome[name]) for name, value in asked.arguments.items()
    )


def _padded(keys: Sequence[str]) -> dict[str, str]:
    return {f"key_{n}": keys[n] if n < len(keys) else "" for n in range(3 * GENERATIONS)}


def _execution(row: Row) -> Execution:
    return Execution(
        effect=row["effect"],
        id=row["executed_id"],
        key=row["key"],
        identity=row["identity"],
        outcome=json.loads(row["outcome"]),
        at_ms=int(row["at_ms"]),
        taken_back=bool(row["taken_back"]),
        recorded_by=row["recorded_by"],
    )
