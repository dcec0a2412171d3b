"""Every notebook runs from top to bottom, is committed without outputs, defines nothing of its own, and leaves nothing behind."""

from __future__ import annotations

import ast
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))

RUN = """
import sys
import nbformat
from nbclient import NotebookClient

notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": sys.argv[2]}}).execute()
nbformat.write(notebook, sys.argv[3])
"""
"""nbclient in a process of its own: its event loop and sockets are no part of this one's warnings."""


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request: pytest.FixtureRequest) -> Path:
    """Each notebook in turn."""
    found: Path = request.param
    return found


def code(notebook: Path) -> list[Any]:
    cells = nbformat.read(notebook, as_version=4).cells
    return [cell for cell in cells if cell.cell_type == "code"]


def processes_that_name(folder: Path) -> list[str]:
    """The command lines that name *folder*, where the system shows them."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it ended while we looked
            found.append(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [line for line in found if str(folder) in line]


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


def test_a_notebook_runs_and_leaves_nothing(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere, temporary = tmp_path / "elsewhere", tmp_path / "temporary"
    elsewhere.mkdir()
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    executed = tmp_path / "executed.ipynb"
    ran = subprocess.run(
        [sys.executable, "-c", RUN, str(notebook), str(elsewhere), str(executed)],
        capture_output=True,
        check=False,
        text=True,
        timeout=180,
    )

    assert ran.returncode == 0, ran.stderr
    assert list(elsewhere.iterdir()) == []
    assert [path.name for path in temporary.iterdir() if path.name.startswith("counterfoil")] == []
    assert processes_that_name(temporary) == []
    assert any("<svg" in str(output) for cell in code(executed) for output in cell.outputs)


def test_a_notebook_is_committed_without_outputs(notebook: Path) -> None:
    for cell in code(notebook):
        assert cell.outputs == []
        assert cell.execution_count is None


def test_a_notebook_defines_nothing_of_its_own(notebook: Path) -> None:
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    for cell in code(notebook):
        for node in ast.walk(ast.parse(cell.source)):
            assert not isinstance(node, definitions), cell.source
