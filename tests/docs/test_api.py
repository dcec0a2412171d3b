"""The examples of `docs/api.md`, run as they stand against a server of our own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.service.conftest import environment
from tests.support.processes import until
from tests.support.served import serving
from tools.sandbox import SandboxControl, SandboxProcess

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLE = ROOT / "examples" / "claims" / "0042"


def test_the_examples_of_the_api_run(sandbox: SandboxProcess, control: SandboxControl, tmp_path: Path) -> None:
    claim = tmp_path / "claim"
    shutil.copytree(EXAMPLE, claim)
    number = f"api-{os.getpid()}"
    text = (claim / "claim.json").read_text()
    (claim / "claim.json").write_text(text.replace('"id": "0042"', f'"id": "{number}"'))
    settings = environment(f"sqlite:///{tmp_path}/journal.db", sandbox.url, tmp_path)
    script = "\n".join(BLOCK.findall((ROOT / "docs" / "api.md").read_text()))
    with serving(settings, tmp_path) as served:
        given = {"API": f"{until(served.at)}/api/v1", "CLAIM": str(claim), "THREAD": f"claim-{number}"}
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            env={**os.environ, **settings, **given, "PATH": path},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert served.end() == 0, served.said

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "event: run.park" in ran.stdout
