"""What the tests of the service share: the command line in this process, a sandbox in another, and claims nobody else uses."""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import structlog
from typer.testing import CliRunner

from service.cli.app import command_line
from tools.sandbox import SandboxProcess

EXAMPLES = Path(__file__).parents[2] / "examples" / "claims"
NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Said:
    """How a command ended, and what it said where."""

    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.stdout)

    @property
    def line(self) -> str:
        """The one line on stderr."""
        (line,) = self.stderr.splitlines()
        return line


@dataclass(frozen=True)
class Filed:
    """A claim file nobody else uses."""

    path: Path
    claim_id: str

    @property
    def thread_id(self) -> str:
        return f"claim-{self.claim_id}"

    @property
    def submit(self) -> tuple[str, ...]:
        return ("submit", str(self.path), "--thread", self.thread_id, "--as", "intake")


Cli = Callable[..., Said]


@pytest.fixture
def settings(url: str, sandbox: SandboxProcess, tmp_path: Path) -> dict[str, str]:
    """The environment of a command."""
    return environment(url, sandbox.url, tmp_path)


@pytest.fixture
def cli(settings: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Said]:
    """The command line; `code` is how the command must end."""
    monkeypatch.chdir(tmp_path)  # away from any .env
    return in_process(settings)


@pytest.fixture
def filed(tmp_path: Path) -> Callable[..., Filed]:
    """Makes a claim file from the first example, with an id of its own and with what *change* does to it."""

    def make(change: Callable[[dict[str, Any]], object] | None = None) -> Filed:
        content = json.loads((EXAMPLES / "0042" / "claim.json").read_text())
        claim_id = f"s-{next(NUMBERS)}"
        folder = tmp_path / claim_id
        folder.mkdir()
        content["claim"] |= {"id": claim_id, "policy_number": f"P-{claim_id}"}
        content["policy"]["number"] = f"P-{claim_id}"
        for document in content["claim"]["documents"]:
            (folder / document["path"]).write_bytes(f"{document['name']} {claim_id}".encode())
        if change:
            change(content)
        (folder / "claim.json").write_text(json.dumps(content))
        return Filed(folder / "claim.json", claim_id)

    return make


def environment(url: str, outside: str, folder: Path) -> dict[str, str]:
    """Return settings for this journal and this sandbox."""
    return {
        "COUNTERFOIL_URL": url,
        "COUNTERFOIL_ARTEFACTS": str(folder / "artefacts"),
        "COUNTERFOIL_STRIPE_URL": outside,
        "COUNTERFOIL_MAIL_URL": outside,
        "COUNTERFOIL_CLAIMS_URL": outside,
        "COLUMNS": "100",
    }


def in_process(settings: dict[str, str]) -> Cli:
    """Return a function that runs a command in this process; `code` is how it must end, other words are further variables."""
    app = command_line()

    def run(*arguments: str, code: int = 0, **more: str) -> Said:
        with logs_as_before():
            result = CliRunner().invoke(app, list(arguments), env={**settings, **more})
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        said = Said(result.exit_code, result.stdout, result.stderr)
        assert said.code == code, said
        return said

    return run


@contextmanager
def logs_as_before() -> Iterator[None]:
    """Leave the logs of this process as they are found: those of a command go to a stream that ends with it."""
    events, handlers = structlog.get_config(), logging.getLogger().handlers[:]
    try:
        yield
    finally:
        structlog.configure(**events)
        logging.getLogger().handlers[:] = handlers


def approval_of(cli: Cli, filed: Filed) -> str:
    """Return the id of the one approval the claim waits for."""
    waiting = [a for a in cli("approvals", "--json").document if a["thread_id"] == filed.thread_id]
    assert len(waiting) == 1
    return str(waiting[0]["id"])
