"""
Working with a queue: Procrastinate wakes a worker of any host as soon as a run is ready. What workers on Postgres do.

    advance   one thread, said by its job; what happens to the run is in the journal, so the job always ends well
    prune     every hour, on one of them: jobs that ended badly long ago are removed
    sweep     every few seconds, on one of the workers: the jobs of killed workers are finished as failed, and what is due and has no job gets one

When the database goes away the worker begins anew until it is there again; runs that were under way stop by themselves, because nothing they would
do next is possible without it. The queue waits for none of them: a call that takes an hour would keep a worker that has its database back from
working. Only a worker that ends waits, for its runs as long as they take, and for the queue not at all where it does not answer.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import psycopg
import structlog
from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Status

from checkpointing import Journal
from checkpointing.dispatch import TASK, queue_of
from checkpointing.errors import StoreUnreachable
from checkpointing.postgres import PostgresEngine
from service.worker.draining import Draining

log = structlog.get_logger("counterfoil.worker")

SWEEP = "counterfoil.sweep"
PRUNE = "counterfoil.prune"
KEPT_HOURS = 168
"""How long the jobs of killed workers stay to be looked at."""
NO_THREAD = "\x1f"
"""What no thread's id has: the locks of these jobs are none of a thread's."""
SWEEP_FIRST = 100
"""The sweep's priority: before everything that waits."""
AGAIN_S = 1.0
WAIT_S = 10.0
"""How long the queue waits for a connection before it takes the database for gone, in seconds."""
FAREWELL_S = 3.0
"""How long the queue has for what it writes at its end, in seconds: nothing is lost where it cannot."""
AWAY = (ConnectorException, psycopg.Error)
"""What Procrastinate raises where the database does not answer: its own error, and here and there its driver's."""
NO_ANSWER = (ConnectorException, psycopg.OperationalError, psycopg.InterfaceError, StoreUnreachable)
CONNECTIONS = 4
"""Of the queue itself, beside the journal's own, at most; one more listens, where no proxy stands between."""


@dataclass(frozen=True, slots=True)
class Rhythm:
    """
    How often a worker looks by itself, in seconds.

    Attributes:
        poll: For jobs that nobody announced: retries that have become due.
        sweep: For runs that have no job.
        heartbeat: Says that it is alive.
        stalled: After so long without, its jobs are taken for those of a dead worker.
    """

    poll: float = 1.0
    sweep: int = 5
    heartbeat: float = 10.0
    stalled: float = 30.0


def process_jobs(
    journal: Journal,
    engine: PostgresEngine,
    graphs: Sequence[str],
    carry_on: Callable[[str], object],
    draining: Draining,
    *,
    concurrency: int,
    rhythm: Rhythm,
    look: Callable[[], int],
) -> None:
    """
    Carry runs of *graphs* on as their jobs come, up to *concurrency* at a time, until draining is asked and the last one has stopped.

    With each sweep of the first graph *look*, too.
    """
    # It logs arguments, and every lost connection with its traceback.
    logging.getLogger("procrastinate").setLevel(logging.CRITICAL)
    queue = _Queue(journal, engine, graphs, carry_on, draining, concurrency, rhythm, look)
    asyncio.run(queue.until_drained())


