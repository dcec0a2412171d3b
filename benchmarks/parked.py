"""
What 100,000 parked runs cost those that move, against 100 in the same Postgres: a worker's memory, waking one, and every look for what is due.

    python -m benchmarks.parked [--postgres URL] [--many 100000] [--json]

Measured a third time is what is not done: with the end of every wait as a job of the queue's, scheduled for that day. Runs that are woken have none
of these, so that what is measured is the queue's looking past them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import count
from statistics import median
from typing import Annotated, Any

import psycopg
import typer

from benchmarks import databases, machine
from benchmarks.claim import NAME, measured_claim
from benchmarks.copies import copy_of, copy_thread
from benchmarks.workers import Workers, workers
from checkpointing import Journal, open_journal
from checkpointing.dispatch import ENQUEUE_DUE, TASK, queue_of
from checkpointing.runs import DUE
from checkpointing.store import Tx
from graph import thread

ORIGINAL = "original-claim"
WARM = 5
"""Runs that are woken before anything is measured."""

IDLE_S = 0.1
"""How long a worker is left alone before a run is woken: one that looks for its next job just then hears of it at its next look, a second later."""

AT_WORK = "select id from procrastinate_jobs where status = 'doing' limit 1"
FETCH = "select * from procrastinate_fetch_job_v2(cast(array[cast(:queue as text)] as varchar[]), null)"
EXPIRIES_AS_JOBS = """
insert into procrastinate_jobs (queue_name, task_name, queueing_lock, args, scheduled_at)
select :queue, :task, thread_id, jsonb_build_object('thread_id', thread_id), now() + interval '30 days'
from runs where state = 'parked' and not thread_id = any(:woken)
"""


@dataclass(frozen=True, slots=True)
class Beside:
    """
    One worker, beside so many parked runs.

    Attributes:
        memory_kb: What it holds after it has woken some, in KiB.
        wake_ms: From the decision's call until the run is done, in milliseconds; the median, and the slowest of ten in a hundred.
        due_ms: One look for what is due; nothing is. `due_pages` are the pages of 8 KiB that it touched.
        sweep_ms: The same look of the sweep, which makes jobs of what it finds.
        fetch_ms: The queue's look for its next job; there is none.
        load: The machine's load average before it began.
    """

    what: str
    parked: int
    memory_kb: int
    wake_ms: float
    wake_p90_ms: float
    due_ms: float
    due_pages: int
    sweep_ms: float
    sweep_pages: int
    fetch_ms: float
    fetch_pages: int
    load: float


def main(
    *,
    postgres: Annotated[str | None, typer.Option(metavar="URL", help="A server to use; else one is started.")] = None,
    few: Annotated[int, typer.Option(help="Parked runs to compare with.")] = 100,
    many: Annotated[int, typer.Option(help="Parked runs.")] = 100_000,
    rounds: Annotated[int, typer.Option(help="How often each thing is measured.")] = 30,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure, and print a table."""
    say: Callable[[str], None] = (lambda _: None) if as_json else typer.echo
    found: list[Beside] = []
    with databases.server(postgres) as server, databases.new_postgres(server) as url:
        say(f"{machine.described()}; {databases.described(server)}; {datetime.now(UTC):%Y-%m-%d %H:%M} UTC")
        for one in _measured(url, few, many, rounds):
            found.append(one)
            say(f"measured: {one.what}")
    for line in _table(found):
        say(line)
    if as_json:
        typer.echo(json.dumps({"machine": machine.described(), "beside": [asdict(one) for one in found]}, indent=2))


def _measured(url: str, few: int, many: int, rounds: int) -> Iterator[Beside]:
    numbers = count(1)
    with open_journal(url) as journal:
        graph = measured_claim(journal, model_s=0, asks=True)
        graph.invoke({"claim_id": "0042"}, thread(ORIGINAL))
        for first, last in ((1, few), (few + 1, many)):
            copy_thread(journal.store, ORIGINAL, first=first, last=last)
            yield _beside(journal, url, f"{last:,} parked", numbers, rounds)
        with journal.store.transaction("parked.expiries_as_jobs") as tx:
            woken = [copy_of(ORIGINAL, number) for number in range(1, 3 * (rounds + WARM) + 1)]
            tx.all(EXPIRIES_AS_JOBS, queue=queue_of(NAME), task=TASK, woken=woken)
        yield _beside(journal, url, f"and {many:,} jobs", numbers, rounds)


