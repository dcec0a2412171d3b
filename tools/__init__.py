"""
What touches the world: declaring an effect and its receiver, and the clients of the claims agent.

Never imports langgraph. An effect is declared here and placed in a graph by `nodes.effect_node`.
"""

from checkpointing.budget import Spend
from checkpointing.errors import Declined, KeyInUse, KeyMismatch, Rejected, Unreachable
from tools.effect import Effect, effect
from tools.executed import Executed
from tools.receiver import Receiver
from tools.reissuing import reissue

__all__ = [
    "Declined",
    "Effect",
    "Executed",
    "KeyInUse",
    "KeyMismatch",
    "Receiver",
    "Rejected",
    "Spend",
    "Unreachable",
    "effect",
    "reissue",
]
