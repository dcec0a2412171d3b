"""
What `langgraph.json` names: the claims graph for an Agent Server, and who may use it.

The settings are read when the server imports this module, so a wrong one stops the start. The journal is opened at the first use.
"""

from __future__ import annotations

from graph.accepting import Compiled
from service.agent_server import AgentServer
from service.door import make_auth
from service.settings import load_settings

server = AgentServer(load_settings())
auth = make_auth(server)


async def claims() -> Compiled:
    """Return the claims graph without a checkpointer; the server gives it its own."""
    return (await server.opened()).graph