def _beside(journal: Journal, url: str, what: str, numbers: Iterator[int], rounds: int) -> Beside:
    _settle(url)
    load = machine.load()
    with workers(url, 1, asks=True, model_s=0) as some:
        some.begin()
        for _ in range(WARM):
            _wake_ms(journal, some, next(numbers))
        waking = sorted(_wake_ms(journal, some, next(numbers)) for _ in range(rounds))
        memory_kb = machine.memory_kb(some.pids[0])
    _settle(url)
    runs, graph = journal.runs, {"graph": NAME, "limit": 1000}
    sweep = {**graph, "queue": queue_of(NAME), "task": TASK, "priority": 0}
    with journal.store.transaction("parked.look") as tx:
        until, parked = tx.now_ms(), tx.one("select count(*) as n from runs where state = 'parked'")
        due_pages, sweep_pages = _pages(tx, DUE, until=until, **graph), _pages(tx, ENQUEUE_DUE, until=until, **sweep)
        fetch_pages = _pages(tx, FETCH, queue=queue_of(NAME))
    return Beside(
        what=what,
        parked=parked["n"] if parked else 0,
        memory_kb=memory_kb,
        wake_ms=median(waking),
        wake_p90_ms=waking[len(waking) * 9 // 10],
        due_ms=_median_ms(rounds, lambda: runs.due(NAME, limit=1000)),
        due_pages=due_pages,
        sweep_ms=_median_ms(rounds, lambda: runs.enqueue_due(NAME)),
        sweep_pages=sweep_pages,
        fetch_ms=_median_ms(rounds, lambda: _fetch(journal)),
        fetch_pages=fetch_pages,
        load=load,
    )


def _wake_ms(journal: Journal, some: Workers, number: int) -> float:
    """Decide what an idle worker's run waits for, wait until the worker has ended it, and return how long that took."""
    thread_id = copy_of(ORIGINAL, number)
    while _at_work(journal):
        time.sleep(0.01)
    time.sleep(IDLE_S)
    [asked] = journal.approvals.pending(thread_id=thread_id)
    began = time.monotonic()
    journal.approvals.decide(asked.id, {"type": "approve"}, principal="adjuster-17")
    ended = next(at for one, outcome, at in some.ended() if (one, outcome) == (thread_id, "done"))
    return (ended - began) * 1000


def _at_work(journal: Journal) -> bool:
    with journal.store.reading() as tx:
        return tx.one(AT_WORK) is not None


def _fetch(journal: Journal) -> None:
    with journal.store.transaction("parked.fetch") as tx:
        tx.all(FETCH, queue=queue_of(NAME))


def _median_ms(rounds: int, call: Callable[[], object]) -> float:
    def once() -> float:
        began = time.monotonic()
        call()
        return (time.monotonic() - began) * 1000

    return median(once() for _ in range(rounds))


def _pages(tx: Tx, sql: str, **parameters: Any) -> int:
    """Run the statement and return how many pages it touched, in memory or not."""
    row = tx.one(f"explain (analyze, buffers, format json) {sql}", **parameters)
    assert row is not None
    plan = row["QUERY PLAN"][0]["Plan"]
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])


def _settle(url: str) -> None:
    """Have the server do now what it would else do in the middle of a measurement: clear away, look at its tables, write to the disk."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("vacuum (analyze)")
        connection.execute("checkpoint")


def _table(found: list[Beside]) -> Iterator[str]:
    """Yield a line for each figure: beside few, beside many, and with the jobs, each with its ratio to the first."""
    yield f"\n{'':14}" + "".join(f"{one.what:>22}{'ratio':>9}" for one in found)
    for name in list(asdict(found[0]))[1:]:
        values = [float(getattr(one, name)) for one in found]
        ratios = [value / values[0] if values[0] else 0.0 for value in values]
        yield f"{name:14}" + "".join(f"{value:22,.2f}{ratio:9.2f}" for value, ratio in zip(values, ratios, strict=True))


if __name__ == "__main__":
    typer.run(main)
