"""
What every page works with: who is visiting, the templates, and whether a form is to be believed.

Autoescaping is always on, whatever a template is called; a name that is missing is an error and no empty text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from fastapi import Depends
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from checkpointing import Approval, Journal
from checkpointing.clock import from_ms
from checkpointing.waking import submitters
from graph import DurableGraph
from service.inbox import cookies, csrf, words
from service.inbox.assets import Asset
from service.inbox.guard import MayNot, NotLoggedIn
from service.who.doors import Doors
from service.who.visitor import Role, Visitor
from service.wiring import App

LARGEST_FORM = 256 * 1024
"""The most a form may be, in bytes."""


class FormTooLarge(Exception):
    """Nobody types that much."""


async def read_form(request: Request) -> FormData:
    """
    Return the form that was posted; none of ours has a file.

    Raises:
        FormTooLarge: it is larger than any of ours, or does not say how large it is.
    """
    size = request.headers.get("content-length", "")
    if not size.isdecimal() or int(size) > LARGEST_FORM:
        raise FormTooLarge
    return await request.form(max_files=0, max_fields=500)


Form = Annotated[FormData, Depends(read_form)]


def text(form: Mapping[str, Any], name: str) -> str:
    """Return a field of a form as text; empty where it is missing."""
    given = form.get(name)
    return given if isinstance(given, str) else ""


@dataclass(frozen=True, slots=True)
class Desk:
    """An app's pages: what they read and write, and how they are drawn."""

    app: App
    doors: Doors
    templates: Environment
    assets: Mapping[str, Asset]

    @property
    def journal(self) -> Journal:
        """Where everything is."""
        return self.app.journal

    @property
    def graph(self) -> DurableGraph:
        """The graph that this service carries on."""
        return self.app.graph

    def now(self) -> datetime:
        """Return the journal's time, by which everything expires."""
        return from_ms(self.journal.store.now_ms())

    def visitor(self, request: Request, *roles: Role) -> Visitor:
        """
        Return who is visiting, in one of *roles*, or in any where none is named.

        Raises:
            NotLoggedIn: nobody is.
            NotAuthenticated: what they show does not hold.
            MayNot: they come in another role.
        """
        found = self.doors.visitor(request.headers, session=cookies.session_of(request))
        if found is None:
            raise NotLoggedIn
        if roles and not found.may(*roles):
            raise MayNot(f"This page is for people with the role {' or '.join(roles)}, and you do not have it.")
        return found

    def check(self, request: Request, form: FormData, name: str) -> None:
        """
        Make sure that *form* comes from a page that was made for the person called *name*.

        Raises:
            FormRefused: it does not.
        """
        secret = cookies.form_secret_of(request)
        csrf.check(request.headers, given=text(form, csrf.FIELD), secret=secret, name=name)

    def submitters(self, thread_id: str) -> set[str]:
        """Return who submitted the thread."""
        with self.journal.store.reading() as tx:
            return submitters(tx, thread_id)

    def page(
        self, request: Request, template: str, visitor: Visitor | None = None, *, status: int = 200, **context: Any
    ) -> Response:
        """Return a page, with what all of them show: who is visiting, and where they may go."""
        secret = cookies.form_secret_of(request) or cookies.new_form_secret(request)
        drawn = self.templates.get_template(template).render(
            visitor=visitor,
            csrf=csrf.token(secret, visitor.name if visitor else ""),
            asset=lambda name: f"/static/{name}?v={self.assets[name].version}",
            path=request.url.path,
            **context,
        )
        response = HTMLResponse(drawn, status)
        cookies.keep_form_secret(request, response)
        return response


def environment() -> Environment:
    """Return the templates, with the words that they use."""
    made = Environment(
        loader=PackageLoader("service.inbox"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["words"] = words
    return made


def why_not(approval: Approval, visitor: Visitor, submitted_by: set[str]) -> str:
    """Return why this visitor may not decide the approval, in words for them; empty if they may."""
    person = visitor.person
    if not visitor.may("approver"):
        return "You may look, and not decide: you do not have the role of an approver."
    if person.name in submitted_by:
        return "You submitted this yourself, so somebody else decides."
    if approval.approvers is not None and not person.is_among(approval.approvers):
        return f"This waits for {words.approvers(approval.approvers)}."
    return _beyond(approval, person.limit)


def _beyond(approval: Approval, limit: int | None) -> str:
    """Say that an amount is above somebody's limit; a reject has none, but whoever may not allow it is not asked."""
    if limit is None or (approval.amount is not None and approval.amount <= limit):
        return ""
    most = words.money(limit, words.currency_of(approval.payload))
    return f"You may approve up to {most}, and this is {words.amount_of(approval) or 'without an amount'}."
