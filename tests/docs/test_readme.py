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
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"`counterfoil ([a-z]+)(?: ([a-z]+))?")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in an empty folder."""
    monkeypatch.chdir(tmp_path)


def test_the_blocks_run_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    namespace: dict[str, Any] = {"__name__": "readme"}
    for number, block in enumerate(BLOCKS, start=1):
        exec(compile(block, f"README.md, block {number}", "exec"), namespace)  # noqa: S102  # our own README

    assert namespace["done"]["payment"] == {"paid": 184_000}
    assert capsys.readouterr().out.count("paying 184000 cents for claim 0042 under key ") == 1


def test_the_forty_lines_run_twice_and_pay_once(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        runpy.run_path(str(ROOT / "examples" / "claim_in_forty_lines.py"), run_name="__main__")

    assert capsys.readouterr().out.count("paying 184000 cents") == 1


def test_the_readme_and_the_example_are_the_same_code() -> None:
    """The README leaves out docstrings and prints; the declarations are the example's."""
    example = (ROOT / "examples" / "claim_in_forty_lines.py").read_text()
    for line in (
        "STRIPE_LIKE = Receiver(honours_keys=True, key_life=timedelta(hours=24))",
        '@effect(receiver=STRIPE_LIKE, name="pay", once=lambda arguments: arguments["claim_id"])',
        "def pay(*, claim_id: str, amount: int, key: str) -> dict:",
        'builder.add_node("pay", effect_node(pay, journal, into="payment", approval="payout"))',
    ):
        assert line in example
        assert line in BLOCKS[0] + BLOCKS[1]


@pytest.mark.parametrize("command", sorted(set(COMMAND.findall(README))), ids=" ".join)
def test_every_command_it_names_exists(command: tuple[str, str]) -> None:
    asked = [*filter(None, command), "--help"]

    assert CliRunner().invoke(command_line(), asked).exit_code == 0
