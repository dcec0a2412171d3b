"""
A copy of the repository in which one safeguard is taken away, and what the tests say to it.

The copy has its own folder and the original's virtual environment, whose editable install points at the original. `PYTHONPATH` stands before
that, so the copy is what is imported, by pytest and by every process a test starts; `where_from` shows it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 600
ROUNDS = "40"
"""Rounds of a race, enough for a mutant to lose one."""

UNDISTURBED = tuple(
    f"tests/graph/test_input_table.py::test_a_claim_is_paid_once_after_it_was_approved[{engine}-by_invoke]"
    for engine in ("sqlite", "postgres")
)
"""Pass under a mutation: a mutant that cannot pay one claim in peace is broken, which proves nothing about its safeguard."""

REASONS = ("AssertionError", "assert ", "Failed: DID NOT RAISE", "checkpointing.errors.")
"""How a test says that the behaviour is wrong; anything else (a name that is not there, bad SQL) says that the mutant is no program."""

PACKAGES = ("checkpointing", "tools", "nodes", "graph", "service", "tests")


@dataclass(frozen=True, slots=True)
class Mutation:
    """
    One safeguard, and what takes it away.

    Attributes:
        name: The safeguard.
        file: Where it stands.
        old: The text that is it; occurs once in the file.
        new: What stands there instead.
        tests: Which tests must go red; each as pytest names it, with or without its parameters.
        why: What goes wrong without the safeguard.
        in_peace: Without it a claim that nobody disturbs is paid all the same; `UNDISTURBED` shows it.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    why: str
    in_peace: bool = True

    def run(self) -> tuple[str, ...]:
        """Return the tests to be run without the safeguard, in order."""
        return (*UNDISTURBED, *self.tests) if self.in_peace else self.tests


@dataclass(frozen=True, slots=True)
class Verdict:
    """
    What one run of the tests said.

    Attributes:
        code: pytest's exit code: 0 all passed, 1 a test failed, above that pytest could not do its work; -1 it did not end.
        failed: The test that failed first, or nothing.
        said: Its message's first line, or the end of what pytest printed.
        broken: It failed before or after the test itself, in a fixture.
    """

    code: int
    failed: str
    said: str
    broken: bool = False

    @property
    def green(self) -> bool:
        return self.code == 0

    @property
    def red(self) -> bool:
        """Whether a test failed because the behaviour is wrong."""
        undisturbed = {one.partition("::")[2] for one in UNDISTURBED}
        return self.code == 1 and not self.broken and self.failed not in undisturbed and self.said.startswith(REASONS)


class Workshop:
    """One copy of the repository."""

    def __init__(self, folder: Path, postgres: str) -> None:
        """Copy what git knows, and what it does not ignore, into *folder*; the tests use the server at *postgres*."""
        self.folder = folder
        self.postgres = postgres
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in filter(None, names.split("\0")):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, folder / name)

    @contextmanager
    def mutated(self, mutation: Mutation) -> Iterator[None]:
        """Take the safeguard away, and put it back."""
        file = self.folder / mutation.file
        whole = file.read_text()
        assert whole.count(mutation.old) == 1, f"{mutation.name!r}: its text stands {whole.count(mutation.old)} times"
        file.write_text(whole.replace(mutation.old, mutation.new))
        try:
            yield
        finally:
            file.write_text(whole)

    def test(self, tests: Sequence[str]) -> Verdict:
        """Run *tests*, up to the first that fails."""
        report = self.folder / "report.xml"
        report.unlink(missing_ok=True)
        code, printed = self.python(
            "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *tests
        )
        if code not in (0, 1) or not report.exists():
            return Verdict(code, "", printed[-300:])
        for case in ET.parse(report).iter("testcase"):  # noqa: S314  # our own report
            for kind in ("failure", "error"):
                if (found := case.find(kind)) is not None:
                    said = str(found.get("message"))
                    return Verdict(code, str(case.get("name")), said.splitlines()[0], broken=kind == "error")
        return Verdict(code, "", "")

    def python(self, *arguments: str) -> tuple[int, str]:
        """Run Python on the copy; return its exit code and what it printed."""
        environment = {**os.environ, "PYTHONPATH": str(self.folder)}
        environment.pop(
            "COUNTERFOIL_MUTATIONS_AT_ONCE", None
        )  # no setting of the product, which refuses what it does not know
        environment["COUNTERFOIL_TEST_POSTGRES"] = self.postgres
        environment["COUNTERFOIL_RACE_ROUNDS"] = ROUNDS
        environment["PYTHONDONTWRITEBYTECODE"] = "1"  # two versions of one file may have the same second and size
        environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # a third of the time it takes to start, and none is needed
        with subprocess.Popen(
            [sys.executable, "-P", *arguments],
            cwd=self.folder,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process:
            try:
                printed, _ = process.communicate(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # its own group: the processes its tests started too
                return -1, f"did not end within {PATIENCE_S} s"
        return process.returncode, printed

    def where_from(self) -> list[str]:
        """Return the file of each of our packages, as this copy's processes import it, and as the processes those start do."""
        code, printed = self.python("-m", "tests.mutations.where_from", *PACKAGES)
        assert code == 0, printed
        return printed.split()
