"""
What is shown: the journal's records as the API has them. Money stays in integer minor units, times are ISO 8601 in UTC.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from checkpointing import Approval, EffectRecord, Entry
from checkpointing.admissions import RunState
from checkpointing.clock import from_ms
from checkpointing.digest import canonical
from checkpointing.effects import EffectState
from checkpointing.errors import ArgumentsNotJson
from checkpointing.questions import ApprovalState
from checkpointing.tiers import Tier
from graph.timeline import StepView, Timeline

T = TypeVar("T")


class Shown(BaseModel):
    """What all of it shares: it is read from a record of the journal."""

    model_config = ConfigDict(from_attributes=True)


class PageShown(BaseModel, Generic[T]):
    """Some of a list, and how to go on."""

    items: list[T]
    next: str | None = Field(default=None, description="Give it as `cursor` to get the next page; null at the end.")


class RunShown(Shown):
    """A run: what became of one claim, or of another graph's input."""

    thread_id: str
    state: RunState = Field(
        description="`admitted`: a worker may take it up; `running`; `parked`: it waits; `done`; `dead`: a dead letter."
    )
    reason: str | None = Field(description="Why it is parked or dead.")
    waits_for: str | None = Field(description="The key of the effect in doubt it is parked for.")
    error: str | None = Field(description="The last error of a node; the run may have gone on since.")
    graph: str
    submitted_by: str | None
    turn: int
    attempts: int = Field(description="Starts since the last new checkpoint.")
    resumes: int = Field(description="Starts that took over from a worker that died.")
    steps: int
    created_at: datetime
    updated_at: datetime
    due_at: datetime | None = Field(
        description="When a worker is to look at it; null while only an event carries it on."
    )
    dead_step: int | None
    dead_nodes: str | None
    discarded_by: str | None
    discarded_why: str | None
    discarded_at: datetime | None


class TierShown(Shown):
    """One rung of an approval's ladder."""

    name: str
    approvers: list[str] | None
    ttl_s: float | None
    up_to: int | None
    quorum: int

    @classmethod
    def of(cls, tier: Tier) -> Self:
        """Show a tier."""
        ttl_s = None if tier.ttl is None else tier.ttl.total_seconds()
        approvers = None if tier.approvers is None else list(tier.approvers)
        return cls(name=tier.name, approvers=approvers, ttl_s=ttl_s, up_to=tier.up_to, quorum=tier.quorum)


class ApprovalShown(Shown):
    """A question about an exact payload, and its one decision."""

    id: str
    thread_id: str
    name: str
    node: str
    visit: int
    round: int = Field(description="Counts the payloads shown in one visit, from 0.")
    state: ApprovalState
    payload: Any = Field(description="Exactly what is to be approved.")
    payload_hash: str
    amount: int | None = Field(description="What it is about, in minor units.")
    about: dict[str, Any] | None = Field(description="What is shown beside the payload; it binds nothing.")
    replaces: str | None = Field(description="The approval whose place it took.")
    allowed: list[str] = Field(description="The kinds of decision it takes.")
    approvers: list[str] | None = Field(description="Names, or `group:NAME`; null: anybody but the submitter.")
    edits: dict[str, Any] | None = Field(description="A JSON Schema that an edited payload must fit.")
    quorum: int = Field(description="How many have to say the same.")
    four_eyes: bool
    tier: str | None = Field(description="The tier it stands with.")
    tiers: list[TierShown]
    opened_at: datetime
    expires_at: datetime | None
    remind_at: datetime | None
    on_expiry: str
    decision: dict[str, Any] | None
    decided_by: str | None
    decided_at: datetime | None
    withdrawn_by: str | None
    withdrawn_why: str | None
    withdrawn_at: datetime | None

    @classmethod
    def of(cls, approval: Approval) -> Self:
        """Show an approval."""
        own = {name: getattr(approval, name) for name in cls.model_fields if name not in ("tier", "tiers")}
        tier = approval.at_tier.name if approval.at_tier else None
        return cls(**{**own, "tier": tier, "tiers": [TierShown.of(one) for one in approval.tiers]})


class VoteShown(Shown):
    """What one of several has said."""

    principal: str
    tier: int
    decision: dict[str, Any]
    at: datetime


class EffectShown(Shown):
    """A call that changed the world, or may have, and its one outcome."""

    key: str = Field(description="As it was sent to the receiver.")
    effect: str
    thread_id: str
    step: str
    state: EffectState
    arguments: dict[str, Any]
    outcome: Any = Field(description='What the receiver answered; `{"declined": why}` where it said no.')
    declined: str | None
    approval_id: str | None
    calls: int
    replays: int
    cost: int = Field(description="In minor units.")
    tokens: int
    generation: int
    reissued_as: str | None
    claimed_at: datetime
    settled_at: datetime | None

    @classmethod
    def of(cls, effect: EffectRecord) -> Self:
        """Show an effect."""
        return cls.model_validate(effect)


class EntryShown(BaseModel):
    """One link of a thread's audit."""

    seq: int
    at: datetime
    event: str
    actor: str
    subject: str
    body: dict[str, Any]
    hash: str = Field(description="SHA-256 over the entry and the hash before it.")

    @classmethod
    def of(cls, entry: Entry) -> Self:
        """Show an entry."""
        return cls(at=from_ms(entry.at_ms), **{name: getattr(entry, name) for name in cls.model_fields if name != "at"})


class StepShown(BaseModel):
    """One step of a run."""

    number: int = Field(description="The checkpoint it started from.")
    nodes: list[str]
    update: dict[str, Any] = Field(description="What its nodes wrote; what is not JSON is shown as text.")
    began: datetime
    ended: datetime | None
    attempts: int
    waited_ms: int
    effects: list[EffectShown]
    approvals: list[ApprovalShown]
    checkpoint_id: str

    @classmethod
    def of(cls, step: StepView) -> Self:
        """Show a step."""
        return cls(
            number=step.number,
            nodes=list(step.nodes),
            update={key: as_json(value) for key, value in step.update.items()},
            began=step.began,
            ended=step.ended,
            attempts=step.attempts,
            waited_ms=step.waited // timedelta(milliseconds=1),
            effects=[EffectShown.of(one) for one in step.effects],
            approvals=[ApprovalShown.of(one) for one in step.approvals],
            checkpoint_id=step.checkpoint_id,
        )


class TimelineShown(BaseModel):
    """A run and its steps in order."""

    run: RunShown
    steps: list[StepShown]

    @classmethod
    def of(cls, line: Timeline) -> Self:
        """Show a timeline."""
        return cls(run=RunShown.model_validate(line.run), steps=[StepShown.of(step) for step in line.steps])


class CallerShown(BaseModel):
    """Who you are here."""

    name: str
    roles: list[str]
    groups: list[str]
    limit: Annotated[int | None, Field(description="The most you may approve, in minor units; null for any.")]
    how: str


def as_json(value: Any) -> Any:
    """Return *value*, or as what Python writes it where it is not JSON."""
    try:
        canonical(value)
    except (ArgumentsNotJson, RecursionError):
        return repr(value)
    return value
