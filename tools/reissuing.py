"""
Trying an effect again that was declined: under a new key, at once, by somebody who has a name.

    declined ──▶ released, under the next key ──▶ claimed ── call ──▶ settled

The run that was told of the decline is history and is not changed; whatever asks for the slot from now on, a fork or a re-run, is answered with the
new outcome. A crash after the first arrow leaves a free slot, and one at the call a claim whose owner is gone: reissuing once more, by
the new key, goes on from there, and a call that may have happened is then resolved as the receiver's profile says, never under a third key.
"""

from __future__ import annotations

from typing import Protocol

from checkpointing.effects import EffectRecord
from checkpointing.errors import EffectBusy, ReissueRefused, RunBusy
from checkpointing.leases import Leases, holding, slot_lease
from checkpointing.ledger import Ledger
from checkpointing.principals import named
from checkpointing.resolving import asked_again
from checkpointing.store import Store
from tools.effect import Effect
from tools.perform import drive, perform


class Records(Protocol):
    """What a reissue needs of a journal; tools know nothing of the rest, which is LangGraph's."""

    store: Store
    leases: Leases
    effects: Ledger


def reissue(
    journal: Records, effect: Effect, key: str, *, principal: str | None, reason: str = "", spoilt: bool = False
) -> EffectRecord:
    """
    Have the receiver execute an effect that it declined, or that did not happen, under a new key, and return its settled record.

    Args:
        journal: where it is recorded.
        effect: what `@effect` made, the one that was declined.
        key: its key as the ledger has it now.
        principal: who wants it tried again.
        reason: why, for the audit.
        spoilt: the receiver stored a failure under the key of an effect that did not happen, so the key is of no use any more.

    Raises:
        UnknownEffect: no effect has this key.
        ReissueRefused: it happened; or it is another effect's key.
        NotAllowed: no principal was named.
        EffectBusy: somebody is executing it.
        EffectInDoubt, EffectUnsettled, Rejected: as `perform`; a person resolves it, or reissues it once more by its new key.
    """
    named(principal, f"reissuing effect {key!r} needs a principal: who wants it tried again?")
    longest = effect.receiver.max_key_length
    before = journal.effects.get(key)
    if before.effect != effect.name:
        raise ReissueRefused(f"effect {key!r} is a {before.effect!r}, not a {effect.name!r}")
    try:
        with holding(journal.leases, slot_lease(before.slot)) as lease:
            if before.state in ("settled", "released") and not _is_begun(before):
                freed = journal.effects.reissue(
                    key, principal=principal, reason=reason, max_key_length=longest, spoilt=spoilt
                )
                key = freed.key
            asked = asked_again(journal.store, key, lease, max_key_length=longest)
            return drive(perform(journal.effects, effect, asked))
    except RunBusy as busy:
        raise EffectBusy(str(busy)) from busy


def _is_begun(record: EffectRecord) -> bool:
    """Tell whether this is a later generation that was freed and has not been called: its reissue was killed, and goes on."""
    return record.state == "released" and record.generation > 1 and record.calls == 0
