"""
What `deploy/` has is what there is: every command in it parses, every setting in it is one, and the image's steps install a command that works.

No container engine runs here, so the steps of the container file are run as they stand in a copy of the repository.
"""

from __future__ import annotations

import configparser
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from service.cli.app import command_line
from service.settings import Settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "counterfoil-worker@.service"
SETTINGS = {f"COUNTERFOIL_{name.upper()}" for name in Settings.model_fields}


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return found


def container() -> str:
    return (DEPLOY / "Containerfile").read_text()


def unit() -> configparser.SectionProxy:
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # systemd's names have capitals
    parser.read_string(UNIT.read_text())
    return parser["Service"]


def parse(arguments: list[str]) -> Any:
    """Parse a command line as Counterfoil would, without running it, and return the command's context."""
    group = get_command(command_line())
    name, *rest = arguments
    return group.commands[name].make_context(name, rest)  # type: ignore[attr-defined]  # it is a group


def test_the_unit_runs_a_worker_that_may_drain_before_it_is_killed() -> None:
    program, *arguments = shlex.split(unit()["ExecStart"])
    worker = parse(arguments)

    assert program.endswith("/counterfoil")
    assert worker.info_name == "worker"
    assert worker.params["drain_s"] < int(unit()["TimeoutStopSec"])
    assert unit()["KillSignal"] == "SIGTERM"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze here")
def test_systemd_takes_the_unit() -> None:
    done = subprocess.run(["systemd-analyze", "verify", str(UNIT)], capture_output=True, text=True, check=False)
    complaints = [line for line in done.stderr.splitlines() if "is not executable" not in line]

    assert complaints == []


def test_every_service_of_the_compose_file_runs_a_command_that_exists() -> None:
    for name, service in compose()["services"].items():
        if "command" in service:
            assert parse(service["command"]).info_name == service["command"][0], name


def test_the_workers_may_drain_before_the_container_is_killed() -> None:
    worker = compose()["services"]["worker"]

    assert parse(worker["command"]).params["drain_s"] < float(worker["stop_grace_period"].removesuffix("s"))


def test_every_setting_of_the_compose_file_is_one() -> None:
    given = set(compose()["x-counterfoil"]["environment"])

    assert given
    assert given <= SETTINGS


def test_the_image_runs_a_worker_unless_it_is_told_otherwise() -> None:
    entry = re.findall(r'^ENTRYPOINT \["(.*)"\]$', container(), re.MULTILINE)
    command = re.findall(r"^CMD (\[.*\])$", container(), re.MULTILINE)

    assert entry == ["counterfoil"]
    assert parse(yaml.safe_load(command[0])).info_name == "worker"


def test_the_steps_of_the_image_install_a_command_that_works(tmp_path: Path) -> None:
    """The build stage's `uv` steps, in a copy of what is in git; then the command, as the image has it: without the repository."""
    copy, elsewhere = tmp_path / "copy", tmp_path / "elsewhere"
    elsewhere.mkdir()
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for name in filter(None, files.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    environment = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    steps = re.findall(r"^RUN (uv sync .*)$", container(), re.MULTILINE)
    for step in steps:
        subprocess.run(shlex.split(step), cwd=copy, env=environment, check=True, capture_output=True)
    venv = copy / ".venv"
    for package in ("checkpointing", "tools", "nodes", "graph", "service"):
        shutil.rmtree(copy / package)
    said = subprocess.run(
        [str(venv / "bin" / "counterfoil"), "--url", "sqlite:///new.db", "queue", "--json"],
        cwd=elsewhere,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )

    assert len(steps) == 2
    assert said.returncode == 2, said.stderr
    assert "no journal at new.db" in said.stdout
