"""
Who is acting: a name that the record can keep, the groups they are in, and how much they may approve.

An approver is written as a name, or as `group:NAME` for whoever is in that group. Nobody is called `group:…`, so nobody passes for a group.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from dataclasses import dataclass

from checkpointing.errors import NotAllowed
from checkpointing.text import storable

GROUP = "group:"


@dataclass(frozen=True, slots=True)
class Person:
    """
    Somebody whom authentication has named.

    Attributes:
        groups: What they belong to, as authentication says.
        limit: The largest amount they may approve, in minor units; `None` for any.
    """

    name: str
    groups: frozenset[str] = frozenset()
    limit: int | None = None

    def is_among(self, approvers: Collection[str]) -> bool:
        """Tell whether one of the *approvers* is this person or a group they are in."""
        return self.name in approvers or any(f"{GROUP}{group}" in approvers for group in self.groups)


Principal = str | Person
"""A person, or just a name: somebody in no group and without a limit."""


def person(principal: Principal | None, asks: str) -> Person:
    """
    Return who *principal* is; *asks* says what needs one.

    Raises:
        NotAllowed: as `named`.
    """
    if isinstance(principal, Person):
        named(principal.name, asks)
        return principal
    return Person(named(principal, asks))


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
    if unicodedata.normalize("NFKC", principal.strip()) != principal:
        # Who looks like two people counts as two: for a quorum, or beside a claim of their own.
        raise NotAllowed(
            f"a principal is a name without blanks around it and in one form of Unicode (NFKC), not {principal!r}"
        )
    if principal.startswith(GROUP):
        raise NotAllowed(f"nobody is called {principal!r}: names that begin with {GROUP!r} are those of groups")
    return principal
