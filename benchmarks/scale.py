"""
How many runs a second some workers make, against one worker: near-linear until the processors are busy.

    python -m benchmarks.scale [--engine postgres] [--postgres URL] [--json]

Every measurement queues its runs in a database of its own, has the workers ready, tells them to begin and takes the time until the last run is
done. All of them are made in one go, the one worker again at the end: machines are noisy, so only ratios of one go are worth anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Annotated

import typer

from benchmarks import databases, machine
from benchmarks.claim import MODEL_S, measured_claim
from benchmarks.databases import Engine, Place
from benchmarks.workers import workers
from checkpointing import open_journal
from graph import thread

HEADER = "workers  at a time   runs  seconds  runs/s   ratio  cpu ms a run  cores: workers   all  load before"


@dataclass(frozen=True, slots=True)
class Drained:
    """
    One measurement.

    Attributes:
        rate: Runs done a second.
        ratio: That, against the first measurement of the same table.
        workers_cores: How many cores the workers kept busy.
        cpu_ms: What a run cost the workers of a processor's time, in milliseconds; the database's server comes on top.
        all_cores: How many were busy in all, with the database's server and whoever else was there.
        load: The machine's load average before it began.
    """

    engine: str
    workers: int
    concurrency: int
    runs: int
    seconds: float
    rate: float
    ratio: float
    workers_cores: float
    cpu_ms: float
    all_cores: float
    load: float


def main(
    *,
    engine: Annotated[list[Engine] | None, typer.Option(help="Only this engine.")] = None,
    postgres: Annotated[str | None, typer.Option(metavar="URL", help="A server to use; else one is started.")] = None,
    counts: Annotated[
        str, typer.Option(help="How many workers, and how many runs at a time of one worker.")
    ] = "1,2,4,8",
    runs: Annotated[int, typer.Option(help="Runs queued for each worker.")] = 60,
    model_s: Annotated[float, typer.Option(help="What a call to the model takes, in seconds.")] = MODEL_S,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure, and print a table for each engine and kind."""
    steps = [int(one) for one in counts.split(",")]
    say: Callable[[str], None] = (lambda _: None) if as_json else typer.echo
    found: list[Drained] = []
    with databases.places(engine or list(Engine), postgres) as places:
        say(f"{machine.described()}; {datetime.now(UTC):%Y-%m-%d %H:%M} UTC; a model call takes {model_s * 1000:g} ms")
        for place in places:
            for title, shapes in (
                (
                    "workers of one run at a time",
                    [(step, 1) for step in [*steps, *(steps[:1] if len(steps) > 1 else [])]],
                ),
                ("one worker of several runs at a time", [(1, step) for step in steps]),
            ):
                say(f"\n{place.words}, {title}\n{HEADER}")
                for one in _table(place, shapes, runs=runs, model_s=model_s):
                    say(_line(one))
                    found.append(one)
    if as_json:
        typer.echo(json.dumps({"machine": machine.described(), "drained": [asdict(one) for one in found]}, indent=2))


def _table(place: Place, shapes: list[tuple[int, int]], *, runs: int, model_s: float) -> Iterator[Drained]:
    first: Drained | None = None
    for count, concurrency in shapes:
        with place.new() as url:
            one = _drained(
                place.name, url, count, concurrency, runs=runs * count * concurrency, model_s=model_s, first=first
            )
        first = first or one
        yield one


def _line(one: Drained) -> str:
    return (
        f"{one.workers:7} {one.concurrency:10} {one.runs:6} {one.seconds:8.2f} {one.rate:7.1f} {one.ratio:7.2f} {one.cpu_ms:13.1f} "
        f"{one.workers_cores:15.2f} {one.all_cores:5.2f} {one.load:12.2f}"
    )


def _drained(
    name: str, url: str, count: int, concurrency: int, *, runs: int, model_s: float, first: Drained | None
) -> Drained:
    load, threads = machine.load(), {f"claim-{number}" for number in range(runs)}
    with open_journal(url) as journal:
        graph = measured_claim(journal, model_s=model_s)
        for thread_id in threads:
            graph.submit({"claim_id": thread_id}, thread(thread_id))
        with workers(url, count, concurrency=concurrency, model_s=model_s) as some:
            watch = machine.Watch(some.pids)
            some.begin()
            for thread_id, outcome, _ in some.ended():
                if outcome == "done":
                    threads.discard(thread_id)
                if not threads:
                    break
            busy = watch.until_now()
        states = {run.state for run in journal.runs.list(limit=runs + 1000)}
    assert states == {"done"}, states
    rate = runs / busy.seconds
    return Drained(
        engine=name,
        workers=count,
        concurrency=concurrency,
        runs=runs,
        seconds=busy.seconds,
        rate=rate,
        ratio=rate / first.rate if first else 1.0,
        workers_cores=busy.ours,
        cpu_ms=busy.ours / rate * 1000,
        all_cores=busy.all,
        load=load,
    )


if __name__ == "__main__":
    typer.run(main)
