"""A consumer of webhooks on a socket, which keeps what it was sent and answers as it is told."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from standardwebhooks import Webhook, WebhookVerificationError

from tests.support.listening import Quiet, listening

SECRET = "whsec_" + base64.b64encode(b"a secret of thirty-two bytes ...").decode()
OTHER_SECRET = "whsec_" + base64.b64encode(b"the secret that comes after it..").decode()


@dataclass(frozen=True)
class Sent:
    """One call as it came."""

    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    def verified(self, secret: str = SECRET) -> dict[str, Any]:
        """Return what it says, if it is signed with the secret."""
        said = Webhook(secret).verify(self.body, self.headers)
        assert isinstance(said, dict)
        return said

    def is_signed_with(self, secret: str) -> bool:
        """Tell whether one of its signatures is the secret's."""
        try:
            self.verified(secret)
        except WebhookVerificationError:
            return False
        return True


@dataclass
class Consumer:
    """
    What was sent, and what is answered.

    Attributes:
        answers: The statuses of the next calls; then 204.
        gate: While it is closed, no call is answered.
    """

    url: str = ""
    sent: list[Sent] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)

    @property
    def ids(self) -> list[str]:
        """Which message each was, in order."""
        return [one.id for one in self.sent]

    @property
    def events(self) -> list[str]:
        """What it was told of, each message once, in order."""
        return list({one.id: str(one.verified()["type"]) for one in self.sent}.values())


@contextmanager
def consumer() -> Iterator[Consumer]:
    """Serve until the end of the block."""
    told = Consumer()
    told.gate.set()

    class Handler(Quiet):
        def do_POST(self) -> None:  # noqa: N802  # the name http.server looks for
            body = self.rfile.read(int(self.headers["content-length"]))
            told.sent.append(Sent({name.lower(): value for name, value in self.headers.items()}, body))
            told.gate.wait()
            self.send_response(told.answers.pop(0) if told.answers else 204)
            self.send_header("location", f"{told.url}/elsewhere")
            self.send_header("content-length", "0")
            self.end_headers()

    with listening(Handler) as url:
        told.url = f"{url}/hook"
        try:
            yield told
        finally:
            told.gate.set()
