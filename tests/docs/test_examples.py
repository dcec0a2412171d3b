"""Every example file runs as it is written, in an empty folder, and again in that folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LISTED = {"ticket_and_message": ("the desk has", "the chat has")}
"""What an example lists of what it did, each time it is run; the others say once that they pay."""

NEEDS_A_SERVER = "agent_server_client"
"""Run by `tests/server/test_agent_server.py`."""

EXAMPLES = sorted(path for path in (Path(__file__).parents[2] / "examples").glob("*.py") if path.stem != NEEDS_A_SERVER)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_twice_and_acts_once(example: Path, tmp_path: Path) -> None:
    first, second = (
        subprocess.run(
            [sys.executable, "-W", "error", str(example)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        for _ in range(2)
    )

    assert [(ran.returncode, ran.stderr) for ran in (first, second)] == [(0, ""), (0, "")]
    if said := LISTED.get(example.stem):
        assert {text: second.stdout.count(text) for text in said} == dict.fromkeys(said, 1)
    else:
        assert (first.stdout + second.stdout).count("paying") == 1


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 2
