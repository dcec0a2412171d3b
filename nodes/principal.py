"""
Who is acting: from authentication, never from a body.
"""

from __future__ import annotations

from langchain_core.runnables import RunnableConfig

PRINCIPAL = "__counterfoil_principal"
"""Where `thread(id, principal=...)` puts it; LangGraph stores no key that begins with two underscores."""


def principal_of(config: RunnableConfig) -> str | None:
    """Return the authenticated principal of this call, or `None`."""
    who = config.get("configurable", {}).get(PRINCIPAL)
    return str(who) if who else None
