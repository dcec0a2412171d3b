"""
The doors: by what somebody may come in, and who they are once they are in.

    Authorization: Bearer cft_…     a token of ours                  ─┐
    the cookie                      a session that began with one    ─┴─▶ one visitor, or nobody, or a refusal

Whatever is shown counts, and one that does not hold refuses the request, whatever else is shown; so do two that name different people. Only a
cookie that is over is as good as none: browsers send it until they are told otherwise. Nothing in a body or a query is ever looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from checkpointing import Journal
from service.who.refusals import NotAuthenticated
from service.who.visitor import ROLES, Role, Visitor

AUTHORIZATION = "authorization"


class Doors:
    """Everything by which somebody may come in."""

    def __init__(self, journal: Journal) -> None:
        """Let in by the tokens and sessions of *journal*."""
        self.journal = journal

    def visitor(self, headers: Mapping[str, str], *, session: str | None = None) -> Visitor | None:
        """
        Return who sent a request; `None` if it shows nothing that names anybody.

        Args:
            headers: the request's; names in any case, a name that stands there twice as `items()` yields it.
            session: the cookie's value, `None` if there was none.

        Raises:
            NotAuthenticated: what it shows does not hold, or names two people.
            StoreUnreachable: the journal is away; nobody knows.
        """
        bearer = _one(headers, AUTHORIZATION)
        shown = (
            None if bearer is None else self._bearer(bearer),
            None if session is None else self._session(session),
        )
        return _agreed([one for one in shown if one is not None])

    def by_token(self, secret: str) -> Visitor:
        """
        Return whom a token of ours lets in, for the page of the login.

        Raises:
            NotAuthenticated: nobody.
        """
        token = self.journal.tokens.find(secret)
        if token is None:
            raise NotAuthenticated("this token is unknown, revoked or expired; counterfoil token add makes another")
        return Visitor(token.person, known_roles(token.roles), "token")

    def _bearer(self, authorization: str) -> Visitor:
        scheme, _, secret = authorization.strip().partition(" ")
        if scheme.lower() != "bearer" or not secret.strip():
            raise NotAuthenticated(
                "the header Authorization holds no bearer token; it is `Bearer`, a blank and the token"
            )
        return self.by_token(secret.strip())

    def _session(self, secret: str) -> Visitor | None:
        session = self.journal.sessions.find(secret)
        return None if session is None else Visitor(session.person, known_roles(session.roles), "session")


def known_roles(names: Iterable[str]) -> frozenset[Role]:
    """Return those that are roles here; an identity provider has others too, and they open nothing."""
    given = frozenset(names)
    return frozenset(role for role in ROLES if role in given)


def _one(headers: Mapping[str, str], name: str) -> str | None:
    """Return the header's value; where it stands twice, one of them may be somebody else's."""
    values = {value for key, value in headers.items() if key.lower() == name}
    if len(values) > 1:
        raise NotAuthenticated(f"the header {name} stands there twice")
    return next(iter(values), None)


def _agreed(shown: list[Visitor]) -> Visitor | None:
    """Return the first, which is what was shown for this one request; all of them have to be the same person."""
    if len({one.name for one in shown}) > 1:
        raise NotAuthenticated(
            f"the request shows two different people, by {' and by '.join(one.how for one in shown)}"
        )
    return shown[0] if shown else None
