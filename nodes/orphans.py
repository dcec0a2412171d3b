"""
Tool calls that nothing answered, answered with what the ledger knows.

New input may come while a run is parked, or after one was killed between a tool and its message; the conversation then has a call without an answer.
Providers refuse such a conversation, and a guess would be worse: told that it failed, a model pays again.

    settled                  the recorded outcome
    claimed, or in doubt     that it is not known whether it happened
    released, never claimed  that it was not executed
    another tool's           that no result is recorded
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile

from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage

from checkpointing import EffectRecord
from checkpointing.digest import JSON
from checkpointing.doubts import in_doubt
from checkpointing.errors import EffectBusy, EffectUnsettled, UnguardedEffect
from nodes.tool_calls import answer, mark_of, outcome, refused, step_of

Look = Callable[[AIMessage, ToolCall], EffectRecord | None]
"""What the ledger has recorded of an effect's call."""
ByKey = Callable[[str], EffectRecord | None]
"""What the ledger has now of the effect that had this key, reissued or not."""
AtWork = Callable[[EffectRecord], bool]
"""Whether somebody executes an effect right now, apart from its thread's run."""


def answered(messages: Sequence[AnyMessage], effects: frozenset[str], look: Look) -> list[AnyMessage]:
    """Return the conversation with an answer to every call, each right after the message that makes it; nothing else is changed."""
    found = list(messages)
    # From the end, so that what is inserted moves nothing that is still to be looked at.
    for at, message in reversed(list(enumerate(messages))):
        if isinstance(message, AIMessage) and message.tool_calls:
            told = {one.tool_call_id for one in _answers(messages, at)}
            missing = [call for call in message.tool_calls if call["id"] and call["id"] not in told]
            behind = at + 1 + sum(1 for _ in takewhile(lambda one: isinstance(one, ToolMessage), messages[at + 1 :]))
            found[behind:behind] = [_known(message, call, effects, look) for call in missing]
    return found


def truthful(
    messages: Sequence[AnyMessage], effects: frozenset[str], look: Look, by_key: ByKey, at_work: AtWork
) -> list[AnyMessage]:
    """
    Return the conversation without an answer that the ledger contradicts: an error that somebody made of an effect which happened, or a
    decline that was reissued.

    Raises:
        EffectBusy: a call that failed is being tried again right now.
        EffectUnsettled: whoever tried it again is gone, and nobody knows what came of it.
        EffectInDoubt, UnguardedEffect: the model would be told that a call failed of which nobody knows whether it happened.
    """
    found = list(messages)
    for at, message in enumerate(messages):
        if isinstance(message, AIMessage):
            calls = {call["id"]: call for call in message.tool_calls if call["name"] in effects}
            for number, told in enumerate(messages[at + 1 :], at + 1):
                if isinstance(told, AIMessage):
                    break
                if isinstance(told, ToolMessage) and told.tool_call_id in calls and told.status == "error":
                    record = _recorded_of(told, message, calls[told.tool_call_id], look, by_key)
                    found[number] = _corrected(told, message, record, at_work) if record else told
    return found


def _answers(messages: Sequence[AnyMessage], at: int) -> Iterator[ToolMessage]:
    """Yield the answers to the message at *at*: call ids repeat, so they stand before the next message of the model."""
    for message in messages[at + 1 :]:
        if isinstance(message, AIMessage):
            return
        if isinstance(message, ToolMessage):
            yield message


def _known(message: AIMessage, call: ToolCall, effects: frozenset[str], look: Look) -> ToolMessage:
    call_id, step = str(call["id"]), step_of(str(message.id), str(call["id"]))
    if call["name"] not in effects:
        return answer(call["name"], call_id, step, "No result of this call is recorded.", error=True, mark=None)
    record = look(message, call)
    if record is None or record.state == "released":
        return refused(call["name"], call_id, step, "the conversation went on before it was.")
    if record.state == "settled":
        return outcome(record, call["name"], call_id, step)
    mark: dict[str, JSON] = {"key": record.key, "state": record.state}
    unknown = (
        f"It is not known whether this happened (effect {record.key!r}). Do not call it again: a person finds out."
    )
    return answer(call["name"], call_id, step, unknown, error=True, mark=mark)


def _recorded_of(
    told: ToolMessage, message: AIMessage, call: ToolCall, look: Look, by_key: ByKey
) -> EffectRecord | None:
    """Return what the ledger has now of the effect that *told* is about; `None` where that is nothing, or what was told."""
    mark = mark_of(told)
    record = by_key(str(mark["key"])) if "key" in mark else look(message, call)
    if record is None or (mark.get("key"), mark.get("state")) == (record.key, record.state):
        return None
    return record


def _corrected(told: ToolMessage, message: AIMessage, record: EffectRecord, at_work: AtWork) -> ToolMessage:
    if record.state == "settled":
        true = outcome(record, record.effect, told.tool_call_id, step_of(str(message.id), told.tool_call_id))
        return true.model_copy(update={"id": told.id})
    if mark_of(told).get("state") in ("claimed", "in_doubt"):
        return told  # it says that nobody knows
    # Before the state: a reissue frees the slot first and claims it then.
    if at_work(record):
        raise EffectBusy(
            f"effect {record.key!r} is being tried again by another process; its outcome will be in the ledger"
        )
    if record.state == "released":
        return told
    if record.state == "in_doubt":
        raise in_doubt(record.key)
    if record.generation > 1:
        raise EffectUnsettled(
            f"effect {record.key!r} was being tried again, and its process is gone: reissue it once more by this key, or find out and "
            f"counterfoil effects resolve {record.key!r}; advancing the run then goes on"
        )
    raise UnguardedEffect(
        f"effect {record.key!r} is not settled, and the model would be told that it failed: a handler around its tool made a message of its "
        "error, or the tool's arguments are others since it was claimed. Mend that; find out, counterfoil effects resolve, then redrive"
    )
