"""The benchmarks run; their figures are not judged here, because a machine's mood is no test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def measured(script: str, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", f"benchmarks.{script}", *arguments, "--json"]
    found: dict[str, Any] = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    return found


def test_the_scaling_of_workers_is_measured() -> None:
    found = measured("scale", "--engine", "sqlite", "--counts", "1", "--runs", "2", "--model-s", "0.001")

    rows = found["drained"]
    assert [(row["engine"], row["workers"], row["concurrency"], row["runs"]) for row in rows] == [
        ("sqlite", 1, 1, 2)
    ] * 2
    assert all(row["rate"] == row["runs"] / row["seconds"] for row in rows)


def test_the_cost_of_parked_runs_is_measured(postgres_server: str) -> None:
    found = measured("parked", "--few", "10", "--many", "20", "--rounds", "1", "--postgres", postgres_server)

    assert [row["what"] for row in found["beside"]] == ["10 parked", "20 parked", "and 20 jobs"]
    assert all(row["memory_kb"] > 0 and row["wake_ms"] > 0 for row in found["beside"])


def test_what_approvers_wait_for_is_measured_and_no_decision_is_lost(postgres_server: str) -> None:
    options = ("--approvers", "8", "--waiting", "60", "--servers", "1", "--seconds", "3", "--pauses", "1")
    found = measured("inbox", *options, "--postgres", postgres_server)

    [one], said = found["rounds"], found["decisions"]
    assert 0 < said["told"] == said["recorded"]
    assert one["p95_of_all"] > 0
