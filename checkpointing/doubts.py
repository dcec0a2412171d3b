"""
Effects of which nobody knows whether they happened: whether a thread has one, and whom one waits for.
"""

from __future__ import annotations

from checkpointing.errors import EffectInDoubt
from checkpointing.store import Tx

UNSETTLED = """
select key from effects where thread_id = :thread_id and generation = 1 and repeatable = 0 and state in ('claimed', 'in_doubt') limit 1
"""
LOCK_KEY = "select state from effects where key = :key for update"


def unsettled(tx: Tx, thread_id: str) -> str | None:
    """
    Return the key of an effect of the thread of which nobody knows yet whether it happened, or `None`.

    A later generation is a person's second attempt beside the run, which has had its answer from the first. What does no harm when it is done
    again, a question to a model, may be left behind by a worker that died or by a question that was put in other words.
    """
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
        f"Find out, then: counterfoil effects resolve {key!r} --as NAME with --happened JSON or --nothing-happened",
        key=key,
    )
