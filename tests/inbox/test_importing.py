"""The pages, the API and the command line need one another in one direction only, so each may be imported first."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["service.inbox.pages", "service.http.app", "service.cli"])
def test_each_may_be_imported_first(module: str) -> None:
    done = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
