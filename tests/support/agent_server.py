"""
The development server of the Agent Server as its users start it, in a folder of its own, with three users and a sandbox outside.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import httpx
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from tests.support.processes import until

ROOT = Path(__file__).parents[2]
USERS = ("intake", "ada", "bob")
QUIET = {"LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1", "NO_COLOR": "1"}
"""Nothing is sent anywhere, and no key is looked for."""
PATIENCE_S = 240
STARTS = 3
"""How often a first start is tried: between the look for a free port and the server's use of it another process may take it."""


class DiedAtStart(AssertionError):
    """It ended before it answered; its log says why."""


class AgentServerProcess:
    """`langgraph dev` with the `langgraph.json` of this repository; it keeps its own things in *folder*."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        shutil.copy(ROOT / "langgraph.json", folder)
        self.folder, self.port = folder, _free_port()
        tokens = ",".join(f"{user}:{hashlib.sha256(token(user).encode()).hexdigest()}" for user in USERS)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("COUNTERFOIL_")}
        self._environment = {**kept, **QUIET, **settings, "COUNTERFOIL_AGENT_SERVER_TOKENS": tokens}
        self._process: subprocess.Popen[bytes] | None = None
        self._clients: list[SyncLangGraphClient] = []

    def __enter__(self) -> Self:
        for _ in range(STARTS - 1):
            with suppress(DiedAtStart):
                self.start()
                return self
            self.port = _free_port()
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        """What it said since its first start."""
        return (self.folder / "log").read_text()

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = [str(Path(sys.executable).with_name("langgraph")), "dev", "--no-browser", "--no-reload"]
        command += ["--host", "127.0.0.1", "--port", str(self.port)]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=self.folder, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        until(self._answers, timeout_s=PATIENCE_S)

    def kill(self) -> None:
        """End it as a power cut would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """End it with SIGTERM, if it runs, and close the clients."""
        assert self._process is not None
        while self._clients:
            self._clients.pop().close()
        self._process.terminate()
        self._process.wait(timeout=60)

    def client(self, user: str | None, **headers: str) -> SyncLangGraphClient:
        """Return the SDK's client of *user*, or of somebody without a token."""
        shown = {"authorization": f"Bearer {token(user)}"} if user else {}
        self._clients.append(get_sync_client(url=self.url, headers={**shown, **headers}, timeout=PATIENCE_S))
        return self._clients[-1]

    def _answers(self) -> bool | None:
        assert self._process is not None
        if self._process.poll() is not None:
            raise DiedAtStart(self.log)
        try:
            return httpx.get(f"{self.url}/ok", timeout=5).status_code == 200 or None
        except httpx.TransportError:
            return None


def _free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def token(user: str) -> str:
    """Return the secret of *user*."""
    return f"secret-of-{user}"


def decision(parked: Any, kind: str = "approve", **more: Any) -> Any:
    """Return the command that decides what a run that parked asks."""
    request = parked["__interrupt__"][0]["value"]
    return {"resume": {"approval": request["id"], "type": kind, "payload_hash": request["payload_hash"], **more}}