@dataclass(frozen=True, slots=True)
class _Queue:
    journal: Journal
    engine: PostgresEngine
    graphs: Sequence[str]
    carry_on: Callable[[str], object]
    draining: Draining
    concurrency: int
    rhythm: Rhythm
    look: Callable[[], int]
    under_way: set[asyncio.Future[object]] = field(default_factory=set)

    async def until_drained(self) -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(self.concurrency + 1, thread_name_prefix="run"))
        loop.set_exception_handler(_forgotten)
        drained = asyncio.Event()
        self.draining.when_asked(partial(_soon, loop, drained.set))
        asked = asyncio.ensure_future(drained.wait())
        while not asked.done():
            working = asyncio.ensure_future(self._work())
            await asyncio.wait({working, asked}, return_when=asyncio.FIRST_COMPLETED)
            await self._left(working)
            await asyncio.wait({asked}, timeout=AGAIN_S)
        while self.under_way:
            await asyncio.wait(self.under_way)

    async def _work(self) -> None:
        app = App(connector=connector(self.engine))
        self._declare(app)
        try:
            await app.open_async()
            await app.run_worker_async(
                queues=[queue_of(graph) for graph in self.graphs],
                concurrency=self.concurrency,
                install_signal_handlers=False,
                delete_jobs="successful",
                listen_notify=not self.engine.behind_proxy,
                fetch_job_polling_interval=self.rhythm.poll,
                update_heartbeat_interval=self.rhythm.heartbeat,
                stalled_worker_timeout=self.rhythm.stalled,
                shutdown_graceful_timeout=FAREWELL_S,
            )
        finally:
            await app.close_async()  # also one that could not be opened, or it would go on trying

    async def _left(self, working: asyncio.Future[None]) -> None:
        """Have the queue end if it has not, and say so if the database is why it did; it fetches nothing more, and the runs under way go on."""
        working.cancel()
        await asyncio.wait({working}, timeout=2 * FAREWELL_S)
        # It has no state yet where it hangs: it is cancelled again with the loop.
        with suppress(asyncio.CancelledError, asyncio.InvalidStateError):
            if isinstance(error := working.exception(), AWAY):
                log.warning("queue_away", error=type(error.__cause__ or error).__name__)
            elif error:
                raise error

    def _declare(self, app: App) -> None:
        @app.task(name=TASK)
        async def advance(thread_id: str) -> None:
            await self._advance(thread_id)

        async def sweep(timestamp: int, graph: str) -> None:  # noqa: ARG001  # Procrastinate gives it
            try:
                await self._sweep(app, graph)
            except Exception as error:
                if not isinstance(error, NO_ANSWER):  # of that the queue itself tells
                    log.exception("sweep_failed", graph=graph)
                raise

        task = app.task(name=SWEEP)(sweep)
        for graph in self.graphs:
            options: dict[str, Any] = {
                "queue": queue_of(graph),
                "queueing_lock": f"{NO_THREAD}sweep {queue_of(graph)}",
                "priority": SWEEP_FIRST,
                "task_kwargs": {"graph": graph},
            }
            app.periodic(cron=f"* * * * * */{self.rhythm.sweep}", periodic_id=queue_of(graph), **options)(task)

        @app.periodic(cron="17 * * * *", periodic_id="prune")
        @app.task(name=PRUNE, queue=queue_of(self.graphs[0]), queueing_lock=f"{NO_THREAD}prune", priority=SWEEP_FIRST)
        async def prune(timestamp: int) -> None:  # noqa: ARG001  # Procrastinate gives it
            await app.job_manager.delete_old_jobs(
                KEPT_HOURS, include_failed=True, include_cancelled=True, include_aborted=True
            )

    async def _advance(self, thread_id: str) -> None:
        """Carry a run on, or leave it to its thread where the queue ends first: what becomes of it is in the journal, and not in the job."""
        run = asyncio.get_running_loop().run_in_executor(None, self.carry_on, thread_id)
        self.under_way.add(run)
        run.add_done_callback(self.under_way.discard)
        with suppress(asyncio.CancelledError):
            await asyncio.shield(run)

    async def _sweep(self, app: App, graph: str) -> None:
        jobs = app.job_manager
        for job in await jobs.get_stalled_jobs(queue=queue_of(graph), seconds_since_heartbeat=self.rhythm.stalled):
            with suppress(ConnectorException):  # another sweep was faster, or its worker is alive after all
                await jobs.finish_job(job, status=Status.FAILED, delete_job=False)
                log.warning("job_stalled", job=job.id)
        await jobs.prune_stalled_workers(self.rhythm.stalled)
        if graph == self.graphs[0]:
            await _left_alone(self.look)
        found = await _left_alone(partial(self.journal.runs.enqueue_due, graph))
        if found:
            log.info("swept", graph=graph, found=found)


def connector(engine: PostgresEngine) -> PsycopgConnector:
    """Return the queue's connections, which are made as the journal's own are: in the same schema, and as quick to notice a cut."""
    return PsycopgConnector(
        conninfo=engine.url,
        kwargs=dict(engine.options),
        min_size=0,  # else opening waits for them, half a minute, and raises the driver's own error
        max_size=CONNECTIONS,
        timeout=WAIT_S,
    )


async def _left_alone(look: Callable[[], int]) -> int:
    """Call *look* in a thread that nobody waits for at the end: one may wait for a database that is away, for longer than a drain lasts."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[int] = loop.create_future()

    def tell(say: Callable[[Any], None], what: object) -> None:
        with suppress(RuntimeError):  # the loop is gone
            loop.call_soon_threadsafe(lambda: None if found.done() else say(what))

    def run() -> None:
        try:
            tell(found.set_result, look())
        except BaseException as error:  # noqa: BLE001  # whoever waits raises it
            tell(found.set_exception, error)

    threading.Thread(target=run, name="sweep", daemon=True).start()
    return await found


def _soon(loop: asyncio.AbstractEventLoop, what: Callable[[], object]) -> None:
    """Call *what* in the loop, from any thread and from a signal handler."""
    loop.call_soon_threadsafe(what)


def _forgotten(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Say in one line what nobody waited for: Procrastinate ends a job in a task that is left alone when the database is away."""
    if isinstance(error := context.get("exception"), AWAY):
        log.warning("job_not_ended", error=type(error.__cause__ or error).__name__)
    else:
        loop.default_exception_handler(context)
