"""
What happens at a step: the node kinds, the claims steps built of them, and effects in LangChain's agents.
"""

from typing import TYPE_CHECKING, Any

from nodes.approval import approval_node
from nodes.effect import effect_node
from nodes.model import model_node
from nodes.state import DurableState

if TYPE_CHECKING:
    from nodes.middleware import EffectTools, effect_tool_node

__all__ = ["DurableState", "EffectTools", "approval_node", "effect_node", "effect_tool_node", "model_node"]


def __getattr__(name: str) -> Any:
    """Import LangChain's agents when they are asked for: they take as long to load as all the rest, and most graphs have none."""
    if name in ("EffectTools", "effect_tool_node"):
        from nodes import middleware  # noqa: PLC0415  # see above

        return getattr(middleware, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
