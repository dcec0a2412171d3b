"""
The demo's stage: a folder, a journal, a sandbox and worker processes, all of them gone at the end, however it ends.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Literal
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import psycopg
from pydantic import SecretStr

from checkpointing.errors import JournalUnusable, Refused
from service.demo_worker import PATIENCE_S, DemoFailed, Worker
from service.setting_names import PREFIX
from service.settings import Settings
from service.throwaway_postgres import throwaway_postgres
from tools.sandbox import SandboxControl, SandboxProcess
from tools.sandbox.process import SandboxDidNotStart

EngineName = Literal["sqlite", "postgres"]

LEASE_S = 2.0
POLL_S = 0.05


class FolderInUse(Refused, OSError):
    """The folder to play in is not new and not empty; nothing was touched."""


@dataclass(slots=True)
class Stage:
    """
    What the demo plays on.

    Attributes:
        settings: Those of every worker.
        workers: Every worker that was started, in order.
    """

    folder: Path
    settings: Settings
    workers: list[Worker] = field(default_factory=list)

    @property
    def sandbox(self) -> SandboxControl:
        """The sandbox's control: where money and messages are counted."""
        return SandboxControl(self.settings.claims_url)

    def start(self, name: str, *arguments: str) -> Worker:
        """Start `counterfoil` with *arguments* as a process of its own."""
        log = self.folder / "logs" / f"{len(self.workers) + 1}-{name}.log"
        with log.open("wb") as said:
            process = subprocess.Popen(  # noqa: S603  # our own module, by the interpreter that runs
                [sys.executable, "-P", "-m", "service.cli", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env=_environment(self.settings),
            )
        self.workers.append(Worker(name, process, log))
        return self.workers[-1]

    def until(self, condition: Callable[[], bool], *, what: str, worker: Worker) -> None:
        """
        Wait until *condition* holds while *worker* is at work.

        Raises:
            DemoFailed: the worker ended first, or it took too long.
        """
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if worker.process.poll() is not None:
                raise DemoFailed(f"{worker.name} ended before {what}", worker.said())
            if time.monotonic() > deadline:
                raise DemoFailed(f"{what}: not within {PATIENCE_S:.0f} s", worker.said())
            time.sleep(POLL_S)

    def clear(self) -> None:
        """Kill whatever still runs of what was started here."""
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.kill()


@contextmanager
def set_up(engine: EngineName, keep: Path | None, given: Settings) -> Iterator[Stage]:
    """
    Set the stage, and leave nothing of it: no process, no folder (unless *keep* names it), no table.

    Raises:
        DemoFailed: the sandbox does not start.
        FolderInUse: *keep* is in use.
        JournalUnusable: there is no Postgres.
    """
    with ExitStack() as stack:
        stack.enter_context(_ended_by_sigterm())
        folder = stack.enter_context(_folder(keep))
        url = stack.enter_context(_journal(engine, folder, given))
        sandbox = SandboxProcess(folder / "sandbox.db")
        stack.callback(sandbox.stop)
        try:
            outside = sandbox.start()
        except SandboxDidNotStart as error:
            raise DemoFailed("the sandbox did not start", str(error)) from error
        stage = Stage(folder, _settings(url, folder, outside))
        stack.callback(stage.clear)
        yield stage


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """Make the folder; its name is short, because a socket's path in it must be."""
    if keep is None:
        folder = Path(tempfile.mkdtemp(prefix="counterfoil-demo-"))
    else:
        folder = keep.resolve()
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise FolderInUse(f"{keep} is in use; --keep takes a folder that is new or empty")
    (folder / "logs").mkdir(parents=True)
    try:
        yield folder
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _journal(engine: EngineName, folder: Path, given: Settings) -> Iterator[str]:
    """Provide an empty journal: a file, a schema of the server that was given, or a server of our own."""
    url = given.url.get_secret_value()
    if engine == "sqlite":
        yield f"sqlite:///{quote(str(folder))}/journal.db"
    elif urlsplit(url).scheme in ("postgres", "postgresql"):
        with _schema(url) as own:
            yield own
    else:
        # Not in the folder that is kept: the path of a socket has 107 characters at most.
        with (
            tempfile.TemporaryDirectory(prefix="cf-pg-", ignore_cleanup_errors=True) as place,
            throwaway_postgres(Path(place)) as own,
        ):
            yield own


@contextmanager
def _schema(url: str) -> Iterator[str]:
    """Make a schema of our own on somebody's server, so that the demo meets no run of theirs, and drop it at the end."""
    name = f"counterfoil_demo_{uuid.uuid4().hex[:12]}"
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"create schema {name}".encode())
    except psycopg.Error as error:
        why = str(error).strip().splitlines()[0]
        raise JournalUnusable(f"the demo needs a schema of its own in the database: {why}") from error
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    query["options"] = f"{query.get('options', '')} -csearch_path={name}".strip()
    try:
        yield urlunsplit(parts._replace(query=urlencode(query, quote_via=quote)))
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"drop schema {name} cascade".encode())


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the demo as Ctrl-C does: with everything taken down."""

    def end(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _settings(url: str, folder: Path, outside: str) -> Settings:
    """Return the settings of every worker: this sandbox, the embedded assessor, a short lease, and time to be held."""
    return Settings(
        url=SecretStr(url),
        artefacts=str(folder / "artefacts"),
        lease_seconds=LEASE_S,
        approval_hours=72,
        stripe_key=SecretStr("sk_test_demo"),
        stripe_url=outside,
        mail_key=SecretStr("re_demo"),
        mail_url=outside,
        claims_url=outside,
        timeout_seconds=2 * PATIENCE_S,
        model=None,
    )


def _environment(settings: Settings) -> dict[str, str]:
    """Return a worker's environment: ours, with no setting of the caller's left in it."""
    own = {name: value for name, value in os.environ.items() if not name.upper().startswith(PREFIX)}
    for name, value in settings:
        text = value.get_secret_value() if isinstance(value, SecretStr) else value
        if text is not None:
            own[f"{PREFIX}{name.upper()}"] = str(text)
    return own
