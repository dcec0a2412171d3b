"""`counterfoil sandbox`: it listens, has the claims it was told to load, and says in one line why it cannot."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.service.conftest import EXAMPLES, in_process
from tools.claim_file import load_claim_file
from tools.claims_system import ClaimsSystem
from tools.sandbox import SandboxControl, SandboxProcess


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


def test_a_file_that_another_sandbox_uses_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with SandboxProcess(tmp_path / "sandbox.db"):
        said = in_process({})("sandbox", "--port", "0", code=2)

    assert said.line.startswith("counterfoil: sandbox: another sandbox uses sandbox.db")


@pytest.mark.parametrize(("claim_id", "said"), [("0048", "is withdrawn now"), ("0049", "is 2440.00 EUR now")])
def test_later_plays_what_happens_to_a_claim(tmp_path: Path, claim_id: str, said: str) -> None:
    with SandboxProcess(tmp_path / "sandbox.db") as own:
        file = load_claim_file(EXAMPLES / claim_id / "claim.json")
        cli = in_process({"COUNTERFOIL_CLAIMS_URL": own.url})
        assert f"submit claim {claim_id} first" in cli("sandbox", "later", claim_id, code=2).line
        before = ClaimsSystem(own.url).file(file.claim, file.policy, reference="t")

        assert said in cli("sandbox", "later", claim_id).stdout
        assert before != ClaimsSystem(own.url).claim(claim_id)


def test_later_without_a_plan_or_a_sandbox_is_one_line(tmp_path: Path) -> None:
    nowhere = in_process({"COUNTERFOIL_CLAIMS_URL": "http://127.0.0.1:1"})

    assert "later.json cannot be read" in nowhere("sandbox", "later", "0042", code=2).line
    assert "is it running? Start one with counterfoil sandbox" in nowhere("sandbox", "later", "0048", code=4).line
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "later.json").write_text('{"burn": true}')
    assert "is neither" in nowhere("sandbox", "later", "x", "--claims", str(tmp_path), code=2).line


def test_a_fault_is_ordered_at_the_running_sandbox(control: SandboxControl, sandbox: SandboxProcess) -> None:
    cli = in_process({"COUNTERFOIL_CLAIMS_URL": sandbox.url})
    said = cli("sandbox", "fault", "claims", "error_500", "--match", "none-7", "--times", "2").stdout

    assert said == "the next 2 calls that write to claims with 'none-7' in it: error_500\n"
    [ordered] = control.faults()
    assert [ordered[name] for name in ("at", "kind", "match", "times")] == ["claims", "error_500", "none-7", 2]
    assert "'moon' is not one of" in cli("sandbox", "fault", "moon", "error_500", code=2).stderr


def test_a_folder_without_claims_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = in_process({})("sandbox", "--load", str(tmp_path), code=2)

    assert "there is no claim in" in said.line
    assert list(tmp_path.iterdir()) == []
