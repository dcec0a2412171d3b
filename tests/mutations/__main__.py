"""
Run every mutation, or those whose name or file has one of the words given: `python -m tests.mutations fence leases.py`.

Exit code 0: without any one of the safeguards the suite goes red, and with all of them the same tests are green. 1: a mutant survives or is no
program, or a test is red by itself.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

from service.throwaway_postgres import throwaway_postgres
from tests.mutations.catalogue import MUTATIONS
from tests.mutations.workshop import UNDISTURBED, Mutation, Verdict, Workshop

AT_ONCE = int(os.environ.get("COUNTERFOIL_MUTATIONS_AT_ONCE", "2"))


def main(words: Sequence[str]) -> int:
    """Run what *words* choose, print a table, and return the exit code."""
    chosen = [one for one in MUTATIONS if not words or any(word in f"{one.name} {one.file}" for word in words)]
    with ExitStack() as stack:
        postgres = os.environ.get("COUNTERFOIL_TEST_POSTGRES")
        if not postgres:
            folder = stack.enter_context(TemporaryDirectory(prefix="counterfoil-"))
            postgres = stack.enter_context(throwaway_postgres(Path(folder)))
        free = stack.enter_context(workshops(postgres))
        pool = stack.enter_context(ThreadPoolExecutor(AT_ONCE))
        whole = pool.submit(with_every_safeguard, free, chosen)
        caught = [
            shown(one, *run) for one, run in zip(chosen, pool.map(lambda one: without(free, one), chosen), strict=True)
        ]
        green = whole.result()
    say(f"{len(chosen)} safeguards taken away, one at a time: {caught.count(False)} survived")
    say(f"with all of them: {'green' if green.green else f'RED, {green.failed} {green.said}'}")
    return 0 if all(caught) and green.green else 1


@contextmanager
def workshops(postgres: str) -> Iterator[SimpleQueue[Workshop]]:
    """Copies to work in, one for each run at once."""
    free: SimpleQueue[Workshop] = SimpleQueue()
    with TemporaryDirectory(prefix="counterfoil-") as folder:
        for number in range(AT_ONCE):
            free.put(Workshop(Path(folder) / str(number), postgres))
        yield free


def with_every_safeguard(free: SimpleQueue[Workshop], chosen: Sequence[Mutation]) -> Verdict:
    """Run all the tests in the code as it is: they must be green, or their red would say nothing."""
    workshop = free.get()
    try:
        return workshop.test([*UNDISTURBED, *dict.fromkeys(test for one in chosen for test in one.tests)])
    finally:
        free.put(workshop)


def without(free: SimpleQueue[Workshop], mutation: Mutation) -> tuple[Verdict, float]:
    """Run one mutation's tests without its safeguard; return what they said and how many seconds it took."""
    workshop, began = free.get(), time.monotonic()
    try:
        with workshop.mutated(mutation):
            return workshop.test(mutation.run()), time.monotonic() - began
    finally:
        free.put(workshop)


def shown(mutation: Mutation, verdict: Verdict, seconds: float) -> bool:
    """Print one line, and tell whether the suite went red for the right reason."""
    word = "red" if verdict.red else "SURVIVES" if verdict.green else "BROKEN"
    say(f"{word:<9}{mutation.name:<55}{seconds:5.1f} s  {verdict.failed[:80]}")
    if not verdict.red:
        say(f"         {mutation.why}\n         {verdict.said}")
    return verdict.red


def say(line: str) -> None:
    print(line, flush=True)  # noqa: T201  # a command's output


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
