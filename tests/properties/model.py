"""
The model: what must be true of a run after every event, by what was seen before it, what was tried, and what is seen now.

It knows the promises and none of how they are kept. Each check is named after the guarantee it is of, and says what it found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from checkpointing import Approval, Run
from tests.properties.acts import Attempt
from tests.properties.history import RAW, Event, Part, question_of
from tests.properties.seen import Seen
from tests.properties.world import CLERK

TRY_AGAIN = {"RunBusy", "EffectBusy", "EffectUnsettled", "ClockBehind"}
REFUSALS = {
    "nudge": {"UnknownThread"},
    "decide": {"AlreadyDecided", "ApprovalExpired", "PayloadChanged", "NotAllowed"},
    "redrive": {"UnknownThread", "InputRefused"},
    "resolve": {"AlreadySettled"},
}
LIFE = {"", "EffectInDoubt", "RunDead", "Rejected", "BrokeOff"} | TRY_AGAIN
"""What any call may be told, whatever the history; a `Declined` is no error, the run goes on."""
OF_AN_EDITED_PAST = {"EffectConflict", "EffectNotApproved", "SlotAmbiguous", "InvalidUpdateError"}
"""What a call may be told once somebody has rewritten an old checkpoint by hand."""
DEAD_OF_IT = {"effect_conflict", "effect_not_approved", "slot_ambiguous"}
WRITES_OF_A_HOLDER = {"effect.claim", "effect.take_over", "run.park", "run.finish", "run.die", "run.stand_by"}


class Broken(AssertionError):
    """A promise was broken."""


@dataclass
class Model:
    """
    What is remembered of a history.

    Attributes:
        rewritten: Somebody has changed an old checkpoint by hand; the run may contradict its own record now, and be told so.
    """

    parts: list[Part]
    before: Seen
    rewritten: bool = False
    decisions: dict[str, tuple[object, str | None]] = field(default_factory=dict)

    def check(self, event: Event, attempts: Sequence[Attempt], now: Seen) -> None:
        """
        Check every promise after *event*.

        Raises:
            Broken: the first that does not hold.
        """
        self.rewritten = self.rewritten or event.verb == "rewrite"
        self.answers_are_in_order(event, attempts)
        self.g1_no_operation_is_executed_twice(now)
        self.g1_done_means_executed(now)
        self.g2_no_completed_step_runs_again(now)
        self.g2_no_recorded_answer_is_asked_for_again(now)
        self.g3_the_first_decision_stands(attempts, now)
        self.g3_only_what_was_approved_was_executed(now)
        self.g7_fences_only_grow(now)
        if event.verb not in RAW:
            self.g7_the_head_stays_on_its_branch(now)
            self.g7_only_the_holder_writes(now)
        self.the_record_is_whole(now)
        self.before = now

    def answers_are_in_order(self, event: Event, attempts: Sequence[Attempt]) -> None:
        """Every call was told something that such a call may be told."""
        for one in attempts:
            allowed = LIFE | REFUSALS.get(one.call, set()) | (OF_AN_EDITED_PAST if self.rewritten else set())
            if one.call == "submit_other":
                allowed = {"InputChanged"}
            if event.verb == "overtaken":
                allowed |= {"LeaseLost", "CheckpointSuperseded"}
            if one.said is not None and one.said not in allowed:
                raise Broken(f"{one.call} was told {one.said}")

    def g1_no_operation_is_executed_twice(self, now: Seen) -> None:
        """Whatever happened."""
        if twice := [name for name, count in now.executed().items() if count > 1]:
            raise Broken(f"G1: executed more than once: {twice}")

    def g1_done_means_executed(self, now: Seen) -> None:
        """A run that is done has executed every operation once, or has been told no by its receiver or by a person."""
        if now.run is None or now.run.state != "done" or self.rewritten:
            return
        executed, declined = now.executed(), {call["claim_id"] for call in now.calls if call["declined"]}
        for name, question in question_of(self.parts).items():
            wanted = question == "none" or _verdict(now, name) in ("approve", "edit")
            if wanted and not executed[name] and name not in declined:
                raise Broken(f"G1: the run is done and {name} was not executed")
            if not wanted and executed[name]:
                raise Broken(f"G3: {name} was executed and its question answered {_verdict(now, name)}")

    def g2_no_completed_step_runs_again(self, now: Seen) -> None:
        """A node does not run from a checkpoint that had a successor when the event began."""
        completed = set(self.before.parents.values())
        for (node, checkpoint), times in (now.nodes - self.before.nodes).items():
            if checkpoint in completed:
                raise Broken(f"G2: {node} ran again from {checkpoint}, {times} times more, and that step was complete")

    def g2_no_recorded_answer_is_asked_for_again(self, now: Seen) -> None:
        """A model whose answer is in the ledger is not asked."""
        recorded = {one.effect for one in self.before.effects.values() if one.state == "settled"}
        if again := [name for name in (now.models - self.before.models) if name in recorded]:
            raise Broken(f"G2: models were asked again for a recorded answer: {again}")

    def g3_the_first_decision_stands(self, attempts: Sequence[Attempt], now: Seen) -> None:
        """Every decision is somebody's who made it, the first one's, and never changes."""
        for one in now.approvals.values():
            known = self.decisions.get(one.id)
            if known and known != (one.decision, one.decided_by):
                raise Broken(f"G3: the decision on {one.name} was {known} and is {(one.decision, one.decided_by)}")
            tried = [attempt for attempt in attempts if attempt.decision and attempt.decision["id"] == one.id]
            self._check_told(one, tried)
            if known is None and one.decision:
                self._check_new(one, tried)
                self.decisions[one.id] = (one.decision, one.decided_by)

    def g3_only_what_was_approved_was_executed(self, now: Seen) -> None:
        """What the receiver executed under a question is exactly what somebody, or its expiry, approved; once an approval."""
        questions = question_of(self.parts)
        for call in now.calls:
            name = call["claim_id"]
            if questions.get(name) == "none" or not call["executed"]:
                continue
            payload = {"claim_id": name, "amount": call["amount"]}
            if payload not in [one.approved()[0] for one in now.approvals.values() if _allows(one)]:
                raise Broken(f"G3: executed and never approved: {payload}")
        used = [one.approval_id for one in now.effects.values() if one.approval_id]
        if len(used) != len(set(used)):
            raise Broken(f"G3: an approval was used twice: {used}")

    def g7_fences_only_grow(self, now: Seen) -> None:
        """For ever, and no lease is forgotten."""
        for name, fence in self.before.fences.items():
            if now.fences.get(name, -1) < fence:
                raise Broken(f"G7: the fence of {name} was {fence} and is {now.fences.get(name)}")

    def g7_the_head_stays_on_its_branch(self, now: Seen) -> None:
        """The new head descends from the old one, and no checkpoint was written beside them."""
        if self.before.head and self.before.head not in now.line():
            raise Broken(f"G7: the head {now.head} does not descend from {self.before.head}")
        if beside := (now.parents.keys() - self.before.parents.keys()) - now.line():
            raise Broken(f"G7: checkpoints that the head does not descend from: {sorted(beside)}")

    def g7_only_the_holder_writes(self, now: Seen) -> None:
        """What only a holder may do was done by the last one that began."""
        owner = next((e.actor for e in reversed(self.before.entries) if e.event == "run.start"), "")
        for entry in now.entries[len(self.before.entries) :]:
            if entry.event == "run.start":
                owner = entry.actor
            elif entry.event in WRITES_OF_A_HOLDER and entry.actor != owner:
                raise Broken(f"G7: {entry.event} by {entry.actor}, and {owner} had taken over")

    def g7_a_stale_worker_changes_nothing(self, before: Seen, now: Seen) -> None:
        """Who was overtaken may say what came of its call, and nothing else."""
        if (before.wrote, before.effects.keys()) != (now.wrote, now.effects.keys()):
            raise Broken(f"G7: a stale worker wrote checkpoints or claimed an effect: {before.wrote}, {now.wrote}")
        if {one.id: one.state for one in before.approvals.values()} != {o.id: o.state for o in now.approvals.values()}:
            raise Broken("G7: a stale worker asked or superseded a question")

    def the_record_is_whole(self, now: Seen) -> None:
        """The audit is only added to, and agrees with the rows."""
        if now.entries[: len(self.before.entries)] != self.before.entries:
            raise Broken("the audit was rewritten")
        if now.faults:
            raise Broken(f"the audit finds: {now.faults}")

    def ended(self, now: Seen) -> None:
        """Check the end that operators brought about."""
        assert now.run
        if self.may_end_so(now.run):
            return
        if now.run.state != "done":
            raise Broken(f"G6: the run does not end: {now.run.state}, {now.run.reason}, {now.run.error}")
        if unsettled := [one.key for one in now.effects.values() if one.state not in ("settled", "released")]:
            raise Broken(f"G1: the run is done and nobody knows of {unsettled}")

    def may_end_so(self, run: Run) -> bool:
        """Tell whether a dead letter is in order: the past was changed after it had been acted upon, and the run says so."""
        return self.rewritten and run.state == "dead" and run.reason in DEAD_OF_IT

    @staticmethod
    def _check_told(row: Approval, tried: Sequence[Attempt]) -> None:
        for one in tried:
            assert one.decision
            if one.said is None:
                continue
            if not one.refused and (row.decided_by, row.payload_hash) != (one.decision["by"], one.decision["hash"]):
                raise Broken(f"G3: {one.decision} was taken, and the row has {row.decision} by {row.decided_by}")
            if one.refused and row.decided_by == one.decision["by"]:
                raise Broken(f"G3: {one.decision} was refused ({one.said}) and recorded")
            if one.winner and tuple(one.winner) != ((row.decision or {}).get("type"), row.decided_by):
                raise Broken(f"G3: {one.decision} was told that {one.winner} won, and {row.decided_by} did")

    @staticmethod
    def _check_new(row: Approval, tried: Sequence[Attempt]) -> None:
        if row.decided_by is None:
            if row.expires_at is None or row.decision != {"type": row.on_expiry}:
                raise Broken(f"G3: {row.name} has the outcome {row.decision} by nobody")
            return
        mine = [one.decision for one in tried if one.decision and one.decision["by"] == row.decided_by]
        made = [(one["type"], one["payload"], one["hash"]) for one in mine]
        assert row.decision
        if (row.decision["type"], row.approved()[0], row.payload_hash) not in made:
            raise Broken(f"G3: {row.name} has {row.decision} by {row.decided_by}, who tried {made}")
        if row.decided_by == CLERK:
            raise Broken(f"G3: {row.name} was decided by who submitted the run")


def _allows(approval: Approval) -> bool:
    return approval.decision is not None and approval.decision["type"] in ("approve", "edit")


def _verdict(now: Seen, operation: str) -> str | None:
    """Return the kind of the latest decision on the question about this operation."""
    rounds = [one for one in now.approvals.values() if one.payload["claim_id"] == operation]
    latest = max(rounds, key=lambda one: (one.visit, one.round), default=None)
    return latest.decision["type"] if latest and latest.decision else None
