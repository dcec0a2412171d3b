"""`counterfoil serve` in a process of its own, asked over a real socket, and ended as an operator would."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.support.processes import until


@dataclass
class Served:
    """
    A server and what it has said.

    Attributes:
        lines: What it logged, one JSON document a line, and whatever else it wrote.
    """

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)
    clients: list[httpx.Client] = field(default_factory=list)

    @property
    def said(self) -> str:
        return "".join(self.lines)

    def at(self) -> str | None:
        """Return where it listens, once it does."""
        assert self.process.poll() is None, self.said
        return next((one["at"] for one in map(read, self.lines) if one.get("event") == "serving"), None)

    def client(self, token: str | None = None) -> httpx.Client:
        """Return a client that comes in by *token*."""
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        self.clients.append(httpx.Client(base_url=until(self.at), headers=headers, timeout=30))
        return self.clients[-1]

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to end and return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout=60)


@contextmanager
def serving(settings: dict[str, str], folder: Path, *arguments: str) -> Iterator[Served]:
    """Run `counterfoil serve` at a free port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "service.cli", "serve", "--port", "0", "--json", *arguments],
        env={**os.environ, **settings},
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    served = Served(process)
    reader = threading.Thread(target=_read, args=(process, served.lines))
    reader.start()
    try:
        yield served
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(timeout=60)
        for client in served.clients:
            client.close()
        reader.join(timeout=60)
        assert process.stderr is not None
        process.stderr.close()


def claim_body(path: Path, **more: Any) -> dict[str, Any]:
    """Return what is posted of a claim file, with its documents."""
    filing = json.loads(path.read_text())
    documents = {one["path"]: (path.parent / one["path"]).read_bytes() for one in filing["claim"]["documents"]}
    return {
        **filing,
        "contents": {name: base64.b64encode(content).decode() for name, content in documents.items()},
        **more,
    }


def read(line: str) -> dict[str, Any]:
    """Return a line of the log; empty where it is none."""
    try:
        found: dict[str, Any] = json.loads(line)
    except json.JSONDecodeError:
        return {}
    return found


def _read(process: subprocess.Popen[str], lines: list[str]) -> None:
    assert process.stderr is not None
    lines.extend(iter(process.stderr.readline, ""))
