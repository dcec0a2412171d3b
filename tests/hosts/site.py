"""
What the hosts work at: one journal, the claims agent and its receivers, and a worker process on each host, as one starts it in production.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from pydantic import SecretStr

from checkpointing import Run
from checkpointing.audit import Entry
from graph import thread
from service.setting_names import PREFIX
from service.settings import Settings
from service.wiring import App, wired
from service.worker.jobs import Rhythm
from tests.hosts.network import Host, Network
from tests.hosts.server import Server
from tests.support.processes import until
from tests.support.sandboxes import forked_sandbox
from tools.claim_file import load_claim_file
from tools.claims_system import ClaimsSystem
from tools.sandbox import SandboxControl

EXAMPLE = Path(__file__).parents[2] / "examples" / "claims" / "0044" / "claim.json"
"""A claim that nobody has to approve."""
NUMBERS = itertools.count(1)
LEASE_S = 3.0
IMPATIENT = """
from checkpointing import postgres
from service.cli.app import main
from service.worker import jobs
postgres.WAIT_S = jobs.WAIT_S = 1.0
main()
"""
"""The command line of somebody who does not wait half a minute for a connection."""
SWEEP_S = Rhythm().sweep
"""How often workers look for what has no job: a default, for it is no setting."""

BLOCKED = """
select pid from pg_stat_activity where client_addr = cast(%s as inet) and wait_event_type = 'Lock' and query like %s
"""
"""Which connections of a host wait for a lock, at which statement."""


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker process on a host, and what it logs."""

    host: Host
    process: subprocess.Popen[bytes]
    log: Path

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return what it logged under this name, in order."""
        lines = self.log.read_text().splitlines()
        found = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
        return [event for event in found if event.get("event") == name]

    def came_to(self, claim_id: str) -> list[str]:
        """Return what its advances of the claim came to, in order."""
        return [one["outcome"] for one in self.events("run_advanced") if one["thread"] == thread_of(claim_id)]

    @property
    def alive(self) -> bool:
        """Whether the process is still the one that was started."""
        return self.process.poll() is None

    def drained(self, within_s: float) -> int:
        """Ask it to end, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(within_s)


@dataclass(slots=True)
class Site:
    """
    Everything the hosts share.

    Attributes:
        app: The journal and the graph, in this process, which is never cut off.
        settings: Those of every worker.
    """

    net: Network
    app: App
    settings: Settings
    control: SandboxControl
    folder: Path
    workers: list[Worker] = field(default_factory=list)

    def start(self, host: Host, *options: str, impatient: bool = False) -> Worker:
        """Start a worker on *host* and wait until it takes up work; one that is *impatient* waits for a connection for one second only."""
        log = self.folder / f"{host.name}-{len(self.workers)}.log"
        code = ("-c", IMPATIENT) if impatient else ("-m", "service.cli")
        command = host.command(sys.executable, "-P", *code, "worker", "--json", *options)
        with log.open("wb") as said:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                cwd=self.folder,
                env=_environment(self.settings),
            )
        worker = Worker(host, process, log)
        self.workers.append(worker)
        known = self._registered()
        until(lambda: True if self._registered() > known else None, 180)
        return worker

    def submit(self) -> str:
        """File a claim nobody else uses, leave its run to the workers, and return its id."""
        claim_id = f"h{os.getpid()}-{next(NUMBERS)}"
        file = load_claim_file(EXAMPLE)
        claim = file.claim.model_copy(update={"id": claim_id, "policy_number": f"P-{claim_id}", "documents": ()})
        policy = file.policy.model_copy(update={"number": f"P-{claim_id}"})
        ClaimsSystem(self.settings.claims_url).file(claim, policy, reference=thread_of(claim_id))
        self.app.graph.submit({"claim_id": claim_id, "documents": []}, thread(thread_of(claim_id)))
        return claim_id

    def run(self, claim_id: str) -> Run:
        """Return the claim's run."""
        return self.app.journal.runs.get(thread_of(claim_id))

    def entries(self, claim_id: str, host: Host | None = None, event: str = "") -> list[Entry]:
        """Return what the audit says of the claim's run: of everybody or what one host's worker did, and of one event or all."""
        found = self.app.journal.audit.entries(thread_of(claim_id))
        who = f"{host.name}:" if host else ""
        return [one for one in found if one.actor.startswith(who) and event in ("", one.event)]

    def checkpoints(self, claim_id: str) -> list[str]:
        """Return the ids of the run's checkpoints."""
        return [
            one.config["configurable"]["checkpoint_id"]
            for one in self.app.journal.saver.list(thread(thread_of(claim_id)))
        ]

    @contextmanager
    def blocked_in_a_transaction(self, host: Host, at: str) -> Iterator[None]:
        """Let the host's worker come as far as the statement that begins with *at*, and cut it off there; the server then carries the statement out."""
        with self._here() as connection, connection.transaction():
            connection.execute("lock table audit in exclusive mode")
            yield
            with self._here() as watching:
                until(lambda: watching.execute(BLOCKED, (host.address, f"%{at}%")).fetchone(), 120)
            self.net.cut(host, "silent")

    def _here(self) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(self.app.settings.url.get_secret_value(), autocommit=True)

    def _registered(self) -> int:
        with self._here() as connection:
            row = connection.execute("select max(id) from procrastinate_workers").fetchone()
        return int(row[0] or 0) if row else 0


@contextmanager
def site_on(net: Network, server: Server, folder: Path) -> Iterator[Site]:
    """Open a journal in a database of its own, and end every worker at the end; every host is healed."""
    database = f"hosts_{next(NUMBERS)}"
    server.new_database(database)
    with ExitStack() as stack:
        sandbox = stack.enter_context(forked_sandbox(folder / "sandbox.db", net.outside))
        here = Settings(
            url=SecretStr(server.here(database)),
            artefacts=str(folder / "artefacts"),
            lease_seconds=LEASE_S,
            stripe_url=sandbox.url,
            mail_url=sandbox.url,
            claims_url=sandbox.url,
            timeout_seconds=120,
            model=None,
        )
        there = here.model_copy(update={"url": SecretStr(server.there(database))})
        site = Site(net, stack.enter_context(wired(here)), there, sandbox.control, folder)
        try:
            yield site
        finally:
            for worker in site.workers:
                worker.process.kill()
                worker.process.wait()
            for host in net.hosts:
                net.heal(host)


def thread_of(claim_id: str) -> str:
    """Return the claim's thread."""
    return f"claim-{claim_id}"


def _environment(settings: Settings) -> dict[str, str]:
    """Return a worker's environment: ours, with no setting of the caller's left in it."""
    own = {name: value for name, value in os.environ.items() if not name.upper().startswith(PREFIX)}
    own[f"{PREFIX}URL"] = settings.url.get_secret_value()
    for name in ("artefacts", "lease_seconds", "stripe_url", "mail_url", "claims_url", "timeout_seconds"):
        own[f"{PREFIX}{name.upper()}"] = str(getattr(settings, name))
    return own
