"""`counterfoil sandbox`: it listens, has the claims it was told to load, and says in one line why it cannot."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.service.conftest import EXAMPLES, in_process
from tools.claims_system import ClaimsSystem
from tools.sandbox import SandboxProcess


def test_it_serves_and_has_the_claims_that_were_loaded(tmp_path: Path) -> None:
    arguments = ["--port", "0", "--database", "s.db", "--load", str(EXAMPLES)]
    with subprocess.Popen(
        [sys.executable, "-m", "service.cli", "sandbox", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={"PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout
        url = process.stdout.readline().removeprefix("sandbox listening on ").strip()
        assert process.stdout.readline() == "10 claims filed\n"
        claim = ClaimsSystem(url).claim("0042")
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate(timeout=20)

    assert (process.returncode, complaints) == (0, "")
    assert claim.total == 2090_00


def test_a_taken_port_is_one_line(sandbox: SandboxProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = in_process({})("sandbox", "--port", sandbox.url.rpartition(":")[2], code=2)

    assert "ddress already in use" in said.line


def test_a_folder_without_claims_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = in_process({})("sandbox", "--load", str(tmp_path), code=2)

    assert "there is no claim in" in said.line
    assert list(tmp_path.iterdir()) == []
