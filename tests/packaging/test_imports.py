"""
Each package is ours, wherever Python is started.

The packages are plain top-level names, so a distribution that ships a `tools` or a `graph` of its own would win over an editable install.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("checkpointing", "tools", "nodes", "graph", "service")


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imported_from_a_foreign_folder_is_ours(package: str, tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-I", "-c", f"import {package}; print({package}.__file__)"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    assert Path(found.stdout.strip()) == ROOT / package / "__init__.py"


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_says_what_is_in_it_and_is_typed(package: str) -> None:
    text = (ROOT / package / "__init__.py").read_text()

    assert text.startswith('"""')
    assert (ROOT / package / "py.typed").exists()


@pytest.mark.parametrize(
    "module", ["service.cli.app", "service.http.app", "service.inbox.pages", "service.worker.work"]
)
def test_a_door_to_the_service_can_be_the_first_that_is_imported(module: str) -> None:
    """The command line starts the server, and the server's pages use words of the command line: a circle that has to open wherever it is entered."""
    subprocess.run([sys.executable, "-c", f"import {module}"], cwd=ROOT, check=True, timeout=60)
