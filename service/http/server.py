"""
One process that serves: the API, the pages and a worker, which end together within a bounded time.

    SIGTERM ──▶ no new connections, streams end, runs stop at their next checkpoint ──▶ ended, or cut off after a while

uvicorn serves in the main thread, the worker works in one of its own. Whichever of the two ends by itself ends the other: a server whose worker is
gone would take claims that nobody carries on.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import threading
from collections.abc import Callable, Iterator, Sequence

import structlog
import uvicorn
from fastapi import FastAPI

from checkpointing.errors import Refused
from service.worker.draining import Draining

log = structlog.get_logger("counterfoil.http")

CLOSING_S = 10
"""How long requests under way are waited for when the server ends."""
WAITING = 2048
"""How many connections the system keeps waiting for us."""


class AddressUnusable(Refused, OSError):
    """Nobody can listen at this address: it is taken, or none of this machine's."""


class Serving(uvicorn.Server):
    """A uvicorn server that ends when draining is asked; signals are heard by whoever asks for that."""

    def __init__(self, config: uvicorn.Config, draining: Draining) -> None:
        """Serve as *config* says."""
        super().__init__(config)
        self._draining = draining

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and hear from then on when to end."""
        await super().startup(sockets)
        loop = asyncio.get_running_loop()
        self._draining.when_asked(lambda: _in_loop(loop, self._end))
        for one in sockets or ():
            log.info("serving", at=url_of(one))

    def _end(self) -> None:
        self.should_exit = True


def serve(
    api: FastAPI,
    listening: socket.socket,
    draining: Draining,
    *,
    proxies: Sequence[str] = (),
    beside: Callable[[], None] | None = None,
) -> bool:
    """
    Serve *api* until draining is asked, and tell whether it ended for that and for nothing else; for the main thread.

    Args:
        api: what is served.
        listening: where; it is closed at the end.
        draining: what ends it, and is asked by it when one of the two ends by itself.
        proxies: the addresses whose word of the client's address and scheme is taken (`X-Forwarded-For`, `X-Forwarded-Proto`).
        beside: what runs in a thread of its own until draining is asked: a worker.
    """
    config = uvicorn.Config(
        api,
        lifespan="off",
        log_config=None,
        access_log=False,  # the app's own lines say less
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        timeout_graceful_shutdown=CLOSING_S,
    )
    server, failures = Serving(config, draining), list[BaseException]()
    worker = threading.Thread(
        target=_beside, args=(beside or draining_alone(draining), draining, failures), name="worker"
    )
    worker.start()
    try:
        server.run(sockets=[listening])
    finally:
        draining.ask()
        worker.join()
    return not failures


def draining_alone(draining: Draining) -> Callable[[], None]:
    """Return what does nothing until draining is asked."""

    def wait() -> None:
        while not draining.wait(3600):
            pass

    return wait


def listen(host: str, port: int) -> socket.socket:
    """
    Return a socket that listens; port 0 is any that is free.

    Raises:
        AddressUnusable: nobody can listen there.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=WAITING)
    except (OSError, OverflowError) as error:
        said = getattr(error, "strerror", None) or error
        raise AddressUnusable(f"cannot listen at {host} port {port}: {said}; is another one serving there?") from error


def is_loopback(listening: socket.socket) -> bool:
    """Tell whether nobody but this machine can reach it."""
    return ipaddress.ip_address(listening.getsockname()[0]).is_loopback


def url_of(listening: socket.socket) -> str:
    """Return where it is reached."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _beside(work: Callable[[], None], draining: Draining, failures: list[BaseException]) -> None:
    try:
        work()
    except BaseException as fault:  # nobody else hears of it in this thread
        log.exception("worker_failed")
        failures.append(fault)
    finally:
        if not draining.asked:
            log.error("worker_ended")  # a fault, or the journal is gone
        draining.ask()


def _in_loop(loop: asyncio.AbstractEventLoop, act: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed: it has ended already
        loop.call_soon_threadsafe(act)
