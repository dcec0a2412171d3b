"""
Who is acting: from authentication, never from a body.

    in Python            `thread(id, principal=...)`: a `Principal` in the config, which no JSON can make
    on an Agent Server   the user whom the server authenticated; the server strips what a client puts in that place
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig

from checkpointing.errors import NotAllowed
from checkpointing.principals import Person

PRINCIPAL = "__counterfoil_principal"
"""Where `thread(id, principal=...)` puts it; LangGraph stores no key that begins with two underscores."""
SERVER_USER = "langgraph_auth_user"
"""Where an Agent Server puts the user of a request (langgraph-api 0.16); `None` where it authenticates nobody."""
STUDIO = "StudioUser"
"""The class, and once stored the kind, of the user that Studio comes as: a browser that showed no token of ours."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody named by the Python caller."""

    person: Person


def principal_of(config: RunnableConfig) -> Person | None:
    """
    Return the authenticated principal of this call, or `None`.

    Raises:
        NotAllowed: a client put a name where only Python puts one.
    """
    configurable = config.get("configurable", {})
    given = configurable.get(PRINCIPAL)
    if given is None:
        identity = identity_of(configurable.get(SERVER_USER))
        return None if identity is None else Person(identity)
    if not isinstance(given, Principal):
        raise NotAllowed("a client does not say who it is: the principal comes from authentication")
    return given.person


def identity_of(user: Any) -> str | None:
    """Return who an Agent Server's user is; nobody where it authenticates nobody, and Studio's user is nobody too."""
    identity = _read(user, "identity")
    return str(identity) if identity and STUDIO not in (_read(user, "kind"), type(user).__name__) else None


def _read(user: Any, name: str) -> Any:
    return user.get(name) if isinstance(user, Mapping) else getattr(user, name, None)
