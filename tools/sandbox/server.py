"""
The sandbox's process: a socket, a database, and a clean end on SIGINT or SIGTERM.

On the end held calls go no further and their connections are closed: what was executed stays, what was not never will be.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from tools.sandbox.app import sandbox_app
from tools.sandbox.gate import Gate
from tools.sandbox.store import SandboxStore


def serve(host: str, port: int, database: Path, on_ready: Callable[[str], None]) -> None:
    """
    Serve until SIGINT or SIGTERM, then return; *on_ready* gets the URL once connections are taken.

    Port 0 takes a free one.

    Raises:
        DatabaseUnusable: the file is no database, or another sandbox has it.
        OSError: the port is taken.
    """
    with closing(SandboxStore(database)) as store, socket.create_server((host, port)) as listener:
        gate = Gate()
        server = _Server(_config(store, gate), gate)
        with _stopped_by_signals(server):
            on_ready(f"http://{host}:{listener.getsockname()[1]}")
            server.run(sockets=[listener])


def _config(store: SandboxStore, gate: Gate) -> uvicorn.Config:
    return uvicorn.Config(
        sandbox_app(store, gate),
        http=_Protocol,
        ws="none",
        lifespan="off",
        loop="asyncio",
        access_log=False,
        log_level="warning",
        server_header=False,
    )


class _Protocol(H11Protocol):
    """Hands each request its connection, so that a fault can close it; uvicorn 0.54 copies `app_state` into the scope."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn's own class
        super().connection_made(transport)
        self.app_state = {**self.app_state, "transport": transport}


class _Server(uvicorn.Server):
    """Ends what is held before it waits for open connections; uvicorn would wait for them for ever."""

    def __init__(self, config: uvicorn.Config, gate: Gate) -> None:
        super().__init__(config)
        self._gate = gate

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._gate.close()
        await super().shutdown(sockets)


@contextmanager
def _stopped_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """
    Let SIGINT and SIGTERM stop *server*, whenever they come.

    uvicorn raises a signal again after its end, for the handlers that stood before its own: without these it would end in a
    traceback (SIGINT) or as killed (SIGTERM). Outside the main thread nobody can handle signals, and none come.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_signal: int, _frame: object) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
