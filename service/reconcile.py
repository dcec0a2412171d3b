"""
Reconciliation: the ledger against the receivers' own lists, page by page.

    1  every list is read to its end into the scratch     a receiver that breaks off ends it all: nothing is found, nothing is changed
    2  the ledger's settled effects, each looked up in    who is missing there
       the scratch by id and key
    3  the scratch in the order of its keys, a page of    who is unknown, unsettled, different or twice
       them looked up in the ledger with one query
    4  with a principal: what is unsettled is adopted

The scratch is a file, so neither side is held in memory: a page of each is. A look-up in the scratch costs no connection, and a page of keys one
query, on either engine.

At the edge of the window, and for what was settled while the list was read, the list says nothing: an effect that is not in it is asked for by its
own id, or its key, before it is called missing. Effects are read after the lists, and claims are made before calls, so an execution in the list has its
row by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from checkpointing import EffectRecord, Journal, restored
from checkpointing.clock import duration_ms, to_ms
from checkpointing.errors import AlreadySettled, EffectBusy, UnknownEffect
from checkpointing.reconciling import Known, adopt, at_slot_of, known, settled_since
from service import lost
from service.findings import Difference, Finding, Kind, differences
from service.scratch import Scratch
from tools.effect import Effect
from tools.executed import Executed
from tools.perform import Call, Steps, drive

GRACE = "5m"
"""How old an execution must be before it is judged, as people give it; longer than any receiver and worker need between them."""

STANDS = {
    "claimed": "claimed by a worker that is gone",
    "in_doubt": "in doubt",
    "released": "released as not executed",
}

Progress = Callable[[str, int], None]
"""Is told what is being done, and how much of it was done."""


def read_lists(effects: Sequence[Effect], into: Scratch, *, since: datetime | None, progress: Progress) -> None:
    """
    Write the list of every receiver into the scratch.

    Raises:
        Unreachable: a list broke off; what was written is of no use.
    """
    for effect in effects:
        assert effect.executed is not None
        for count in into.add(effect.name, effect.executed(since=since)):
            progress(f"listing what {effect.name!r} executed", count)


@dataclass(frozen=True, slots=True)
class Comparison:
    """
    One effect's list against the ledger.

    Attributes:
        scratch: Has the whole list.
        since: The begin of the window; `None`: everything.
        grace: What is younger is not judged.
        restored: The journal was restored from an older copy, made when the window begins: what it does not know, it lost.
    """

    journal: Journal
    effect: Effect
    scratch: Scratch
    since: datetime | None
    grace: timedelta
    progress: Progress
    restored: bool = False

    def findings(self) -> Iterator[Finding]:
        """
        Yield what differs, first what the ledger has and the receiver has not.

        Raises:
            Unreachable: the receiver did not say whether it has an effect that is not in its list.
        """
        yield from self._of_the_ledger()
        yield from self._of_the_receiver()

    def _of_the_ledger(self) -> Iterator[Finding]:
        name = self.effect.name
        since_ms = to_ms(self.since) if self.since else -1
        for count, record in enumerate(settled_since(self.journal.store, name, since_ms), start=1):
            if count % 100 == 0:
                self.progress(f"comparing the ledger's {name!r}", count)
            if record.declined is None:
                yield from self._settled(record)

    def _settled(self, record: EffectRecord) -> Iterator[Finding]:
        """Find out whether the receiver has what was settled; where its key is listed, the other direction judges it."""
        name, own_id = self.effect.name, _id_in(record)
        if self.scratch.by_key(name, record.key):
            return
        listed = self.scratch.by_id(name, own_id) if own_id else None
        found = listed or self._ask_for(record)
        if found is None and own_id is None and self.effect.find is None:
            why = "settled here without the receiver's id, and the receiver cannot be asked for its key: it is not known to be there or missing"
            yield Finding("incomparable", name, why, record)
        elif found is None:
            shown = f"{own_id} " if own_id else ""
            kind: Kind = "in_progress" if record.settled_at and self._young(record.settled_at) else "missing"
            yield Finding(kind, name, f"settled here with {shown}and not executed by the receiver", record)
        elif found.key not in (None, record.key):
            why = f"settled here with {found.id}, which the receiver executed under another key, {found.key}"
            yield Finding("missing", name, why, record, found)
        elif differing := differences(record, found):
            yield Finding("differs", name, "the two sides do not agree", record, found, differing)

    def _of_the_receiver(self) -> Iterator[Finding]:
        done = 0
        for page in self.scratch.pages(self.effect.name):
            rows = known(self.journal.effects, sorted({one.key for one in page if one.key}))
            for one in page:
                row = rows.get(one.key or "")
                yield from self._unknown(one) if row is None else self._known(one, row)
            done += len(page)
            self.progress(f"comparing what {self.effect.name!r} executed", done)

    def _known(self, one: Executed, row: Known) -> Iterator[Finding]:
        """Judge an execution whose key the ledger has."""
        name, record = self.effect.name, row.record
        first = self.scratch.earlier_of_key(name, one)
        if record.reissued_as is not None:
            yield from self._of_the_past(one, record)
        elif record.state == "settled" and record.declined is None:
            yield from self._against_outcome(one, record, first)
        elif one.taken_back and (record.state == "settled" or self.scratch.by_key(name, record.key) != one):
            return
        elif first is not None:
            yield Finding("twice", name, f"executed again with the key that {first} was executed with", record, one)
        elif record.state == "settled":
            no = Difference("outcome", f"declined: {record.declined}", one.id)
            yield Finding("differs", name, "declined here, executed there", record, one, (no,))
        elif row.in_progress:
            yield Finding("in_progress", name, "a worker is executing it", record, one)
        elif record.state == "claimed" and self._young(one.at):
            yield Finding("in_progress", name, "executed just now; its worker may still settle it", record, one)
        else:
            why = f"executed there, {STANDS[record.state]} here"
            yield Finding("unsettled", name, why, record, one, differences(record, one))

    def _of_the_past(self, one: Executed, record: EffectRecord) -> Iterator[Finding]:
        """Judge an execution under a key that was taken for one under which nothing happened, and reissued."""
        if one.taken_back:
            return
        now = self.journal.effects.get(str(record.reissued_as))
        if now.state == "settled" and now.declined is None:
            yield Finding("twice", self.effect.name, f"executed, and its slot was reissued as {now.key}", record, one)
            return
        why = f"executed, and its slot was reissued as {now.key}, which is {now.state}: whoever asks for it next executes it again"
        yield Finding("differs", self.effect.name, why, record, one)

    def _against_outcome(self, one: Executed, record: EffectRecord, first: str | None) -> Iterator[Finding]:
        name, own_id = self.effect.name, _id_in(record)
        if own_id == one.id or (own_id is None and first is None):
            if differing := differences(record, one):
                yield Finding("differs", name, "the two sides do not agree", record, one, differing)
        elif first is None and not self._executed_under(record, own_id):
            yield Finding("differs", name, "recorded with another id", record, one, differences(record, one))
        elif not one.taken_back:
            why = f"executed again with the key that {own_id or first} was executed with"
            yield Finding("twice", name, why, record, one)

    def _unknown(self, one: Executed) -> Iterator[Finding]:
        """Judge an execution whose key the ledger has not: it may belong to a slot that the ledger has under another key."""
        name, identity = self.effect.name, one.identity if self.effect.once else None
        row = at_slot_of(self.journal.effects, name, key=one.key, identity=identity)
        record = row.record if row else None
        if record and one.key is None and _id_in(record) == one.id:
            return  # found by its id already
        kept = restored.recorded(self.journal.store, name, one.id)
        if kept and kept.taken_back == one.taken_back:
            yield from lost.still_there(self.journal, kept, one)
            return
        if one.taken_back:
            if kept:
                yield Finding(
                    "lost", name, "recorded as this journal's, and taken back at the receiver since", executed=one
                )
            return  # mended
        settled = record is not None and record.state == "settled" and record.declined is None
        first = self.scratch.earlier_of_key(name, one) or (
            self.scratch.earlier_of_identity(name, one) if identity else None
        )
        if record and settled:
            why = f"the slot it belongs to was executed with key {record.key}"
            yield Finding("twice", name, why, record, one)
        elif first is not None:
            yield Finding("twice", name, f"{first} was executed for the same, and the ledger has neither", record, one)
        elif self.restored and (record is None or record.state == "released"):
            yield Finding(
                "lost", name, "executed since the copy was made, and the restored ledger does not know it", record, one
            )
        else:
            why = "executed with a key that is not in the ledger" if one.key else "executed without a key"
            why += f"; the slot it belongs to has key {record.key} and is {record.state}" if record else ""
            yield Finding("in_progress" if self._young(one.at) else "unknown", name, why, record, one)

    def _executed_under(self, record: EffectRecord, own_id: str | None) -> bool:
        """Tell whether what was recorded was executed too, with the effect's key."""
        if own_id is None:
            return False
        found = self.scratch.by_id(self.effect.name, own_id) or self._retrieved(own_id)
        return found is not None and found.key in (None, record.key)

    def _ask_for(self, record: EffectRecord) -> Executed | None:
        """Ask the receiver for one settled effect: by its own id, and by its key where it has a look-up."""
        own_id = _id_in(record)
        if own_id and (found := self._retrieved(own_id)):
            return found
        if self.effect.find is None:
            return None
        outcome = drive(_looked_up(self.effect, record))
        if not isinstance(outcome, dict):
            return None
        at = record.settled_at or record.claimed_at
        return Executed(str(outcome.get("id", own_id or "")), at, outcome, record.key)

    def _retrieved(self, executed_id: str) -> Executed | None:
        return self.effect.retrieve(executed_id=executed_id) if self.effect.retrieve else None

    def _young(self, at: datetime) -> bool:
        """Tell whether it may still be under way. A time that lies further ahead says nothing: the receiver's clock is wrong."""
        return abs(self.journal.store.now_ms() - to_ms(at)) < duration_ms(self.grace)


