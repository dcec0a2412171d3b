"""
An effect as a tool of a LangChain agent: it runs under a claim in the ledger, or not at all.

The claim is made by the tool itself, innermost, so neither the order of an agent's middlewares nor a retry around the tool can get at the effect
without it. A crash at any point leaves what an effect node would leave (`tools/perform.py`); the tools' superstep then runs again, and finds the
same slot (`nodes/tool_calls.py`). What the model is told:

    succeeded                           the outcome
    declined                            the receiver's reason, as an error; recorded
    wrong arguments                     what is wrong with them; nothing was claimed
    rejected by the receiver            its reason; the slot is free, and a repaired request is a new call
    once= recorded, other arguments     what is recorded; nothing was called, the audit has an `effect.conflict`
    the call is another tool's          nothing was called: who edits a call changes its arguments, not its tool
    a person decided otherwise          what was decided; nothing was called (`nodes/reviews.py`)

All else (in doubt, busy, no answer, lease lost, a bug, whatever the tool did not declare) is not the model's to hear and ends the pass.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolRuntime
from pydantic import PrivateAttr, ValidationError

from checkpointing import EffectRecord, Journal
from checkpointing.digest import canonical
from checkpointing.doubts import in_doubt
from checkpointing.effects import Request
from checkpointing.errors import ArgumentsNotJson, EffectConflict, GraphRefused, Rejected, UnguardedEffect
from checkpointing.notes import note_conflict
from checkpointing.recorded import recorded, recorded_at
from checkpointing.slots import Slot
from nodes.performing import arun, never_asking
from nodes.request import digest_of, request, slot_of
from nodes.reviews import decided
from nodes.tool_arguments import OURS, as_json, schema_of, what_is_wrong
from nodes.tool_calls import as_text, find_call, messages_in, outcome, refused, step_of
from nodes.unswallowed import unswallowed
from nodes.visit import Visit, place, visit
from tools.effect import Effect
from tools.perform import Steps, drive, perform


class EffectTool(BaseTool):
    """
    One effect as a tool. Made by `effect_tools`; `durable()` finds the effects of an agent by it.

    Attributes:
        messages_key: Under which key of the state the messages stand.
    """

    messages_key: str = "messages"
    _effect: Effect = PrivateAttr()
    _journal: Journal = PrivateAttr()

    def __init__(self, effect: Effect, journal: Journal, **options: Any) -> None:
        """Use `effect_tools` instead."""
        function = effect.function
        super().__init__(
            name=effect.name,
            description=inspect.getdoc(function) or effect.name,
            args_schema=schema_of(effect),
            handle_validation_error=what_is_wrong,
            **options,
        )
        self._effect = effect
        self._journal = journal

    @property
    def effect(self) -> Effect:
        """The effect."""
        return self._effect

    def claimed_by(self, thread_id: str, message: AIMessage, call: ToolCall) -> EffectRecord | None:
        """Return what the ledger has of this very call, whatever an edit made of its arguments."""
        return recorded_at(self._journal.store, thread_id, step_of(str(message.id), str(call["id"])))

    def known(self, thread_id: str, message: AIMessage, call: ToolCall) -> EffectRecord | None:
        """As `claimed_by`, or what is recorded of the same arguments under the call's business identity."""
        found = self.claimed_by(thread_id, message, call)
        values = self._as_given(call["args"]) if found is None and self._effect.once else None
        if values is None:
            return found
        try:
            slot = slot_of(self._effect, values, thread_id=thread_id, step="")
            same = recorded(self._journal.store, slot)
            return same if same and same.digest == digest_of(self._effect, values) else None
        except ArgumentsNotJson:
            return None

    def _run(self, *, runtime: Any = None, **arguments: Any) -> ToolMessage:
        with unswallowed():
            return drive(self._steps(runtime, arguments))

    async def _arun(self, *, runtime: Any = None, **arguments: Any) -> ToolMessage:
        with unswallowed():
            return await arun(self._effect, self._journal.bridge, lambda: self._steps(runtime, arguments))

    def _steps(self, runtime: Any, given: dict[str, Any]) -> Steps[ToolMessage]:
        call = self._call(runtime)
        values = {name: as_json(value) for name, value in given.items()}
        if call.named != self.name:
            return call.refused(f"the model called {call.named!r}; an edit may change its arguments and not its tool")
        if (against := self._reviewed(call, values)) is not None:
            return call.refused(against)
        try:
            canonical(values, what="arguments")
            slot = slot_of(self._effect, values, thread_id=call.here.thread_id, step=call.step)
        except ArgumentsNotJson as wrong:
            return call.refused(str(wrong))
        with place(self._journal, call.here, slot.id) as at:
            asked = request(self._effect, slot, at, values)
            with never_asking(f"effect {self.name!r}"):
                return (yield from self._performed(call, asked))

    def _reviewed(self, call: _Call, values: dict[str, Any]) -> str | None:
        """Return what people's decisions have against the call; nothing against one that was claimed, for it was let then."""
        earlier = self.claimed_by(call.here.thread_id, call.message, call.call)
        if earlier and earlier.state != "released":
            return None
        against, allowed = decided(self._journal, call.here, call.message, call.call)
        if against is None and allowed is not None and self._as_given(allowed) != values:
            return "its arguments are not those that were approved"
        return against

    def _as_given(self, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return raw arguments as they come to the tool: validated, and with the defaults."""
        try:
            given = self._parse_input(dict(arguments), None)
        except ValidationError:
            return None
        assert isinstance(given, dict)
        return {name: as_json(value) for name, value in given.items() if name not in OURS}

    def _performed(self, call: _Call, asked: Request) -> Steps[ToolMessage]:
        try:
            record = yield from perform(self._journal.effects, self._effect, asked)
        except Rejected as wrong:
            self._check_free(asked.slot)
            return call.refused(f"the receiver refused the request as wrong: {wrong}")
        except EffectConflict:
            if (why := self._conflict(asked)) is None:
                raise
            return call.refused(why)
        return outcome(record, self.name, call.id, call.step)

    def _check_free(self, slot: Slot) -> None:
        """Make sure that a refusal left nothing behind; after a call that may have happened it proves nothing."""
        left = recorded(self._journal.store, slot)
        if left and left.state in ("claimed", "in_doubt"):
            raise in_doubt(left.key)

    def _conflict(self, asked: Request) -> str | None:
        """Say what is recorded under the business identity; `None` if that is not what the conflict is about: a bug."""
        found = recorded(self._journal.store, asked.slot)
        if asked.slot.identity is None or found is None or found.digest == asked.digest:
            return None
        note_conflict(self._journal.store, asked, found)
        known = f"with the outcome {as_text(found.outcome)}" if found.state == "settled" else "and not settled yet"
        return (
            f"{self.name!r} for {asked.slot.identity!r} is recorded already, with the arguments {as_text(found.arguments)} {known}. "
            "It is executed once; do not try again with other arguments"
        )

    def _call(self, runtime: Any) -> _Call:
        if not isinstance(runtime, ToolRuntime) or not is_kept(runtime.config):
            raise UnguardedEffect(
                f"effect {self.name!r} was called outside a graph that keeps its threads: an agent runs it, compiled with the journal's saver"
            )
        here, call_id = visit(runtime.config), runtime.tool_call_id
        found = find_call(messages_in(runtime.state, self.messages_key), call_id or "")
        if not call_id or found is None or not found[0].id:
            raise GraphRefused(
                f"call {call_id!r} of effect {self.name!r} is in no message that has an id, so nothing tells it from another: "
                f"keep the messages in a channel {self.messages_key!r} with the reducer add_messages"
            )
        return _Call(here, *found)


class _Call:
    """The call under way: where it is made, and by which message."""

    def __init__(self, here: Visit, message: AIMessage, call: ToolCall) -> None:
        self.here, self.message, self.call = here, message, call
        self.id, self.named = str(call["id"]), call["name"]
        self.step = step_of(str(message.id), self.id)

    def refused(self, why: str) -> ToolMessage:
        return refused(self.named, self.id, self.step, why)


def effect_tools(journal: Journal, effects: Iterable[Effect], *, messages_key: str = "messages") -> list[EffectTool]:
    """
    Return *effects* as tools: named like the effect, described by its docstring, with its arguments but without `key`.

    Raises:
        TypeError: one of them is a plain function, takes an argument that a tool cannot have, or has another's name.
    """
    made = []
    for effect in effects:
        if not isinstance(effect, Effect):
            raise TypeError(f"EffectTools takes what @effect made, not {effect!r}")
        made.append(EffectTool(effect, journal, messages_key=messages_key))
    if len({tool.name for tool in made}) < len(made):
        raise TypeError(f"two effects have one name: {', '.join(sorted(tool.name for tool in made))}")
    return made


def is_kept(config: RunnableConfig) -> bool:
    """Tell whether what runs under *config* has a thread."""
    return "thread_id" in config.get("configurable", {})
