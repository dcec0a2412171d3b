"""
Declaring an effect: a call that changes the world, with its receiver's profile and its identity.

    @effect(receiver=STRIPE, name="pay", once=lambda arguments: arguments["claim_id"])
    def pay(*, claim_id: str, amount: int, key: str) -> dict: ...

An `Effect` cannot be called: `pay(...)` raises `UnguardedEffect`. Only `tools.perform` calls it, under a claim in the ledger.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NoReturn, Protocol

from checkpointing.budget import Spend
from checkpointing.errors import UnguardedEffect
from tools.executed import Executed
from tools.receiver import Receiver

NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
ToolFunction = Callable[..., Any]
"""A sync or async function that takes keywords only and returns JSON; `tools.perform` checks what it returned."""


class Listing(Protocol):
    """What a receiver executed, page by page."""

    def __call__(self, *, since: datetime | None) -> Iterator[Executed]:
        """Yield what was executed since then, or ever, in the receiver's order; `Unreachable` ends it."""
        ...


class Retrieval(Protocol):
    """One execution by the receiver's own id."""

    def __call__(self, *, executed_id: str) -> Executed | None:
        """Return it, or `None` if the receiver has no such one; `Unreachable` if it does not say."""
        ...


@dataclass(slots=True)
class Effect:
    """
    A declared effect; made by `effect`, placed in a graph by `nodes.effect_node`.

    Attributes:
        name: What the ledger calls it; part of every key, so renaming it makes new effects of old ones.
        receiver: The profile that decides how doubt is resolved.
        function: The tool itself. `tools.perform` alone calls it.
        once: The business identity of a call, from its arguments; the slot is then global for this effect.
        volatile: Arguments that do not take part in the digest (a trace id, say).
        cost: What one call costs in minor units, from its arguments; reserved with the claim, and what it came to unless `spent` says otherwise.
        tokens: What one call may use of a model's tokens, from its arguments; reserved with the claim.
        spent: What a call came to, from its arguments and its outcome (what the tool returned, or `{"declined": message}`).
        find: What the receiver knows of a key, or `None`: the look-up, where it has one.
        executed: What the receiver executed, where it has a list; reconciliation compares it with the ledger.
        retrieve: One execution by its id, where the receiver tells.
    """

    name: str
    receiver: Receiver
    function: ToolFunction
    once: Callable[[Mapping[str, Any]], str | int] | None = None
    volatile: frozenset[str] = frozenset()
    cost: Callable[[Mapping[str, Any]], int] | None = None
    find: ToolFunction | None = field(default=None)
    executed: Listing | None = field(default=None)
    retrieve: Retrieval | None = field(default=None)
    tokens: Callable[[Mapping[str, Any]], int] | None = None
    spent: Callable[[Mapping[str, Any], Any], Spend] | None = None

    def __call__(self, *_args: object, **_arguments: object) -> NoReturn:
        """Refuse: a direct call has no claim, so a crash in it could not be told from one that never began."""
        raise UnguardedEffect(
            f"{self.name!r} is an effect and cannot be called directly: "
            "put it into a node with effect_node() or into an agent with EffectTools(), which claim it in the ledger first"
        )

    @property
    def __name__(self) -> str:
        """Refuse: whoever asks a callable for its name (LangChain's `tool`, `add_node`) is about to call it as a plain function."""
        raise UnguardedEffect(
            f"{self.name!r} is an effect and no plain function: give it to effect_node(), or to an agent by EffectTools()"
        )

    def lookup(self, function: ToolFunction) -> ToolFunction:
        """
        Declare *function* as this effect's look-up; use it as a decorator.

        It gets the same keywords as the tool, `key` among them, and returns what the tool would have returned for the
        call with that key, or `None` if the receiver knows of none. One that names the keyword `claimed_at` gets the time of the
        claim, an aware datetime by the journal's clock: no call that is in doubt was made before.
        """
        self.find = function
        return function

    def listing(self, function: Listing) -> Listing:
        """
        Declare *function* as the list of what the receiver executed; use it as a decorator.

        It gets `since` and yields `Executed`, lazily, so that nobody has to hold the whole list. It raises `Unreachable` rather than
        end early: what is not in a list that ended counts as not executed.
        """
        self.executed = function
        return function

    def retrieval(self, function: Retrieval) -> Retrieval:
        """
        Declare *function* as the way to one execution by the receiver's own id; use it as a decorator.

        It gets `executed_id` and returns an `Executed`, or `None` if there is none. It is asked before anything is called missing.
        """
        self.retrieve = function
        return function

    @property
    def takes_key(self) -> bool:
        """Whether the tool wants the key; one that is harmless to repeat need not."""
        return _takes(self.function, "key")

    @property
    def asks_claimed_at(self) -> bool:
        """Whether the look-up names `claimed_at`, the time before which there was no call."""
        return self.find is not None and "claimed_at" in inspect.signature(self.find).parameters


def effect(
    *,
    receiver: Receiver,
    name: str | None = None,
    once: Callable[[Mapping[str, Any]], str | int] | None = None,
    volatile: Collection[str] = (),
    cost: Callable[[Mapping[str, Any]], int] | None = None,
    tokens: Callable[[Mapping[str, Any]], int] | None = None,
    spent: Callable[[Mapping[str, Any], Any], Spend] | None = None,
) -> Callable[[ToolFunction], Effect]:
    """
    Declare the decorated function as an effect.

    The function takes keywords only, `key` among them, and returns JSON. It says what happened by raising `Declined`,
    `Rejected`, `Unreachable`, `KeyInUse` or `KeyMismatch`; any other error means that nobody knows, and the claim stays.

    Raises:
        ValueError: a name that could not be told from its neighbours in a key.
        TypeError: the function does not take `key` although its receiver honours keys or a repeat would do harm.
    """

    def declare(function: ToolFunction) -> Effect:
        called = name or str(getattr(function, "__name__", ""))
        if not NAME.fullmatch(called):
            raise ValueError(
                f"an effect's name is of letters, digits, '_', '.' and '-', not {called!r}: it is part of every key"
            )
        declared = Effect(
            name=called,
            receiver=receiver,
            function=function,
            once=once,
            volatile=frozenset(volatile),
            cost=cost,
            tokens=tokens,
            spent=spent,
        )
        if (receiver.honours_keys or not receiver.repeatable) and not declared.takes_key:
            raise TypeError(
                f"effect {declared.name!r} must take the keyword `key`: it goes to the receiver with the call"
            )
        return declared

    return declare


def _takes(function: ToolFunction, keyword: str) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return any(p.name == keyword or p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
