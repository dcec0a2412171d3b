"""
The topology and one run's life: the durable graph, its four calls, and how a call names a thread and a decision.
"""

from checkpointing.budget import Caps
from graph.asks import answer, approve, edit, reject, thread
from graph.durable import DurableGraph, durable
from nodes.state import DurableState

__all__ = [
    "Caps",
    "DurableGraph",
    "DurableState",
    "answer",
    "approve",
    "durable",
    "edit",
    "reject",
    "thread",
]
