"""
Who is at the door: authenticated by a token, a session, a proxy's header or an identity provider, and what they may do.
"""

from service.who.doors import Doors
from service.who.places import place_of
from service.who.refusals import KeysUnreachable, NotAuthenticated, TooManyLogins
from service.who.visitor import ROLES, Role, Visitor

__all__ = ["ROLES", "Doors", "KeysUnreachable", "NotAuthenticated", "Role", "TooManyLogins", "Visitor", "place_of"]
