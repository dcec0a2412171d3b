"""
Caps on a run, as its calls into LangGraph carry them: what an effect's claim is held against, and what stops the run between two supersteps.

    checkpoint of a superstep ── is a cap reached? ──no──▶ the next superstep
                                        └──yes──▶ drain: LangGraph stops before the next superstep ──▶ dead letter, which names the cap

The saver looks in the transaction that writes the checkpoint (`checkpointing/budget.py`). A process that dies between that and the dead letter leaves
a run that is over its cap, and the next start of it says the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphDrained, GraphRecursionError
from langgraph.runtime import RunControl

from checkpointing import Lease
from checkpointing.budget import CAPS, STOP, Caps
from checkpointing.errors import CapReached
from checkpointing.savers import LEASE

Stopper = Callable[[str], None]
"""Stops a run at its next checkpoint, for the reason given."""

PREFIX = "cap_"
LANGGRAPHS_LIMIT = 10_007
"""How many supersteps LangGraph 1.2 takes in one call, where nobody says otherwise."""
TAKING_INPUT = 2
"""What LangGraph counts of a call before its first superstep."""


def controlled(options: dict[str, Any], caps: Caps) -> tuple[dict[str, Any], Stopper]:
    """Return the options of a call with a control that a cap can stop it by, the caller's own if they gave one."""
    if not caps:
        return options, _nobody
    control = options.get("control") or RunControl()
    return {**options, "control": control}, control.request_drain


def within(
    caps: Caps, config: RunnableConfig, lease: Lease, stop: Stopper, *, bound: Mapping[str, Any] | None
) -> RunnableConfig:
    """
    Return *config* with the lease and the caps of the run.

    LangGraph's own limit is one on a call, and many calls make a run: where it is below the cap, and not the caller's word, it gives way to it.
    """
    kept: RunnableConfig = {**config, "configurable": {**config["configurable"], LEASE: lease}}
    if caps:
        kept["configurable"] |= {CAPS: caps, STOP: stop}
    if caps.supersteps is not None and "recursion_limit" not in config:
        limit = (bound or {}).get("recursion_limit", LANGGRAPHS_LIMIT)
        kept["recursion_limit"] = max(limit, caps.supersteps + TAKING_INPUT)
    return kept


def drained_by(error: BaseException, thread_id: str, look: Callable[[], CapReached | None]) -> CapReached | None:
    """Return the cap that drained the run, as *look* finds it now, or `None` if it was drained by somebody else, or not at all."""
    if not isinstance(error, GraphDrained) or not error.reason.startswith(PREFIX):
        return None
    return look() or CapReached(
        f"thread {thread_id!r} reached {error.reason}", reason=error.reason, thread_id=thread_id
    )


def why_dead(error: BaseException) -> str:
    """Return the reason of a run that dies of *error* at once: its class in words, `EffectConflict` is `effect_conflict`."""
    if isinstance(error, GraphRecursionError):
        return "recursion_limit"
    name = type(error).__name__
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name))


def _nobody(_reason: str) -> None:
    """Stop nothing: no cap can be reached."""
