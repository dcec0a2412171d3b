"""What the README shows runs as it stands there."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from service.cli.app import command_line

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "claim_in_forty_lines.py"
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"`counterfoil ([a-z]+)(?: ([a-z]+))?")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in an empty folder."""
    monkeypatch.chdir(tmp_path)


def test_the_blocks_run_in_order_and_again(capsys: pytest.CaptureFixture[str]) -> None:
    """Twice from the top, in one folder, as somebody does who tries it."""
    for _ in range(2):
        namespace: dict[str, Any] = {"__name__": "readme"}
        for number, block in enumerate(BLOCKS, start=1):
            exec(compile(block, f"README.md, block {number}", "exec"), namespace)  # noqa: S102  # our own README

        assert namespace["done"]["payment"] == {"paid": 184_000}
        assert namespace["line"].run.state == "done"
    assert capsys.readouterr().out.count("paying 184000 cents for claim 0042 under key ") == 1


def test_the_forty_lines_run_twice_and_pay_once(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        runpy.run_path(str(EXAMPLE), run_name="__main__")

    assert capsys.readouterr().out.count("paying 184000 cents") == 1


def lines_of_code(source: str) -> list[str]:
    """The lines that are not blank and no docstring; a docstring of the example stands alone."""
    without = re.sub(r'^ *""".*?"""\n', "", source, flags=re.DOTALL | re.MULTILINE)
    return [line.strip() for line in without.splitlines() if line.strip()]


def test_forty_lines_are_forty_at_most() -> None:
    assert len(lines_of_code(EXAMPLE.read_text())) <= 40
    assert sum(len(lines_of_code(block)) for block in BLOCKS[:3]) <= 40


def test_the_readme_and_the_example_are_the_same_code() -> None:
    """But for how the journal is opened, and what the example prints."""
    example = lines_of_code(EXAMPLE.read_text())
    only_here = [line for block in BLOCKS[:3] for line in lines_of_code(block) if line not in example]

    assert only_here == ['journal = open_journal("sqlite:///claims.db")']


@pytest.mark.parametrize("command", sorted(set(COMMAND.findall(README))), ids=" ".join)
def test_every_command_it_names_exists(command: tuple[str, str]) -> None:
    asked = [*filter(None, command), "--help"]

    assert CliRunner().invoke(command_line(), asked).exit_code == 0
