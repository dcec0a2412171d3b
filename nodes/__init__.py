"""
What happens at a step: the node kinds, and the claims steps built of them.
"""

from nodes.approval import approval_node
from nodes.effect import effect_node
from nodes.middleware import EffectTools, effect_tool_node
from nodes.model import model_node
from nodes.state import DurableState

__all__ = ["DurableState", "EffectTools", "approval_node", "effect_node", "effect_tool_node", "model_node"]
