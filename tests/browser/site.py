"""
The pages served for real: an app over a journal of its own, on a free port, with claims that wait at a running sandbox.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from checkpointing import Approval, Journal, open_journal
from checkpointing.errors import CounterfoilError
from graph import approve, thread
from service.http.app import make_app
from service.settings import Settings
from service.submission import accept, read_submission
from service.who.doors import Doors
from service.wiring import App, claims
from tests.support.clock import MovingClock
from tests.support.processes import until
from tools.sandbox import SandboxControl

EXAMPLES = Path(__file__).parents[2] / "examples" / "claims"


@dataclass
class Site:
    """
    The pages of one journal.

    Attributes:
        url: Where they are served.
        clock: The journal's time; tests move it.
        folder: For claim files.
    """

    url: str
    app: App
    clock: MovingClock
    folder: Path

    @property
    def journal(self) -> Journal:
        return self.app.journal

    def token(self, principal: str, *roles: str, groups: Collection[str] = (), limit: int | None = None) -> str:
        """Return a token for somebody."""
        made = self.journal.tokens.add(principal=principal, roles=roles, groups=groups, limit=limit, by="a test")
        return made[1]

    def submit(
        self, claim_id: str, *, example: str = "0042", change: Callable[[dict[str, Any]], object] | None = None
    ) -> str:
        """Submit a claim of the examples under an id of its own, run it until it rests, and return its thread."""
        file = self.file(claim_id, example, change)
        thread_id = f"claim-{claim_id}"
        submission = read_submission(file)
        accept(self.app, submission, thread_id)
        self.app.graph.invoke(submission.input, thread(thread_id, principal="intake"))
        return thread_id

    def pending(self, thread_id: str) -> Approval:
        """Return what the thread waits for."""
        [found] = self.journal.approvals.pending(thread_id=thread_id)
        return found

    def approve(self, thread_id: str, *, by: str = "bo") -> None:
        """Have somebody approve what the thread waits for, and leave the run to a worker."""
        self.app.graph.submit(approve(self.pending(thread_id)), thread(thread_id, principal=by))

    def go_on(self, thread_id: str) -> None:
        """Carry a run on as far as it goes, as a worker would, whatever it comes to."""
        with suppress(CounterfoilError):
            self.app.graph.invoke(None, thread(thread_id))

    def kill_one(self, claim_id: str) -> str:
        """Let a run die: the claims system does not know its claim. Return its thread."""
        thread_id = f"claim-{claim_id}"
        with suppress(CounterfoilError):
            self.app.graph.invoke({"claim_id": claim_id, "documents": []}, thread(thread_id, principal="intake"))
        return thread_id

    def doubt_one(self, claim_id: str, control: SandboxControl) -> str:
        """Let a run come to an effect of which nobody knows whether it happened: two days go by. Return its thread."""
        thread_id = self.submit(claim_id)
        self.approve(thread_id)
        control.fault("emails", "drop_before", match=claim_id, times=3)
        self.go_on(thread_id)
        self.clock.move(timedelta(days=2))
        self.go_on(thread_id)
        return thread_id

    def file(
        self, claim_id: str, example: str = "0042", change: Callable[[dict[str, Any]], object] | None = None
    ) -> Path:
        """Write a claim file of an example under an id of its own, and return where it is."""
        content = json.loads((EXAMPLES / example / "claim.json").read_text())
        content["claim"]["id"] = claim_id
        content["claim"]["policy_number"] = content["policy"]["number"] = f"MOT-{claim_id}"
        if change:
            change(content)
        place = self.folder / claim_id
        place.mkdir(parents=True)
        for document in content["claim"]["documents"]:
            (place / document["path"]).write_bytes((EXAMPLES / example / document["path"]).read_bytes())
        (place / "claim.json").write_text(json.dumps(content))
        return place / "claim.json"


@contextmanager
def served(folder: Path, sandbox_url: str, *, clock: MovingClock | None = None) -> Iterator[Site]:
    """Serve the pages of a new journal in *folder* until the end of the block."""
    clock = clock or MovingClock()
    settings = Settings(
        _env_file=None,  # type: ignore[call-arg]  # pydantic's own
        url=f"sqlite:///{folder}/claims.db",  # type: ignore[arg-type]  # pydantic turns it into a secret
        claims_url=sandbox_url,
        stripe_url=sandbox_url,
        mail_url=sandbox_url,
    )
    with open_journal(
        settings.url.get_secret_value(), clock=clock, lease=timedelta(seconds=30), artefacts=f"{folder}/artefacts"
    ) as journal:
        app = claims(settings, journal)
        with _listening(make_app(app, Doors(journal))) as url:
            yield Site(url, app, clock, folder / "files")


@contextmanager
def _listening(web: FastAPI) -> Iterator[str]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        server = uvicorn.Server(uvicorn.Config(web, log_level="warning", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            until(lambda: server.started or None)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
