"""
The pages over a journal, without a browser: a small graph that asks, and people who fetch pages and post forms as a browser would.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from langgraph.graph import END, START, StateGraph
from pydantic import SecretStr
from starlette.testclient import TestClient

from checkpointing import Approval, Journal
from graph import DurableGraph, DurableState, durable, thread
from nodes import approval_node, effect_node
from service.http.app import make_app
from service.inbox import pages
from service.settings import Settings
from service.who.doors import Doors
from service.wiring import App, outside_of
from tests.support.bank import Bank

HERE = "http://127.0.0.1:8000"
EDITS = {
    "properties": {
        "claim_id": {"const": "0042"},
        "amount": {"type": "integer", "minimum": 1, "maximum": 1_000_000},
        "currency": {"const": "EUR"},
        "speed": {"enum": ["now", "later"]},
        "note": {"maxLength": 40},
    }
}
CSRF = re.compile(r'name="csrf" value="([0-9a-f]+)"')


class State(DurableState):
    claim_id: str
    amount: int
    about: dict[str, Any]
    payment: dict[str, Any]
    outcome: str


def payload_of(state: Any) -> dict[str, Any]:
    """Return what is asked: a value of every kind that a form has."""
    return {
        "claim_id": state["claim_id"],
        "amount": state["amount"],
        "currency": "EUR",
        "payee": "acct_1",
        "speed": "now",
        "urgent": False,
        "note": "",
        "days": 3,
        "rate": 0.5,
        "tags": ["a"],
    }


def asking(journal: Journal, folder: Path, *, name: str = "claims", **terms: Any) -> DurableGraph:
    """Return a graph that asks about a payment, makes it, and says how it ended."""
    terms = {"ttl": timedelta(days=3), "edits": EDITS, "amount": "amount", **terms}

    def close(state: Any) -> dict[str, Any]:
        return {"outcome": state["approvals"]["payout"]["type"]}

    def arguments(state: Any) -> dict[str, Any]:
        return {"claim_id": state["claim_id"], "amount": state["amount"]}

    builder = StateGraph(State)
    ask = approval_node(
        "payout",
        journal,
        payload=payload_of,
        allowed=("approve", "edit", "reject"),
        about=lambda state: state.get("about") or {},
        **terms,
    )
    builder.add_node("approve", ask)
    builder.add_node("pay", effect_node(Bank(folder / "bank").effect(), journal, arguments=arguments, into="payment"))
    builder.add_node("close", close)
    builder.add_edge(START, "approve")
    builder.add_conditional_edges(
        "approve", lambda state: "close" if state["approvals"]["payout"]["type"] == "reject" else "pay"
    )
    builder.add_edge("pay", "close")
    builder.add_edge("close", END)
    return durable(builder, journal, name=name)


@dataclass
class Visit:
    """
    Somebody's browser.

    Attributes:
        last: The page they look at, as text.
        status: What it was answered with.
    """

    client: TestClient
    last: str = ""
    status: int = 0
    address: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def get(self, path: str) -> str:
        """Fetch a page, and return it."""
        return self._seen(self.client.get(path))

    def post(
        self,
        path: str,
        fields: Mapping[str, str] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        csrf: str | None = None,
        **form: str,
    ) -> str:
        """Post a form with the token of the page that is looked at, and return the page that follows."""
        given = self.csrf if csrf is None else csrf
        sent = {"Origin": HERE, "Sec-Fetch-Site": "same-origin"} if headers is None else headers
        return self._seen(self.client.post(path, data={"csrf": given, **form, **(fields or {})}, headers=sent))

    @property
    def csrf(self) -> str:
        """The token in the page that is looked at; empty if it has no form."""
        found = CSRF.search(self.last)
        return found[1] if found else ""

    @property
    def said(self) -> str:
        """The page's own part as text, without its markup."""
        main = self.last.partition("<main")[2].partition("</main>")[0].partition(">")[2]
        return " ".join(unescape(re.sub(r"<[^>]*>", " ", main)).split())

    def _seen(self, response: Any) -> str:
        self.last, self.status = response.text, response.status_code
        self.address, self.headers = str(response.url).removeprefix(HERE), response.headers
        return self.last


@dataclass
class Pages:
    """The pages of one journal."""

    journal: Journal
    graph: DurableGraph
    router: APIRouter
    web: FastAPI

    def routes(self, method: str) -> list[str]:
        """Return the paths that take this method."""
        found = [route for route in self.router.routes if isinstance(route, APIRoute)]
        return [route.path for route in found if method in (route.methods or ())]

    def browser(self, base_url: str = HERE) -> Visit:
        """Return a browser with no cookie."""
        return Visit(TestClient(self.web, base_url=base_url))

    def token(self, name: str, *roles: str, groups: Collection[str] = (), limit: int | None = None) -> str:
        """Return a token for somebody."""
        made = self.journal.tokens.add(principal=name, roles=roles, groups=groups, limit=limit, by="a test")
        return made[1]

    def visit(self, name: str, *roles: str, groups: Collection[str] = (), limit: int | None = None) -> Visit:
        """Return the browser of somebody who has logged in."""
        visit = self.browser()
        visit.get("/login")
        visit.post("/login", token=self.token(name, *roles, groups=groups, limit=limit), next="/")
        assert visit.status == 200, visit.said
        return visit

    def ask(
        self, claim_id: str = "0042", *, amount: int = 184_000, about: dict[str, Any] | None = None, by: str = "clerk"
    ) -> Approval:
        """Submit something that asks, and return what it asks."""
        thread_id = f"claim-{claim_id}"
        given = {"claim_id": claim_id, "amount": amount, "about": about or {}}
        self.graph.invoke(given, thread(thread_id, principal=by))
        [pending] = self.journal.approvals.pending(thread_id=thread_id)
        return pending

    def decide(self, approval: Approval, kind: str = "approve", *, by: str = "ben", **more: Any) -> Approval:
        """Have somebody decide elsewhere."""
        return self.journal.approvals.decide(approval.id, {"type": kind, **more}, principal=by)


def pages_over(journal: Journal, graph: DurableGraph, folder: Path) -> Pages:
    """Return the pages over an open journal and its graph."""
    settings = Settings(_env_file=None, url=SecretStr(f"sqlite:///{folder}/unused.db"))  # type: ignore[call-arg]  # pydantic's own
    app, doors = App(settings, journal, outside_of(settings), graph), Doors(journal)
    return Pages(journal, graph, pages.router(app, doors), make_app(app, doors))
