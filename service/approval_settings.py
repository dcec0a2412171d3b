"""
The settings that say of whom a payment is asked, and until when.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_settings import BaseSettings, NoDecode

from checkpointing.amending import LONGEST
from checkpointing.budget import LARGEST
from checkpointing.tiers import Tier, check_ladder
from nodes.claims import Asking
from service.setting_names import PREFIX

LONGEST_HOURS = LONGEST // timedelta(hours=1)
"""The most that people are given at a time, in hours: some ten years, which every clock can reach."""


class TierSetting(BaseModel):
    """One tier of the ladder, as it is written in the settings; see `checkpointing.tiers.Tier`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1, max_length=100)
    approvers: tuple[str, ...] | None = None
    hours: float | None = Field(default=None, gt=0, le=LONGEST_HOURS)
    up_to: int | None = Field(default=None, ge=0, le=LARGEST)
    remind_hours: float | None = Field(default=None, gt=0, le=LONGEST_HOURS)
    quorum: int = Field(default=1, ge=1, le=100)

    @property
    def tier(self) -> Tier:
        """The tier."""
        hours, remind = self.hours, self.remind_hours
        return Tier(
            name=self.name,
            approvers=self.approvers,
            ttl=None if hours is None else timedelta(hours=hours),
            up_to=self.up_to,
            remind=None if remind is None else timedelta(hours=remind),
            quorum=self.quorum,
        )


class ApprovalSettings(BaseSettings):
    """
    Of whom a payment is asked.

    Attributes:
        approval_hours: How long an adjuster has, where there are no tiers.
        approval_remind_hours: How long before that they are reminded; empty for never.
        approval_tiers: A ladder in place of both, as JSON: a list of `{"name", "approvers", "hours", "up_to", "remind_hours", "quorum"}`.
        approval_four_eyes: Whether an amount that an adjuster changed takes a second one.
        approval_on_expiry: What silence counts as: `reject` or `hand_over`.
    """

    approval_hours: float = Field(default=72, gt=0, le=LONGEST_HOURS)
    approval_remind_hours: float | None = Field(default=None, gt=0, le=LONGEST_HOURS)
    approval_tiers: Annotated[tuple[TierSetting, ...] | None, NoDecode] = None
    approval_four_eyes: bool = False
    approval_on_expiry: Literal["reject", "hand_over"] = "reject"

    @field_validator("approval_remind_hours", mode="before")
    @classmethod
    def _or_never(cls, given: object) -> object:
        """Take an empty value for no reminder."""
        return None if given == "" else given

    @field_validator("approval_tiers", mode="before")
    @classmethod
    def _ladder(cls, given: object) -> object:
        """Read the ladder from JSON; an empty value is none."""
        if not isinstance(given, str):
            return given
        try:
            return json.loads(given) if given else None
        except json.JSONDecodeError as error:
            raise ValueError(
                f"not JSON, at character {error.pos}: a list of tiers, as docs/approvals.md has it"
            ) from None

    @property
    def asking(self) -> Asking:
        """Of whom a payment is asked, and until when."""
        return Asking(
            ttl=timedelta(hours=self.approval_hours),
            remind=None if self.approval_remind_hours is None else timedelta(hours=self.approval_remind_hours),
            tiers=tuple(one.tier for one in self.approval_tiers or ()),
            four_eyes=self.approval_four_eyes,
            on_expiry=self.approval_on_expiry,
        )

    def hours_to_decide(self) -> float:
        """
        Return how many hours pass until nobody is asked any more; a last tier without an end counts for none.

        Raises:
            ValueError: the ladder has no end, or a reminder comes at no time.
        """
        asking = self.asking
        try:
            check_ladder(asking.tiers or [Tier("adjusters", ttl=asking.ttl, remind=asking.remind)], has_amount=True)
        except ValueError as error:
            raise ValueError(f"{PREFIX}APPROVAL_TIERS, or {PREFIX}APPROVAL_REMIND_HOURS: {error}") from None
        return sum(tier.hours or 0 for tier in self.approval_tiers or ()) or self.approval_hours
