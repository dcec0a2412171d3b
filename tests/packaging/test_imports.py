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
