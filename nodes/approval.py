"""
The approval node: it asks, parks, and runs again from its first line on every resume, and none of that can approve anything.

The approval's row is the truth. The node opens it (asking the same again finds the same row), and while it is undecided calls `interrupt()`, whatever
that returned before; a value is a decision only if it names this very row. When the row is decided the node returns the record. A crash before the
decision leaves the question open, one after it leaves a decided row that the next run of the node reads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.types import interrupt

from checkpointing import Approval, Journal
from checkpointing.decisions import AT_EXPIRY, KINDS
from checkpointing.errors import GraphRefused
from checkpointing.questions import Question
from checkpointing.tiers import Tier, check_ladder
from nodes.principal import principal_of
from nodes.state import read_channel
from nodes.visit import visit

State = Mapping[str, Any]

NO_CHANNEL = "needs the channel `approvals`: derive the state from DurableState"


class ApprovalNode(RunnableLambda[Any, Any]):
    """What `approval_node` makes; `durable()` finds the approvals of a graph by it."""


def approval_node(
    name: str,
    journal: Journal,
    *,
    payload: Callable[[State], Mapping[str, Any]],
    allowed: Collection[str] = ("approve", "reject"),
    ttl: timedelta | None = None,
    remind: timedelta | None = None,
    on_expiry: str = "reject",
    approvers: Collection[str] | Callable[[State], Collection[str] | None] | None = None,
    quorum: int = 1,
    tiers: Sequence[Tier] = (),
    amount: str | None = None,
    four_eyes: bool = False,
    about: Callable[[State], Mapping[str, Any]] | None = None,
    edits: Mapping[str, Any] | Callable[[State], Mapping[str, Any]] | None = None,
    into: str | None = None,
) -> ApprovalNode:
    """
    Make the node that asks for an approval.

    Args:
        name: what the approval is called, in `state["approvals"]` and in `effect_node(approval=...)`; one node a name.
        journal: where the question and its decision are kept.
        payload: exactly what is to be approved, from the state, as JSON.
        allowed: the kinds of decision taken: approve, edit, reject, respond.
        ttl: how long the question stands; by default for ever.
        remind: how long before the end of `ttl` the approvers are reminded.
        on_expiry: what its end counts as: reject, approve, or hand_over, which the graph routes to people who take the matter over.
        approvers: who may decide, names and `group:NAME`, or a function of the state that returns them; by default any principal but the
            submitter.
        quorum: how many of them have to say the same.
        tiers: a ladder in place of `ttl`, `remind`, `approvers` and `quorum`: the question begins with the first tier that may approve its
            amount, and is asked of the next one when that tier's time is over.
        amount: the payload's key that has the amount, in minor units, for the limits of tiers and of approvers.
        four_eyes: an edited payload takes a second person who wants exactly the same.
        about: what is shown beside the payload and binds nothing, from the state: `title`, `why`, `said`, `facts`, `documents`
            (`docs/approvals.md`).
        edits: a JSON Schema that an edited payload must fit, or a function of the state that returns it. An edit keeps the payload's keys
            and the kinds of its values in any case.
        into: a state key that gets the decided record too.

    Raises:
        ValueError: a kind of decision that does not exist, or a ladder that has no end.
    """
    _check_kinds(name, allowed, on_expiry)
    if tiers and (ttl, remind, approvers, quorum) != (None, None, None, 1):
        raise ValueError(f"approval {name!r}: with tiers, each says its own ttl, remind, approvers and quorum")
    try:
        check_ladder(
            tiers or [Tier("the only one", ttl=ttl, remind=remind, quorum=quorum)], has_amount=amount is not None
        )
    except ValueError as error:
        raise ValueError(f"approval {name!r}: {error}") from error

    if edits is not None and not callable(edits):
        _checked(name, edits)

    def question(state: State, config: RunnableConfig) -> Question:
        here = visit(config)
        records = read_channel(config, "approvals")
        if records is None or here.send is not None:
            raise GraphRefused(
                f"approval {name!r} in node {here.node!r} "
                + ("is sent to: ask in a node of its own" if here.send is not None else NO_CHANNEL)
            )
        before = records.get(name)
        who = approvers(state) if callable(approvers) else approvers
        fits = _checked(name, edits(state)) if callable(edits) else edits
        return Question(
            thread_id=here.thread_id,
            node=here.node,
            name=name,
            visit=before["visit"] + 1 if before else 0,
            payload=dict(payload(state)),
            allowed=tuple(allowed),
            approvers=None if who is None else tuple(who),
            edits=None if fits is None else dict(fits),
            ttl=ttl,
            on_expiry=on_expiry,
            tiers=tuple(tiers),
            amount_in=amount,
            four_eyes=four_eyes,
            quorum=quorum,
            remind=remind,
            about=None if about is None else dict(about(state)),
        )

    def run(state: State, config: RunnableConfig) -> dict[str, Any]:
        asked = question(state, config)
        journal.approvals.apply_due(asked.thread_id)
        here = visit(config)
        approval = journal.approvals.open(asked, place=here.place(journal, here.lease))
        while approval.state == "pending":
            answer = interrupt(approval.request())
            approval = _taken(journal, approval, answer, config)
        record = approval.record()
        return {"approvals": {name: record}, **({into: record} if into else {})}

    async def arun(state: State, config: RunnableConfig) -> dict[str, Any]:
        return await journal.bridge.run(run, state, config)

    return ApprovalNode(run, arun, name=name)


def _check_kinds(name: str, allowed: Collection[str], on_expiry: str) -> None:
    if unknown := (set(allowed) - set(KINDS)):
        raise ValueError(
            f"approval {name!r}: there is no decision {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}"
        )
    if on_expiry not in AT_EXPIRY:
        raise ValueError(f"approval {name!r}: on_expiry is {', '.join(AT_EXPIRY)}, not {on_expiry!r}")


def _checked(name: str, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return *schema*, which is one: a wrong one would refuse every edit, and be noticed at the first."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise GraphRefused(
            f"approval {name!r}: `edits` is no JSON Schema at {error.json_path}: {error.message}"
        ) from error
    return schema


def _taken(journal: Journal, approval: Approval, answer: object, config: RunnableConfig) -> Approval:
    """Record *answer* if it is a decision on this very approval; anything else is somebody's answer to something else."""
    if isinstance(answer, Mapping) and answer.get("approval") == approval.id:
        return journal.approvals.decide(approval.id, answer, principal=principal_of(config))
    return journal.approvals.get(approval.id)
