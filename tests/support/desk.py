"""An API over a journal with a small graph behind it that asks and pays, and people with tokens who come in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from fastapi.testclient import TestClient

from checkpointing import Approval, Journal, Run
from graph import DurableGraph, thread
from service.http.app import make_app
from service.settings import Settings
from service.wiring import App, doors_of, outside_of
from service.worker.advancing import advance
from service.worker.draining import Draining

V1 = "/api/v1"
ROOTS = ("/healthz", "/readyz", "/metrics")


def full(operation: str) -> str:
    """Return a line of the table of rights with the whole path."""
    method, _, path = operation.partition(" ")
    return f"{method} {path if path in ROOTS else V1 + path}"


def make_desk(settings: Settings, journal: Journal, graph: DurableGraph) -> Desk:
    """Return an API over the journal, and the graph."""
    app = App(settings, journal, outside_of(settings), graph)
    return Desk(app, make_app(app, doors_of(settings, journal)))


@dataclass
class Desk:
    """
    An API over a journal, and what stands behind it.

    Attributes:
        api: The app as it is served.
    """

    app: App
    api: FastAPI

    @property
    def journal(self) -> Journal:
        return self.app.journal

    def token(self, name: str, *roles: str, groups: tuple[str, ...] = (), limit: int | None = None) -> str:
        """Return a new token of *name*."""
        return self.journal.tokens.add(principal=name, roles=roles, groups=groups, limit=limit, by="test")[1]

    def client(self, name: str, *roles: str, **more: Any) -> TestClient:
        """Return a client that comes in as *name*."""
        return self.anonymous({"authorization": f"Bearer {self.token(name, *roles, **more)}"})

    def anonymous(self, headers: dict[str, str] | None = None) -> TestClient:
        """Return a client that comes in with these headers and no others; a fault of the server is an answer, not an error here."""
        return TestClient(self.api, headers=headers, raise_server_exceptions=False)

    def submit(self, number: object, *, by: str = "intake") -> Run:
        """Submit a claim and carry it on until it waits."""
        thread_id = f"claim-{number}"
        given = {"claim_id": f"{number}", "documents": []}
        self.app.graph.submit(given, thread(thread_id, principal=by))
        return self.advance(thread_id)

    def advance(self, thread_id: str) -> Run:
        """Carry the run on, as a worker does."""
        advance({"claims": self.app.graph}, self.journal, thread_id, Draining())
        return self.journal.runs.get(thread_id)

    def asked(self, number: object, *, by: str = "intake") -> Approval:
        """Submit a claim and return what it asks."""
        run = self.submit(number, by=by)
        [asked] = self.journal.approvals.pending(thread_id=run.thread_id)
        return asked
