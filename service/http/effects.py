"""
Effects over HTTP: what was done to the world, and saying what happened to one in doubt.
"""

from __future__ import annotations

from typing import Annotated, Self

from fastapi import APIRouter, Query
from pydantic import Field, model_validator

from checkpointing.effects import EffectState
from service.http.asks import Body, Cursor, EffectKey, Json, Limit, Name, read, written
from service.http.callers import Caller, Within
from service.http.shown import EffectShown, PageShown

router = APIRouter(tags=["effects"])


class FindingBody(Body):
    """What somebody found out about an effect in doubt."""

    happened: bool = Field(
        strict=True,
        description="Whether the receiver executed it. A payment that happened and is declared as nothing is paid again.",
    )
    outcome: Json = Field(default=None, description="What the receiver answered; for one that happened.")

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if not self.happened and self.outcome is not None:
            raise ValueError("what did not happen has no outcome")
        if self.happened and "outcome" not in self.model_fields_set:
            raise ValueError("what happened has an outcome: what did the receiver answer?")
        return self


@router.get("/effects")
def list_effects(
    app: Within,
    _visitor: Caller,
    *,
    state: Annotated[EffectState | None, Query(description="Only those in this state: `in_doubt`.")] = None,
    thread_id: Annotated[Name | None, Query(description="Only those that this thread claimed.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> PageShown[EffectShown]:
    """List effects in the order they were claimed."""
    question = ("effects", state, thread_id)
    page = app.journal.listing.effects(thread_id=thread_id, state=state, after=read(cursor, *question), limit=limit)
    return PageShown(items=[EffectShown.of(one) for one in page.items], next=written(page.next, *question))


@router.get("/effects/{key}")
def get_effect(app: Within, _visitor: Caller, key: EffectKey) -> EffectShown:
    """Return one effect: its arguments, its outcome, how often its receiver was called and how often the record answered instead."""
    return EffectShown.of(app.journal.effects.get(key))


@router.post("/effects/{key}/resolve")
def resolve(app: Within, visitor: Caller, key: EffectKey, body: FindingBody) -> EffectShown:
    """Say what happened to an effect in doubt, after looking it up at its receiver; every run that waits for it is ready then."""
    happened = body.happened
    return EffectShown.of(
        app.journal.effects.resolve(key, happened=happened, outcome=body.outcome, principal=visitor.name)
    )
