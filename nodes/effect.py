"""
The effect node: one effect, executed once a slot, with its receipt in the state.

The node runs again after a crash, on a fork, in a second process; each time it asks the ledger for the same slot, and the ledger either lets it
call the receiver or answers with what was recorded. The receipt is written with the outcome in the same update, so that the count of receipts
is the count of visits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig, RunnableLambda

from checkpointing import EffectRecord, Journal
from checkpointing.errors import ArgumentsNotJson, EffectNotApproved, GraphRefused
from nodes.performing import arun, never_asking
from nodes.request import request, slot_of
from nodes.state import read_channel
from nodes.visit import Visit, place, visit, visits_before
from tools.effect import Effect
from tools.perform import Steps, drive, perform

State = Mapping[str, Any]
Update = dict[str, Any]


class EffectNode(RunnableLambda[Any, Any]):
    """What `effect_node` makes; `durable()` finds the effects of a graph by it."""

    effect: Effect


def effect_node(
    effect: Effect,
    journal: Journal,
    *,
    arguments: Callable[[State], Mapping[str, Any]] | None = None,
    into: str | None = None,
    approval: str | Callable[[State], str | None] | None = None,
) -> EffectNode:
    """
    Make the node that executes *effect*.

    Args:
        effect: what `@effect` made.
        journal: where it is recorded.
        arguments: the tool's arguments from the state, as JSON and without `key`; by default the approved payload.
        into: the state key that gets the outcome: what the tool returned, or `{"declined": message}`.
        approval: the name of the approval the effect acts under, or a function of the state that returns it, `None` meaning that none is needed.
            A rejected or expired one makes the effect do nothing and leave a `skipped` receipt.

    Raises:
        TypeError: *effect* is a plain function, or there are neither arguments nor an approval to take them from.
    """
    if not isinstance(effect, Effect):
        raise TypeError(f"effect_node() takes what @effect made, not {effect!r}")
    if arguments is None and approval is None:
        raise TypeError(f"effect_node({effect.name!r}) needs `arguments`, or an `approval` whose payload they are")
    work = _Work(effect, journal, arguments, into, approval)
    node = EffectNode(work.run, work.arun, name=effect.name)
    node.effect = effect
    return node


class _Work:
    """The node's body, sync and async."""

    def __init__(
        self,
        effect: Effect,
        journal: Journal,
        arguments: Callable[[State], Mapping[str, Any]] | None,
        into: str | None,
        approval: str | Callable[[State], str | None] | None,
    ) -> None:
        self.effect = effect
        self.journal = journal
        self.arguments = arguments
        self.into = into
        self.approval = approval

    def run(self, state: State, config: RunnableConfig) -> Update:
        return drive(self._steps(state, config))

    async def arun(self, state: State, config: RunnableConfig) -> Update:
        return await arun(self.effect, self.journal.bridge, lambda: self._steps(state, config))

    def _steps(self, state: State, config: RunnableConfig) -> Steps[Update]:
        here, step, approved = self._enter(state, config)
        if approved and approved["type"] not in ("approve", "edit"):
            return {"effects": {step: self._receipt(here, "skipped", None)}}
        values = self._values(state, approved)
        slot = slot_of(self.effect, values, thread_id=here.thread_id, step=step)
        with place(self.journal, here, slot.id) as at:
            asked = request(self.effect, slot, at, values, approved=approved)
            with never_asking(f"effect {self.effect.name!r} in node {here.node!r}"):
                record = yield from perform(self.journal.effects, self.effect, asked)
        return self._done(here, step, record)

    def _enter(self, state: State, config: RunnableConfig) -> tuple[Visit, str, dict[str, Any] | None]:
        """Return where we are, the slot's step, and the approval's record, where the effect names one."""
        here = visit(config)
        receipts = read_channel(config, "effects")
        if receipts is None and self.effect.once is None:
            raise GraphRefused(
                f"effect {self.effect.name!r} in node {here.node!r} needs the channel `effects`: derive the state from DurableState, "
                "or give the effect a business identity with once="
            )
        step = here.step(visits_before(receipts or {}, here.node))
        name = self.approval(state) if callable(self.approval) else self.approval
        if name is None:
            return here, step, None
        record = (read_channel(config, "approvals") or {}).get(name)
        if record is None:
            raise EffectNotApproved(
                f"effect {self.effect.name!r} in node {here.node!r} acts under approval {name!r}, and there is none"
            )
        return here, step, record

    def _values(self, state: State, approved: Mapping[str, Any] | None) -> dict[str, Any]:
        values = self.arguments(state) if self.arguments else approved and approved["payload"]
        if not isinstance(values, Mapping):
            raise ArgumentsNotJson(
                f"the arguments of effect {self.effect.name!r} are {type(values).__name__}, not a mapping"
            )
        return dict(values)

    def _done(self, here: Visit, step: str, record: EffectRecord) -> Update:
        state = "succeeded" if record.declined is None else "declined"
        update: Update = {"effects": {step: self._receipt(here, state, record.key)}}
        if self.into:
            update[self.into] = record.outcome
        return update

    def _receipt(self, here: Visit, state: str, key: str | None) -> dict[str, Any]:
        return {"key": key, "effect": self.effect.name, "node": here.node, "state": state}
