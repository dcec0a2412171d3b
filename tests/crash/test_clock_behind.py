"""
A run that is killed on one host, and taken up by another whose clock is an hour behind: refused or finished, never the same step again and again.

Each host is a process of its own that shifts its time before it opens anything: the journal's clock and LangGraph's checkpoint ids, which are uuid6
of the time. On Postgres leases go by the database's clock, checkpoint ids do not; on SQLite both go by the host's.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from checkpointing import Journal, journal, open_journal
from checkpointing.errors import ClockBehind, RunBusy
from tests.support.bank import Bank
from tests.support.processes import start, until
from tests.support.small_claim import THREAD, one_process

HOUR_S = 3600
ENDED, BEHIND, BUSY, KILLED = 0, 3, 75, -9


def on_host(behind_s: int, url: str, folder: Path, action: str, point: str | None) -> None:
    """Be a process on a host whose clock is behind; leave what it is told in the file `said`."""
    now, now_ns = time.time, time.time_ns
    time.time = lambda: now() - behind_s
    time.time_ns = lambda: now_ns() - behind_s * 10**9
    journal.system_clock = lambda: datetime.fromtimestamp(time.time(), UTC)  # the C library's now() has no other way in
    try:
        one_process(url, folder, action, point)
    except (ClockBehind, RunBusy) as error:
        (folder / "said").write_text(str(error))
        raise SystemExit(BEHIND if isinstance(error, ClockBehind) else BUSY) from None


def host(behind_s: int, url: str, folder: Path, action: str, point: str | None = None) -> int | None:
    """Do one *action* on a host whose clock is behind by so many seconds, and return how it ended."""
    process = start(on_host, behind_s, url, folder, action, point)
    process.join(60)
    return process.exitcode


def trace(opened: Journal, folder: Path) -> tuple[object, ...]:
    """Return everything that must not change while the clock is behind."""
    run = opened.runs.get(THREAD)
    files = [path.read_text() for path in sorted(folder.iterdir()) if path.name in ("bank", "post", "nodes", "model")]
    return opened.saver.head(THREAD), run.state, run.attempts, run.resumes, opened.audit.entries(THREAD), files


def check_paid_once(opened: Journal, folder: Path) -> None:
    run = opened.runs.get(THREAD)
    assert (run.state, run.error) == ("done", None)
    assert len(Bank(folder / "bank").executed) == 1
    assert len(Bank(folder / "post").executed) == 1
    assert list(opened.audit.verify()) == []
    assert opened.leases.holder(f"thread:{THREAD}") is None


@pytest.mark.parametrize("point", ["after effect.claim", "executed", "after checkpoint.put"])
def test_a_host_an_hour_behind_takes_a_killed_run_up_again_and_again(
    url: str, engine: str, tmp_path: Path, point: str
) -> None:
    assert host(0, url, tmp_path, "submit") == ENDED
    assert host(0, url, tmp_path, "approve", point) == KILLED

    with open_journal(url) as opened:
        until(lambda: True if opened.leases.holder(f"thread:{THREAD}") is None else None)
        before = trace(opened, tmp_path)
        for _ in range(3):
            code = host(HOUR_S, url, tmp_path, "resume")
            # On SQLite the dead worker's lease ends in an hour, as this host sees it.
            assert code == (BUSY if engine == "sqlite" else BEHIND)
            assert "clock is behind" in (tmp_path / "said").read_text()
            assert trace(opened, tmp_path) == before

        assert host(0, url, tmp_path, "resume") == ENDED
        check_paid_once(opened, tmp_path)


def test_a_decision_on_a_host_an_hour_behind_is_recorded_and_pays_when_the_clock_is_right(
    url: str, tmp_path: Path
) -> None:
    assert host(0, url, tmp_path, "submit") == ENDED

    assert host(HOUR_S, url, tmp_path, "approve") == BEHIND
    assert "clock is behind" in (tmp_path / "said").read_text()
    with open_journal(url) as opened:
        before = trace(opened, tmp_path)
        for _ in range(3):
            assert host(HOUR_S, url, tmp_path, "resume") == BEHIND
            assert trace(opened, tmp_path) == before
        assert Bank(tmp_path / "bank").calls == []

        assert host(0, url, tmp_path, "resume") == ENDED
        check_paid_once(opened, tmp_path)
