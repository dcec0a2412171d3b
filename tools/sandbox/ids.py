"""Ids in the form of the services the sandbox stands in for."""

from __future__ import annotations

import secrets
import string

ALPHABET = string.ascii_letters + string.digits


def new_id(prefix: str, length: int) -> str:
    """Return *prefix* and *length* random letters and digits."""
    return prefix + "".join(secrets.choice(ALPHABET) for _ in range(length))
