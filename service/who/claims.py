"""
What the claims of an assertion say of somebody: their name, their roles, their groups, and up to which amount they may approve.

A claim that is there and is not what it must be refuses the assertion: to read it as none would give somebody another limit or another name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from checkpointing.budget import LARGEST
from checkpointing.errors import NotAllowed
from checkpointing.principals import Person, named
from service.who.refusals import NotAuthenticated
from service.who.visitor import ROLES, How, Role, Visitor

LONGEST_NAME = 255


@dataclass(frozen=True, slots=True)
class ClaimNames:
    """
    Which claims say what. `a.b` is the claim `b` in the claim `a`, unless there is one that is called `a.b`.

    Attributes:
        limit: An amount in minor units; `None`: nobody has a limit. Somebody of whom it is not said may approve nothing.
    """

    name: str = "sub"
    roles: str = "roles"
    groups: str = "groups"
    limit: str | None = None


def visitor_of(claims: Mapping[str, Any], names: ClaimNames, how: How) -> Visitor:
    """
    Return whom verified *claims* name.

    Raises:
        NotAuthenticated: they name nobody, or one of them is not what it must be.
    """
    person = Person(_name(claims, names.name), frozenset(_texts(claims, names.groups)), _limit(claims, names.limit))
    return Visitor(person, known_roles(_texts(claims, names.roles)), how)


def known_roles(names: Iterable[str]) -> frozenset[Role]:
    """Return those that are roles here; an identity provider has others too, and they open nothing."""
    given = frozenset(names)
    return frozenset(role for role in ROLES if role in given)


def _name(claims: Mapping[str, Any], claim: str) -> str:
    given = _found(claims, claim)
    if not isinstance(given, str) or not given.isprintable() or len(given) > LONGEST_NAME:
        raise _not(claim, "a name of printable text")
    if claim == "email" and claims.get("email_verified") is not True:
        raise _not("email_verified", "true, and an address that nobody verified is nobody's name")
    try:
        return named(given, "")
    except NotAllowed:
        raise _not(claim, "a name that somebody can have") from None


def _texts(claims: Mapping[str, Any], claim: str) -> list[str]:
    """Return a list of texts; one text is taken apart at its blanks, as OAuth's `scope` is."""
    given = _found(claims, claim)
    if given is None:
        return []
    if isinstance(given, str):
        return given.split()
    if not isinstance(given, list) or not all(isinstance(one, str) and one.isprintable() for one in given):
        raise _not(claim, "a list of texts")
    return given


def _limit(claims: Mapping[str, Any], claim: str | None) -> int | None:
    if claim is None:
        return None
    given = _found(claims, claim)
    if given is None:
        return 0
    if not isinstance(given, int) or isinstance(given, bool) or not 0 <= given < LARGEST:
        raise _not(claim, "a whole number, an amount in minor units")
    return given


def _found(claims: Mapping[str, Any], claim: str) -> Any:
    if claim in claims:
        return claims[claim]
    found: Any = claims
    for part in claim.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _not(claim: str, wanted: str) -> NotAuthenticated:
    return NotAuthenticated(f"this assertion lets nobody in: its claim {claim!r} is not {wanted}")
