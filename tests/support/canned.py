"""A server that says what it was told to, for answers that no well-behaved service gives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.listening import Quiet, listening


class Canned:
    """
    The answers, first told first, and what was asked.

    Attributes:
        url: Where it listens.
        asked: `METHOD path?query` of every call, in order.
    """

    def __init__(self) -> None:
        """Answer nothing yet."""
        self.url = ""
        self.asked: list[str] = []
        self._answers: list[tuple[int, bytes]] = []

    def says(self, body: object, status: int = 200) -> None:
        """Answer one more call with *body*: bytes as they are, anything else as JSON."""
        self._answers.append((status, body if isinstance(body, bytes) else json.dumps(body).encode()))

    def next(self, asked: str) -> tuple[int, bytes]:
        """Take the next answer."""
        self.asked.append(asked)
        return self._answers.pop(0)


@contextmanager
def canned() -> Iterator[Canned]:
    """Serve until the end of the block."""
    told = Canned()

    class Handler(Quiet):
        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            status, body = told.next(f"{self.command} {self.path}")
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = _answer  # noqa: N815  # the names http.server looks for

    with listening(Handler) as told.url:
        yield told
