"""
The outside world in a process of its own: a payment provider, a mail service, a ticket desk, a chat and the carrier's claims
system.

It keeps its own SQLite file, counts the money that moved, and misbehaves when told to (`/sandbox/faults`). Nothing of it is
imported by the agent: it is reached over a socket, like the services it stands in for.
"""

from tools.sandbox.client import Payment, SandboxControl
from tools.sandbox.process import SandboxProcess
from tools.sandbox.server import serve

__all__ = ["Payment", "SandboxControl", "SandboxProcess", "serve"]
