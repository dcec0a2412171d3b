"""Every example file runs as it is written, in an empty folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ONCE = {"ticket_and_message": ("the desk has", "the chat has")}
"""What an example says once of what it did once; the others pay."""

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_acts_once(example: Path, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (ran.returncode, ran.stderr) == (0, "")
    said = ONCE.get(example.stem, ("paying",))
    assert {text: ran.stdout.count(text) for text in said} == dict.fromkeys(said, 1)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 2
