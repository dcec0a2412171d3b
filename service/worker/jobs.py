"""
Working with a queue: Procrastinate wakes a worker of any host as soon as a run is ready. What workers on Postgres do.

    advance   one thread, said by its job; what happens to the run is in the journal, so the job always ends well
    prune     every hour, on one of them: jobs that ended badly long ago are removed
    sweep     every few seconds, on one of the workers: the jobs of killed workers are finished as failed, and what is due and has no job gets one

When the database goes away the worker begins anew until it is there again; runs that were under way stop by themselves, because nothing they would
do next is possible without it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog
from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Status

from checkpointing import Journal
from checkpointing.dispatch import TASK, queue_of
from checkpointing.postgres import PostgresEngine
from service.worker.draining import Draining

log = structlog.get_logger("counterfoil.worker")

SWEEP = "counterfoil.sweep"
PRUNE = "counterfoil.prune"
KEPT_HOURS = 168
"""How long the jobs of killed workers stay to be looked at."""
SWEEP_FIRST = 100
"""The sweep's priority: before everything that waits."""
AGAIN_S = 1.0
CONNECTIONS = 4
"""Of the queue itself, beside the journal's own: fetching, finishing, and one for each worker's listening."""


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
) -> None:
    """Carry runs of *graphs* on as their jobs come, up to *concurrency* at a time, until draining is asked and the last one has stopped."""
    logging.getLogger("procrastinate").setLevel(
        logging.CRITICAL
    )  # it logs arguments, and every lost connection with its traceback
    queue = _Queue(journal, engine, graphs, carry_on, draining, concurrency, rhythm)
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

    async def until_drained(self) -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(self.concurrency + 1, thread_name_prefix="run"))
        drained = asyncio.Event()
        self.draining.when_asked(partial(_soon, loop, drained.set))
        while not drained.is_set():
            try:
                await self._work(drained)
            except ConnectorException as away:
                log.warning("queue_away", error=type(away.__cause__ or away).__name__)
            if not drained.is_set():
                await asyncio.wait([asyncio.ensure_future(drained.wait())], timeout=AGAIN_S)

    async def _work(self, drained: asyncio.Event) -> None:
        app = App(
            connector=PsycopgConnector(conninfo=self.engine.url, kwargs=self.engine.options, max_size=CONNECTIONS)
        )
        self._declare(app)
        async with app.open_async():
            working = asyncio.ensure_future(
                app.run_worker_async(
                    queues=[queue_of(graph) for graph in self.graphs],
                    concurrency=self.concurrency,
                    install_signal_handlers=False,
                    delete_jobs="successful",
                    listen_notify=not self.engine.behind_proxy,
                    fetch_job_polling_interval=self.rhythm.poll,
                    update_heartbeat_interval=self.rhythm.heartbeat,
                    stalled_worker_timeout=self.rhythm.stalled,
                )
            )
            asked = asyncio.ensure_future(drained.wait())
            await asyncio.wait({working, asked}, return_when=asyncio.FIRST_COMPLETED)
            asked.cancel()
            working.cancel()  # it stops fetching and waits for the runs under way
            with suppress(asyncio.CancelledError):
                await working

    def _declare(self, app: App) -> None:
        @app.task(name=TASK)
        def advance(thread_id: str) -> None:
            self.carry_on(thread_id)

        async def sweep(timestamp: int, graph: str) -> None:  # noqa: ARG001  # Procrastinate gives it
            await self._sweep(app, graph)

        task = app.task(name=SWEEP)(sweep)
        for graph in self.graphs:
            options: dict[str, Any] = {
                "queue": queue_of(graph),
                "queueing_lock": f"sweep {queue_of(graph)}",
                "priority": SWEEP_FIRST,
                "task_kwargs": {"graph": graph},
            }
            app.periodic(cron=f"* * * * * */{self.rhythm.sweep}", periodic_id=queue_of(graph), **options)(task)

        @app.periodic(cron="17 * * * *", periodic_id="prune")
        @app.task(name=PRUNE, queue=queue_of(self.graphs[0]), queueing_lock="prune", priority=SWEEP_FIRST)
        async def prune(timestamp: int) -> None:  # noqa: ARG001  # Procrastinate gives it
            await app.job_manager.delete_old_jobs(
                KEPT_HOURS, include_failed=True, include_cancelled=True, include_aborted=True
            )

    async def _sweep(self, app: App, graph: str) -> None:
        jobs = app.job_manager
        for job in await jobs.get_stalled_jobs(queue=queue_of(graph), seconds_since_heartbeat=self.rhythm.stalled):
            await jobs.finish_job(job, status=Status.FAILED, delete_job=False)
            log.warning("job_stalled", job=job.id)
        await jobs.prune_stalled_workers(self.rhythm.stalled)
        found = await self.journal.bridge.run(self.journal.runs.enqueue_due, graph)
        if found:
            log.info("swept", graph=graph, found=found)


def _soon(loop: asyncio.AbstractEventLoop, what: Callable[[], object]) -> None:
    """Call *what* in the loop, from any thread and from a signal handler."""
    loop.call_soon_threadsafe(what)
