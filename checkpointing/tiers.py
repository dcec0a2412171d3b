"""
The ladder of an approval: who is asked first, for how long, and who is asked next when nobody answered in time.

    first tier whose `up_to` covers the amount ──its time is over──▶ the next tier ──▶ … ──▶ the last tier ──▶ the outcome at expiry

A ladder is written into the question when it is asked, so a parked question climbs by the rules it was asked under.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from checkpointing.clock import duration_ms


@dataclass(frozen=True, slots=True)
class Tier:
    """
    One rung: who may decide, and for how long they are asked.

    Attributes:
        name: What it is called in the audit and in the inbox.
        approvers: Names, and `group:NAME` for whoever is in a group; `None`: anybody but the submitter.
        ttl: How long they have; `None`: for ever, on the last tier only.
        up_to: The largest amount they may approve, in minor units; `None`: any, and always so on the last tier.
        remind: How long before the end of their time they are reminded; `None`: never.
        quorum: How many of them have to say the same.
    """

    name: str
    approvers: tuple[str, ...] | None = None
    ttl: timedelta | None = None
    up_to: int | None = None
    remind: timedelta | None = None
    quorum: int = 1

    def as_json(self) -> dict[str, Any]:
        """Return the tier as it is stored, durations in milliseconds."""
        return {
            "name": self.name,
            "approvers": None if self.approvers is None else list(self.approvers),
            "ttl_ms": _ms(self.ttl),
            "up_to": self.up_to,
            "remind_ms": _ms(self.remind),
            "quorum": self.quorum,
        }


def tier_from(stored: dict[str, Any]) -> Tier:
    """Read a tier as `Tier.as_json` wrote it."""
    return Tier(
        name=stored["name"],
        approvers=None if stored["approvers"] is None else tuple(stored["approvers"]),
        ttl=_duration(stored["ttl_ms"]),
        up_to=stored["up_to"],
        remind=_duration(stored["remind_ms"]),
        quorum=stored["quorum"],
    )


def check_ladder(tiers: Sequence[Tier], *, has_amount: bool) -> None:
    """
    Make sure that every question can climb this ladder to an end.

    Raises:
        ValueError: the message names the tier and what is wrong with it.
    """
    if not tiers:
        raise ValueError("a ladder has at least one tier")
    if len({tier.name for tier in tiers}) < len(tiers):
        raise ValueError("two tiers are called the same")
    for tier in tiers:
        _check_tier(tier, last=tier is tiers[-1], has_amount=has_amount)
    limits = [tier.up_to for tier in tiers if tier.up_to is not None]
    if limits != sorted(limits):
        raise ValueError("each tier may approve at least what the one before it may")


def first_tier(tiers: Sequence[Tier], amount: int | None) -> int:
    """Return the place of the first tier that may approve *amount*; the first of all where there is none."""
    fitting = (
        place for place, tier in enumerate(tiers) if amount is None or tier.up_to is None or amount <= tier.up_to
    )
    return next(fitting)


def _check_tier(tier: Tier, *, last: bool, has_amount: bool) -> None:
    if tier.quorum < 1:
        raise ValueError(f"tier {tier.name!r}: at least one person has to decide, not {tier.quorum}")
    if tier.up_to is not None and not has_amount:
        raise ValueError(f"tier {tier.name!r} has a limit, and the approval no amount to hold it against")
    if tier.ttl is not None and tier.ttl <= timedelta():
        raise ValueError(f"tier {tier.name!r}: its time is to be longer than nothing")
    if tier.ttl is None and (tier.remind is not None or not last):
        raise ValueError(f"tier {tier.name!r}: without a `ttl` it never ends, so there is no reminder and no next tier")
    if tier.remind is not None and tier.ttl is not None and not timedelta() < tier.remind < tier.ttl:
        raise ValueError(f"tier {tier.name!r}: the reminder comes before the end of its time, and after its beginning")
    if last and tier.up_to is not None:
        raise ValueError(
            f"tier {tier.name!r} is the last one, so nobody could approve more than its `up_to`; leave it out"
        )


def _ms(duration: timedelta | None) -> int | None:
    return None if duration is None else duration_ms(duration)


def _duration(ms: int | None) -> timedelta | None:
    return None if ms is None else timedelta(milliseconds=ms)
