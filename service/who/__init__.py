"""
Who is at the door: authenticated by a token, a session, a proxy's header or an identity provider, and what they may do.
"""

from service.who.visitor import ROLES, Role, Visitor

__all__ = ["ROLES", "Role", "Visitor"]
