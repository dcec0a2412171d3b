"""The sandbox's life: it ends cleanly, survives its own restart, and holds its file alone."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from checkpointing.errors import Unreachable
from tests.support.processes import until
from tools.payments import pay_effect
from tools.sandbox import SandboxProcess
from tools.sandbox.process import SandboxDidNotStart


def pay(url: str, key: str = "k-1") -> object:
    effect = pay_effect(api_key="sk_test_1", base_url=url, timeout_s=20)
    return effect.function(claim_id="7", amount=500, currency="EUR", payee="acct_a", key=key)


def test_it_survives_its_own_death_with_all_it_had(tmp_path: Path) -> None:
    with SandboxProcess(tmp_path / "s.db") as sandbox:
        made = pay(sandbox.url)
        sandbox.control.fault("emails", "rate_limit", times=3)
        sandbox.control.set_balance(1000)
        url = sandbox.url
        sandbox.kill()
        assert sandbox.start() == url, "the address is the same"

        assert pay(sandbox.url) == made, "the key is still known"
        assert len(sandbox.control.payments("7")) == 1
        assert [call["outcome"] for call in sandbox.control.calls()] == ["answered", "replayed"]
        assert sandbox.control.faults()[0]["left"] == 3


@pytest.mark.parametrize(("kind", "count"), [("hold_before", 0), ("hold_after", 1)])
def test_an_end_while_an_answer_is_held_executes_nothing_more(tmp_path: Path, kind: str, count: int) -> None:
    with SandboxProcess(tmp_path / "s.db") as sandbox:
        sandbox.control.fault("transfers", kind)
        errors: list[BaseException] = []

        def caller() -> None:
            with pytest.raises(Unreachable) as lost:
                pay(sandbox.url)
            errors.append(lost.value)

        thread = threading.Thread(target=caller)
        thread.start()
        sandbox.control.wait_held()
        ended = sandbox.stop()
        thread.join(timeout=20)
        sandbox.start()

        assert (ended, len(errors)) == ((0, ""), 1)
        assert len(sandbox.control.payments()) == count


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    port_file = tmp_path / "port"
    command = [sys.executable, "-m", "tools.sandbox", "--port", "0"]
    command += ["--database", str(tmp_path / "s.db"), "--port-file", str(port_file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        line = process.stdout.readline().decode()
        port = port_file.read_text()
        process.send_signal(number)
        out, err = process.communicate(timeout=20)

    assert line == f"sandbox listening on http://127.0.0.1:{port}\n"
    assert (process.returncode, out, err) == (0, b"", b"")


def test_a_database_is_held_by_one_sandbox(tmp_path: Path) -> None:
    with (
        SandboxProcess(tmp_path / "s.db"),
        pytest.raises(SandboxDidNotStart, match=r"another sandbox uses .*s\.db"),
    ):
        SandboxProcess(tmp_path / "s.db").start()


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s.db").write_text("not a database " * 100)

    with pytest.raises(SandboxDidNotStart, match="cannot be held by this sandbox"):
        SandboxProcess(tmp_path / "s.db").start()
    with pytest.raises(SandboxDidNotStart, match="cannot be held by this sandbox"):
        SandboxProcess(tmp_path / "no-folder" / "s.db").start()


def test_a_taken_port_is_said_in_one_line(tmp_path: Path) -> None:
    with SandboxProcess(tmp_path / "a.db") as sandbox:
        port = int(sandbox.url.rpartition(":")[2])

        with pytest.raises(SandboxDidNotStart, match=r"^sandbox: .*[Aa]ddress already in use.*$"):
            SandboxProcess(tmp_path / "b.db", port).start()


def test_it_ends_when_its_starter_dies(tmp_path: Path) -> None:
    starter = (
        "import os, sys, signal; from pathlib import Path; from tools.sandbox import SandboxProcess\n"
        f"sandbox = SandboxProcess(Path({str(tmp_path / 's.db')!r})); print(sandbox.start(), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run([sys.executable, "-P", "-c", starter], capture_output=True, text=True, check=False)
    url = ended.stdout.strip()

    assert ended.returncode == -signal.SIGKILL
    until(lambda: True if is_gone(url) else None)


def is_gone(url: str) -> bool:
    try:
        pay(url)
    except Unreachable:
        return True
    return False
