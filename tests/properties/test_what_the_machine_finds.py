"""
The state machine is worth as much as what it finds: each fault planted into the code is found, and its script finds it again.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.properties.history import Crash, Event, Part
from tests.properties.machine import DAY, explore
from tests.properties.model import Broken
from tests.properties.script import retell

ROOT = Path(__file__).resolve().parents[2]


def found(fault: str, *, examples: int) -> Broken:
    """Run the machine on the faulty code, and return what it found."""
    with pytest.raises(Broken) as caught:
        explore(
            "sqlite",
            lambda folder: f"sqlite:///{folder}/journal.db",
            examples=examples,
            fixed=1,
            fault=fault,
            shrink=False,
        )
    return caught.value


@pytest.mark.parametrize(("fault", "promise"), [("last_decision_wins", "G3"), ("settled_is_called_again", "G1")])
def test_a_planted_fault_is_found(fault: str, promise: str) -> None:
    assert str(found(fault, examples=100)).startswith(promise)


@pytest.mark.parametrize(
    ("fault", "promise", "event"),
    [
        ("no_fence", "G7", Event("overtaken", "submit", crash=Crash("before checkpoint.put"))),
        ("keys_live_for_ever", "G1", Event("submit", crash=Crash("executed", then_s=DAY))),
    ],
)
def test_a_rare_fault_is_seen_where_it_shows(fault: str, promise: str, event: Event) -> None:
    """Drawn, these are rare: two things must come together."""
    retell("sqlite", [Part("chain"), Part("chain")], [event])

    with pytest.raises(Broken, match=promise):
        retell("sqlite", [Part("chain"), Part("chain")], [event], fault=fault)


def test_what_was_found_is_told_again_by_its_script(tmp_path: Path) -> None:
    broken = found("settled_is_called_again", examples=100)
    [note] = [one for one in broken.__notes__ if "tells this history again" in one]
    script = tmp_path / "counterexample.py"
    script.write_text(note.partition("\n\n")[2])

    told = subprocess.run([sys.executable, script], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)

    assert told.returncode == 1
    assert re.search(f"Broken: {re.escape(str(broken))}$", told.stderr, re.MULTILINE)
    assert Path(note.partition(" ")[0]).read_text() == script.read_text()
