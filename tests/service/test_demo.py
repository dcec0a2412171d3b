"""The demo as a newcomer runs it: a process of its own, nothing prepared, nothing left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest

from service.demo_report import Report, Tally, major
from service.demo_stage import set_up
from service.demo_worker import DemoFailed
from service.settings import Settings, load_settings
from service.wiring import opened

END_S = 100


def started(*arguments: str, folder: Path) -> subprocess.Popen[str]:
    """Start the demo where no setting of ours reaches it."""
    environment = {n: v for n, v in os.environ.items() if not n.startswith("COUNTERFOIL_")}
    return subprocess.Popen(
        [sys.executable, "-m", "service.cli", "demo", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**environment, "TMPDIR": str(folder)},
    )


@pytest.fixture(scope="module")
def played() -> Iterator[Callable[[str], dict[str, tuple[int, str, str]]]]:
    """
    Plays the demo on an engine twice at the same time, as text and as JSON; once for all tests.

    Away from pytest's folders: each other run of pytest that begins closes them to the user that the demo's Postgres runs as.
    """
    stack = ExitStack()

    @cache
    def play(engine: str) -> dict[str, tuple[int, str, str]]:
        folders = {kind: Path(stack.enter_context(TemporaryDirectory(prefix="counterfoil-"))) for kind in "tj"}
        demos = {
            "text": started("--engine", engine, folder=folders["t"]),
            "json": started("--engine", engine, "--json", folder=folders["j"]),
        }
        ends = {kind: demo.communicate(timeout=END_S) for kind, demo in demos.items()}
        assert [left_in(folder) for folder in folders.values()] == [[], []]
        return {kind: (demos[kind].returncode, *ends[kind]) for kind in demos}

    with stack:
        yield play


def test_each_claim_is_paid_once_although_its_worker_is_killed(
    engine: str, played: Callable[[str], dict[str, tuple[int, str, str]]]
) -> None:
    code, story, complaints = played(engine)["text"]

    assert (code, complaints) == (0, "")
    lines = story.splitlines()
    assert "claim-0042: 1 payment, total 1840" in lines
    assert "claim-0043: 1 payment, total 1840" in lines
    assert "claim-0042: 1 message to the claimant" in lines
    assert "claim-0043: 1 message to the claimant" in lines
    assert "Audit verified: every chain is whole." in lines


def test_the_story_tells_where_the_workers_were_killed(
    engine: str, played: Callable[[str], dict[str, tuple[int, str, str]]]
) -> None:
    _, story, _ = played(engine)["text"]

    assert "claim-0042 waits for approval; no process is alive." in story
    assert "claim-0043 waits for approval; no process is alive." in story
    assert "claim-0042 was killed in step 7" in story
    assert "claim-0043 was killed inside step 6 (pay), after the money moved and before it was recorded." in story
    assert re.search(r"claim-0043 +pay +2 calls: 1 executed, 1 repeated", story)
    assert re.search(r"claim-0042 +pay +1 call: 1 executed, 0 repeated", story)


def test_as_json_it_prints_what_was_counted_and_nothing_else(
    engine: str, played: Callable[[str], dict[str, tuple[int, str, str]]]
) -> None:
    code, document, complaints = played(engine)["json"]

    assert (code, complaints) == (0, "")
    assert json.loads(document) == {
        "claims": {
            "claim-0042": {"payments": 1, "total": 1840, "state": "done"},
            "claim-0043": {"payments": 1, "total": 1840, "state": "done"},
        },
        "kills": 2,
    }


def test_interrupted_it_takes_everything_down(tmp_path: Path) -> None:
    demo = started(folder=tmp_path)
    assert demo.stdout
    while "SIGKILL" not in (line := demo.stdout.readline()):
        assert line, "the demo ended before it could be interrupted"
    processes = children(demo.pid)
    demo.send_signal(signal.SIGTERM)
    _, complaints = demo.communicate(timeout=30)

    assert demo.returncode == 130
    assert complaints == "counterfoil: interrupted; every process of the demo has ended\n"
    assert len(processes) >= 2, "the sandbox and a worker at least"
    assert [pid for pid in processes if Path(f"/proc/{pid}").exists()] == []
    assert left_in(tmp_path) == []


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "mine.txt").write_text("mine")
    demo = started("--keep", "kept", folder=tmp_path)
    story, complaints = demo.communicate(timeout=30)

    assert demo.returncode == 2
    assert complaints.startswith("counterfoil: kept is in use")
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["mine.txt"]
    assert "claim-0042" not in story


@pytest.mark.parametrize(("minor", "shown"), [(184_000, "1840"), (184_050, "1840.5"), (0, "0")])
def test_whole_amounts_are_integers(minor: int, shown: str) -> None:
    assert str(major(minor)) == shown


def test_on_a_server_that_was_given_it_uses_a_schema_of_its_own(
    new_postgres: Callable[[], str],
) -> None:
    url = new_postgres()
    given = load_settings(url)
    with set_up("postgres", None, given) as stage, opened(stage.settings) as journal:
        assert journal.runs.list() == []
        assert schemas(url, "runs") == schemas(url, "checkpoints")
        assert schemas(url, "runs")[0].startswith("counterfoil_demo_")

    assert schemas(url, "runs") == []


def test_a_worker_that_fails_is_shown_with_what_it_said() -> None:
    with set_up("sqlite", None, Settings()) as stage, opened(stage.settings):
        worker = stage.start("show", "show", "claim-0000")
        with pytest.raises(DemoFailed, match="show ended with exit code 2") as failed:
            worker.end()
        left = stage.start("sandbox", "sandbox", "--port", "0")

    assert failed.value.log == "counterfoil: there is no run for thread 'claim-0000'; see counterfoil list\n"
    assert left.killed, "what still ran at the end was taken down"


@pytest.mark.parametrize(
    ("change", "once"),
    [
        ({}, True),
        ({"payments": 2}, False),
        ({"payments": 0}, False),
        ({"messages": 2}, False),
        ({"state": "parked"}, False),
    ],
)
def test_a_report_says_whether_everything_happened_once(change: dict[str, Any], once: bool) -> None:
    whole: dict[str, Any] = {"payments": 1, "total": 184_000, "messages": 1, "state": "done"}
    tally = Tally("claim-0042", **{**whole, **change}, effects=(), executed={}, repeated={})

    assert Report((tally,), kills=1, faults=()).once is once
    assert not Report((tally,), kills=0, faults=()).once
    assert not Report((tally,), kills=1, faults=("entry 2 was changed",)).once


def schemas(url: str, table: str) -> list[str]:
    """Return the schemas that have this table."""
    with psycopg.connect(url) as connection:
        rows = connection.execute("select table_schema from information_schema.tables where table_name = %s", (table,))
        return [row[0] for row in rows]


def left_in(folder: Path) -> list[str]:
    """Return what was left; the embedded Postgres keeps one empty lock file for all its servers."""
    return [path.name for path in folder.iterdir() if path.name != ".lockfile"]


def children(pid: int) -> list[int]:
    """Return the processes *pid* has started and not yet waited for."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found
