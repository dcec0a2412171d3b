"""
Somebody who was authenticated: who they are, and in which roles they come.

    submitter   hands claims in, and sees the runs they handed in
    approver    sees what waits for a decision, and decides up to their limit
    operator    sees everything that runs, and does what the command line does: resume, redrive, discard, resolve, extend, reassign
    auditor     sees everything, the audit too, and changes nothing

A role opens doors of the service; whom an approval takes is said by the approval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from checkpointing.principals import Person

Role = Literal["submitter", "approver", "operator", "auditor"]
ROLES: tuple[Role, ...] = get_args(Role)
How = Literal["token", "session", "proxy", "oidc"]


@dataclass(frozen=True, slots=True)
class Visitor:
    """
    An authenticated principal.

    Attributes:
        person: The principal, with groups and limit; what is recorded as theirs.
        roles: What they may do here.
        how: By what they were authenticated.
    """

    person: Person
    roles: frozenset[Role]
    how: How

    @property
    def name(self) -> str:
        """The principal's name."""
        return self.person.name

    def may(self, *roles: Role) -> bool:
        """Tell whether they come in one of *roles*."""
        return not self.roles.isdisjoint(roles)

    @property
    def unasked(self) -> bool:
        """Whether a browser sends by itself what they came in by, from other sites' pages too: then a change takes proof that they meant it."""
        return self.how in ("session", "proxy")
