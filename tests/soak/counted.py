"""
What came of a soak: counted at the receivers, who keep their own books, and then read in the journal.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from checkpointing import Journal
from tests.soak.cases import Case
from tools.sandbox import SandboxControl

AT_REST = """
select state, count(*) as runs, (select count(*) from approvals where approvals.state = 'pending') as pending
from runs group by state
"""
UNSETTLED = "select key, thread_id, state from effects where state <> 'settled' order by key"
STARTS = "select count(*) as starts from audit where event = 'run.start' group by thread_id"
RESUMES = "select resumes, count(*) as runs from runs group by resumes order by resumes"
FAULTS_SHOWN = 20


def states(journal: Journal) -> tuple[Counter[str], int]:
    """Return how many runs are in each state, and how many approvals are pending at the same moment."""
    with journal.store.reading() as tx:
        rows = tx.all(AT_REST)
    return Counter({str(row["state"]): int(row["runs"]) for row in rows}), int(rows[0]["pending"]) if rows else 0


def is_at_rest(journal: Journal, cases: Sequence[Case]) -> bool | None:
    """Tell whether every run is done, parked or dead, and waits for nobody but those who will not come; `None`: not yet."""
    found, pending = states(journal)
    resting = found["done"] + found["parked"] + found["dead"]
    left = sum(case.rests == "parked" for case in cases)
    return True if found.total() == resting == len(cases) and (pending <= left) else None


def wrong(journal: Journal, control: SandboxControl, cases: Sequence[Case]) -> list[str]:
    """Return what is not as it must be, one line each; nothing if all is well."""
    found = [*_money(control, cases), *_letters(control, cases), *_journal(journal, cases)]
    return found[:FAULTS_SHOWN]


def _money(control: SandboxControl, cases: Sequence[Case]) -> Iterator[str]:
    paid: dict[str | None, list[tuple[int, str]]] = defaultdict(list)
    for one in control.payments():
        paid[one.claim_id].append((one.amount, one.payee))
    for case in cases:
        want = [] if case.paid is None else [(case.paid, case.payee)]
        if (got := paid.pop(case.claim_id, [])) != want:
            yield f"{case.claim_id} ({case.kind}) was paid {got} and not {want}"
    yield from (f"{claim_id} was paid and is no claim of ours" for claim_id in paid)


def _letters(control: SandboxControl, cases: Sequence[Case]) -> Iterator[str]:
    sent = Counter(one["claim_id"] for one in control.messages())
    for case in cases:
        want = int(case.rests == "done")
        if sent[case.claim_id] != want:
            yield f"{case.claim_id} ({case.kind}) was sent {sent[case.claim_id]} letters and not {want}"


def _journal(journal: Journal, cases: Sequence[Case]) -> Iterator[str]:
    runs = {run.thread_id: run for run in journal.runs.list(limit=1_000_000)}
    for case in cases:
        run = runs.pop(case.thread_id, None)
        if run is None:
            yield f"{case.thread_id} has no run"
        elif (run.state, run.waits_for) != (case.rests, None):
            yield f"{case.thread_id} ({case.kind}) is {run.state} ({run.reason}): {run.error}"
    yield from (f"{thread_id} has a run and is no claim of ours" for thread_id in runs)
    with journal.store.reading() as tx:
        yield from (f"effect {row['key']} of {row['thread_id']} is {row['state']}" for row in tx.all(UNSETTLED))
    yield from journal.audit.verify()


def resumes(journal: Journal) -> dict[str, Any]:
    """Return how often runs were taken up after their worker was gone, and how often they were begun at all."""
    with journal.store.reading() as tx:
        histogram = {int(row["resumes"]): int(row["runs"]) for row in tx.all(RESUMES)}
        starts = [int(row["starts"]) for row in tx.all(STARTS)]
    runs = sum(histogram.values())
    return {
        "resumes": {
            "mean": round(sum(n * count for n, count in histogram.items()) / runs, 3),
            "max": max(histogram),
            "runs by resumes": histogram,
        },
        "starts": {"mean": round(sum(starts) / runs, 2), "max": max(starts)},
    }
