"""
Who is acting, as a name that the record can keep.
"""

from __future__ import annotations

from checkpointing.errors import NotAllowed
from checkpointing.text import storable


def named(principal: object, asks: str) -> str:
    """
    Return *principal*, which is a name; *asks* says what needs one.

    Raises:
        NotAllowed: nobody was named, or what was given is no name: a number, blanks, or text that cannot be stored.
    """
    if principal is None or principal == "":
        raise NotAllowed(asks)
    # A caller may hand on a user's number, whatever the type says; a chain of the audit would not be the same when it is read again.
    if not isinstance(principal, str) or not principal.strip() or storable(principal) != principal:
        raise NotAllowed(f"a principal is a name, as text, not {principal!r}")
    return principal
