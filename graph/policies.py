"""
What an agent's `HumanInTheLoopMiddleware` is told to ask about, checked before the first run.

The middleware looks a tool's policy up by the name that the model calls, and reads of the policy what it knows: under a misspelt name, or with a
misspelt option, it asks nobody, and the tool runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, get_args

from langchain.agents.middleware import HumanInTheLoopMiddleware, InterruptOnConfig
from langchain.agents.middleware.human_in_the_loop import DecisionType
from langgraph.graph import StateGraph

from checkpointing.errors import GraphRefused

OPTIONS = sorted(InterruptOnConfig.__annotations__)
KINDS = get_args(DecisionType)


def check_policies(builder: StateGraph[Any, Any, Any, Any], tools: Collection[str], where: str) -> None:
    """
    Refuse an agent with a policy that would not be kept; *tools* are the names of those it has, *where* is what it is called in the message.

    Raises:
        GraphRefused: the message names the tool or the option, and what there is.
    """
    for review in _reviews(builder):
        for name, policy in review.interrupt_on.items():
            what = f"{where}: the policy of {type(review).__name__} for tool {name!r}"
            if name not in tools:
                raise GraphRefused(f"{what} is for no tool of the agent's, which has {_listed(tools)}")
            _check_policy(policy, what)


def _check_policy(policy: Mapping[str, Any], what: str) -> None:
    if unknown := sorted(policy.keys() - set(OPTIONS)):
        raise GraphRefused(f"{what} has {_listed(unknown)}, and there is {_listed(OPTIONS)}")
    allowed = policy["allowed_decisions"]
    if not isinstance(allowed, list | tuple):
        raise GraphRefused(f"{what}: allowed_decisions is a list of {_listed(KINDS)}, not {allowed!r}")
    if strange := [kind for kind in allowed if kind not in KINDS]:
        raise GraphRefused(f"{what} allows {_listed(strange)}, and there is {_listed(KINDS)}")
    if policy.get("when") is not None and not callable(policy["when"]):
        raise GraphRefused(f"{what}: when is a function of the request, not {policy['when']!r}")


def _reviews(builder: StateGraph[Any, Any, Any, Any]) -> Iterator[HumanInTheLoopMiddleware[Any, Any, Any]]:
    """Yield the middlewares: in either mode, each is a node of the agent's graph by its own method `after_model`."""
    for spec in builder.nodes.values():
        for function in (getattr(spec.runnable, "func", None), getattr(spec.runnable, "afunc", None)):
            owner = getattr(function, "__self__", None)
            if isinstance(owner, HumanInTheLoopMiddleware):
                yield owner
                break


def _listed(names: Collection[Any]) -> str:
    return ", ".join(sorted(map(repr, names))) or "none"
