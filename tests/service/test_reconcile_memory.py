"""
A comparison holds a page of each side, however long they are: the peaks of two processes, one of which has many times the effects of the other.

`COUNTERFOIL_RECONCILE_EFFECTS=100000` compares as many; the fast form takes a twentieth of that.
"""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

from checkpointing import open_journal
from service.cli.app import command_line
from tests.service.conftest import environment
from tests.support.processes import finish, start
from tests.support.sandboxes import forked_sandbox
from tools.sandbox.store import SandboxStore

FEW = 1_000
MANY = int(os.environ.get("COUNTERFOIL_RECONCILE_EFFECTS", "5000"))
PYTHON_MAY_GROW = 500_000
"""Bytes by which Python's own peak may differ: what a page more or less of garbage makes, and far less than a hundred bytes an effect."""
PROCESS_MAY_GROW_KB = 12_000
"""SQLite's caches, of the journal and of the scratch, have a fixed size that a thousand effects do not fill."""

PAID_MS = 1_750_000_000_000
WRONG_EVERY = 10

EFFECT = """
insert into effects (slot, key, effect, thread_id, step, arguments, digest, state, outcome, lease, fence, root, task, checkpoint,
    calls, replays, cost, claimed_ms, called_ms, settled_ms)
values (:slot, :key, 'pay', :thread_id, 'pay.0', :arguments, 'd', 'settled', :outcome, 'none', 0, '', '', '', 1, 0, 0, :at, :at, :at)
"""
TRANSFER = """
insert into transfers (id, created, destination, transfer_group, claim_id, key, body)
values (:id, :created, :destination, null, :claim_id, :key, :body)
"""


def test_a_comparison_of_many_effects_needs_no_more_memory_than_one_of_few(
    new_url: Callable[[], str], tmp_path: Path
) -> None:
    few = peaks(new_url(), tmp_path / "few", FEW)
    many = peaks(new_url(), tmp_path / "many", MANY)

    sys.stderr.write(f"{FEW} effects: {few}; {MANY} effects: {many}\n")
    assert (few["listed"], few["differences"]) == (FEW, FEW // WRONG_EVERY)
    assert (many["listed"], many["differences"]) == (MANY, MANY // WRONG_EVERY)
    assert many["python"] - few["python"] < PYTHON_MAY_GROW
    assert many["process_kb"] - few["process_kb"] < PROCESS_MAY_GROW_KB


def peaks(url: str, folder: Path, count: int) -> dict[str, Any]:
    """Compare *count* effects in a process of its own, and return what it needed at most and what it found."""
    folder.mkdir()
    database = folder / "sandbox.db"
    seed_receiver(database, count)
    seed_ledger(url, folder, count)
    with forked_sandbox(database) as sandbox:
        finish(start(compare, environment(url, sandbox.url, folder), folder), timeout_s=3600)
    found = json.loads((folder / "report.json").read_text())
    assert "error" not in found, found
    measured: dict[str, Any] = json.loads((folder / "peaks.json").read_text())
    return {**measured, "differences": found["differences"], "listed": found["listed"][0]["executed"]}


def compare(settings: dict[str, str], folder: Path) -> None:
    """Compare as the command does, writing its document into a file; once before that, so that what is loaded once is no part of the peak."""
    os.environ.update(settings, COUNTERFOIL_TIMEOUT_SECONDS="120")
    os.chdir(folder)  # away from any .env
    tracemalloc.start()
    before = 0
    for file, since in (("warm.json", ("--since", "1s")), ("report.json", ())):
        with (folder / file).open("w") as report:
            os.dup2(report.fileno(), 1)
            command_line()(["reconcile", "--json", *since], standalone_mode=False)
            sys.stdout.flush()
        if since:
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
    measured = {
        "python": tracemalloc.get_traced_memory()[1],
        "python_before": before,
        "process_kb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }
    (folder / "peaks.json").write_text(json.dumps(measured))


def seed_ledger(url: str, folder: Path, count: int) -> None:
    """Settle *count* payments, straight into the table."""

    def rows() -> Iterator[dict[str, Any]]:
        for number in range(count):
            yield {
                "slot": f"once|pay|{number}",
                "key": key_of(number),
                "thread_id": f"claim-{number}",
                "arguments": json.dumps(arguments_of(number)),
                "outcome": json.dumps({"id": f"tr_{number}", **arguments_of(number)}),
                "at": PAID_MS + number,
            }

    with open_journal(url, artefacts=str(folder)) as journal, journal.store.transaction("test.seed") as tx:
        cast("Any", tx.cursor).executemany(tx.dialect.translate(EFFECT), rows())


def seed_receiver(database: Path, count: int) -> None:
    """Execute the same payments, in no order of their keys, and every tenth of them wrongly."""
    SandboxStore(database).close()
    with sqlite3.connect(database) as connection:
        connection.executemany(TRANSFER, (transfer(number) for number in range(count)))
    connection.close()


def transfer(number: int) -> dict[str, Any]:
    facts = arguments_of(number)
    body = {
        "id": f"tr_{number}",
        "object": "transfer",
        "amount": facts["amount"] + (1 if number % WRONG_EVERY == 0 else 0),
        "created": PAID_MS // 1000,
        "currency": "eur",
        "destination": facts["payee"],
        "metadata": {"claim_id": facts["claim_id"], "counterfoil_key": key_of(number)},
        "transfer_group": None,
    }
    return {
        "id": body["id"],
        "created": body["created"],
        "destination": body["destination"],
        "claim_id": facts["claim_id"],
        "key": key_of(number),
        "body": json.dumps(body),
    }


def key_of(number: int) -> str:
    return f"claim-{number}:pay.0:pay:{number * 2_654_435_761 % 2**32:016x}"


def arguments_of(number: int) -> dict[str, Any]:
    return {"claim_id": str(number), "amount": 100_00 + number, "currency": "EUR", "payee": "acct_mara"}