def adopted(journal: Journal, finding: dict[str, Any], *, principal: str) -> dict[str, Any]:
    """
    Settle an unsettled effect with what its receiver executed; return the finding as it stands then.

    Left as they are: one whose facts differ from what was asked for, which a person must look at, and one that a worker took up meanwhile.
    """
    executed, key = finding["executed"], finding["key"]
    if finding["differences"]:
        return finding
    try:
        made = adopt(journal.store, key, executed["outcome"], executed_id=executed["id"], principal=principal)
    except EffectBusy:
        return {**finding, "kind": "in_progress", "why": "a worker took it up meanwhile"}
    except (AlreadySettled, UnknownEffect):  # somebody was faster: settled, or reissued under another key
        record = journal.effects.get(key)
        if _id_in(record) != executed["id"]:
            return {
                **finding,
                "kind": "differs",
                "why": "settled meanwhile, with another outcome",
                "state": record.state,
            }
        return {**finding, "adopted": True, "why": "settled meanwhile", "state": record.state, "woken": []}
    return {**finding, "adopted": True, "state": made.record.state, "woken": list(made.woken)}


def _looked_up(effect: Effect, record: EffectRecord) -> Steps[Any]:
    assert effect.find is not None
    return (yield Call(effect.find, {**record.arguments, "key": record.key}))


def _id_in(record: EffectRecord) -> str | None:
    """Return the receiver's id in an outcome, or `None`."""
    found = record.outcome.get("id") if isinstance(record.outcome, dict) else None
    return str(found) if found else None
