"""
What 100,000 parked runs cost those that move, against 100 on the same server at the same time: a worker's memory, waking one, and every look for what is due.

    python -m benchmarks.parked [--postgres URL] [--many 100000] [--json]

Measured a third time is what is not done: with the end of every wait as a job of the queue's, scheduled for that day. Runs that are woken have none
of these, so that what is measured is the queue's looking past them.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
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
from checkpointing.due import DUE
from checkpointing.store import Tx
from graph import thread
from service.throwaway_postgres import throwaway_database

ORIGINAL = "original-claim"
MOST_WOKEN = 100
"""Fewer runs than so many are woken in one place."""
WARM = 5
"""Runs that are woken before anything is measured."""

IDLE_S = 0.1
"""How long a worker is left alone before a run is woken: one that looks for its next job just then hears of it at its next look, a second later."""

PARKED = "select count(*) as n from runs where state = 'parked'"
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
        wake_ms: From the decision's call until the run is done, in milliseconds; the median, and what nine in ten stay below.
        due_ms: One look for what is due; nothing is. `due_pages` are the pages of 8 KiB that it touched.
        sweep_ms: The same look of the sweep, which makes jobs of what it finds.
        fetch_ms: The queue's look for its next job; there is none.
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


@dataclass(frozen=True, slots=True)
class Place:
    """A database with parked runs, its worker, and what was measured there."""

    what: str
    url: str
    journal: Journal
    some: Workers
    taken_ms: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def take(self, name: str, milliseconds: float) -> None:
        """Note one measurement."""
        self.taken_ms[name].append(milliseconds)


def main(
    *,
    postgres: Annotated[str | None, typer.Option(metavar="URL", help="A server to use; else one is started.")] = None,
    few: Annotated[int, typer.Option(help="Parked runs to compare with.")] = 100,
    many: Annotated[int, typer.Option(help="Parked runs.")] = 100_000,
    rounds: Annotated[int, typer.Option(max=MOST_WOKEN - WARM - 1, help="How often each thing is measured.")] = 30,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure, and print a table."""
    say: Callable[[str], None] = (lambda _: None) if as_json else typer.echo
    with databases.server(postgres) as server:
        say(f"{machine.described()}; {databases.described(server)}; {datetime.now(UTC):%Y-%m-%d %H:%M} UTC")
        with _places(server, few, many) as places:
            say(f"ready; the load average is {machine.load():.1f}")
            found = _measured(places, rounds)
            say(f"measured; the load average is {machine.load():.1f}")
    say("\n".join(_table(found)))
    if as_json:
        typer.echo(json.dumps({"machine": machine.described(), "beside": [asdict(one) for one in found]}, indent=2))


@contextmanager
def _places(server: str, few: int, many: int) -> Iterator[list[Place]]:
    """Provide three databases of the server: one with few parked runs, one with many, and one with many and as many jobs."""
    with ExitStack() as stack:
        urls = [stack.enter_context(throwaway_database(server)) for _ in range(2)]
        for url, parked in zip(urls, (few, many), strict=True):
            _park(url, parked)
        urls.append(stack.enter_context(throwaway_database(server, like=urls[1])))
        _expire_by_jobs(urls[2])
        found: list[Place] = []
        for url, what in zip(urls, (f"{few:,} parked", f"{many:,} parked", f"and {many:,} jobs"), strict=True):
            _settle(url)
            journal = stack.enter_context(open_journal(url))
            some = stack.enter_context(workers(url, 1, asks=True, model_s=0))
            some.begin()
            found.append(Place(what, url, journal, some))
        yield found


def _park(url: str, parked: int) -> None:
    with open_journal(url) as journal:
        measured_claim(journal, model_s=0, asks=True).invoke({"claim_id": "0042"}, thread(ORIGINAL))
        copy_thread(journal.store, ORIGINAL, first=1, last=parked)


def _expire_by_jobs(url: str) -> None:
    woken = [copy_of(ORIGINAL, number) for number in range(1, MOST_WOKEN)]
    with open_journal(url) as journal, journal.store.transaction("parked.expire_by_jobs") as tx:
        tx.all(EXPIRIES_AS_JOBS, queue=queue_of(NAME), task=TASK, woken=woken)


def _measured(places: list[Place], rounds: int) -> list[Beside]:
    """Measure every thing in one place after the other, again and again, so that what else the machine does is the same for all."""
    for number in range(1, WARM + rounds + 1):
        for place in places:
            taken = _wake_ms(place.journal, place.some, number)
            if number > WARM:
                place.take("wake", taken)
    memory_kb = [machine.memory_kb(place.some.pids[0]) for place in places]
    for place in places:
        _settle(place.url)
    for _ in range(rounds):
        for place in places:
            runs = place.journal.runs
            place.take("due", _took_ms(lambda: runs.due(NAME, limit=1000)))  # noqa: B023  # called at once
            place.take("sweep", _took_ms(lambda: runs.enqueue_due(NAME)))  # noqa: B023  # called at once
            place.take("fetch", _took_ms(lambda: _fetch(place.journal)))  # noqa: B023  # called at once
    return [_beside(place, kb) for place, kb in zip(places, memory_kb, strict=True)]


def _beside(place: Place, memory_kb: int) -> Beside:
    graph, queue = {"graph": NAME, "limit": 1000}, queue_of(NAME)
    with place.journal.store.transaction("parked.look") as tx:
        until, parked = tx.now_ms(), tx.one(PARKED)
        due_pages = _pages(tx, DUE, until=until, **graph)
        sweep_pages = _pages(tx, ENQUEUE_DUE, until=until, queue=queue, task=TASK, priority=0, **graph)
        fetch_pages = _pages(tx, FETCH, queue=queue)
    waking = sorted(place.taken_ms["wake"])
    return Beside(
        what=place.what,
        parked=parked["n"] if parked else 0,
        memory_kb=memory_kb,
        wake_ms=median(waking),
        wake_p90_ms=waking[len(waking) * 9 // 10],
        due_ms=median(place.taken_ms["due"]),
        due_pages=due_pages,
        sweep_ms=median(place.taken_ms["sweep"]),
        sweep_pages=sweep_pages,
        fetch_ms=median(place.taken_ms["fetch"]),
        fetch_pages=fetch_pages,
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


def _took_ms(call: Callable[[], object]) -> float:
    began = time.monotonic()
    call()
    return (time.monotonic() - began) * 1000


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
