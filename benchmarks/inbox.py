"""
Two hundred approvers over ten thousand approvals that wait: how long they are kept waiting, and whether every decision is recorded once.

    python -m benchmarks.inbox [--postgres URL] [--pauses 20,10,5] [--json]

Each approver, with a token of their own, asks for the first page of what waits, picks one of it, opens it, decides, and pauses; the shorter the pause,
the nearer the two cores to their limit. The servers are `counterfoil serve` without a worker, as many as asked for; the database's server, they and
the two hundred share the machine. Approvers choose at random among the first fifty, so that two often want the same one, and the later is told so.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import httpx
import typer

from benchmarks import databases, machine
from benchmarks.copies import copy_thread
from checkpointing import Journal, open_journal
from graph import thread
from graph.claims import claims_graph
from service.settings import load_settings
from service.throwaway_postgres import throwaway_database
from service.wiring import outside_of
from tools.claim_file import load_claim_file
from tools.claims_system import ClaimsSystem
from tools.sandbox import SandboxProcess

EXAMPLE = Path(__file__).parents[1] / "examples" / "claims" / "0042" / "claim.json"
ORIGINAL = "original-claim"
PAGE = 50
WARM_S = 5.0
PATIENCE_S = 60.0
TWICE = """
select subject from audit where event = 'approval.decide' group by subject having count(*) > 1 limit 5
"""
BY = "select decided_by, count(*) as n from approvals where state = 'decided' group by decided_by"
HEADER = "pause s  requests/s  decided/s      poll p50 p95      open p50 p95    decide p50 p95   all p95   late  cores: servers   all  load before"


@dataclass
class Heard:
    """
    What the approvers met in one round.

    Attributes:
        ms: How long each request took, in milliseconds, by its kind.
        decided: How often each approver was told that their decision is recorded.
        answers: How often each status was answered to a decision.
    """

    ms: dict[str, list[float]] = field(default_factory=lambda: {"poll": [], "open": [], "decide": []})
    decided: Counter[str] = field(default_factory=Counter)
    answers: Counter[int] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Round:
    """One pause's figures; milliseconds."""

    pause_s: float
    seconds: float
    requests_per_s: float
    decided_per_s: float
    p50: dict[str, float]
    p95: dict[str, float]
    p95_of_all: float
    late: int
    servers_cores: float
    all_cores: float
    load: float


def main(
    *,
    postgres: Annotated[str | None, typer.Option(metavar="URL", help="A server to use; else one is started.")] = None,
    approvers: Annotated[int, typer.Option(help="How many people decide.")] = 200,
    waiting: Annotated[int, typer.Option(help="How many approvals wait.")] = 10_000,
    servers: Annotated[int, typer.Option(help="How many processes serve.")] = 2,
    seconds: Annotated[float, typer.Option(help="How long each round is measured.")] = 30.0,
    pauses: Annotated[str, typer.Option(metavar="S,S,…", help="How long an approver thinks, in seconds.")] = "20,10,5",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
) -> None:
    """Measure how long approvers wait for the API, and check that no decision is lost or doubled."""
    with ExitStack() as stack:
        server = stack.enter_context(databases.server(postgres))
        url = stack.enter_context(throwaway_database(server))
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="counterfoil-")))
        settings = {"COUNTERFOIL_URL": url, "COUNTERFOIL_ARTEFACTS": str(folder / "artefacts")}
        tokens = _filled(settings, folder, approvers=approvers, waiting=waiting)
        addresses, pids = stack.enter_context(_served(settings, servers, folder))
        if not as_json:
            print(f"{machine.described()}, {databases.described(server)}; {datetime.now(UTC):%Y-%m-%d %H:%M} UTC")  # noqa: T201
            print(f"{approvers} approvers, {waiting} approvals that wait, {servers} servers\n\n{HEADER}")  # noqa: T201
        found = []
        told: Counter[str] = Counter()
        for pause in map(float, pauses.split(",")):
            one, heard = asyncio.run(_round(addresses, pids, tokens, pause, seconds))
            told += heard.decided
            found.append(one)
            if not as_json:
                print(_line(one), flush=True)  # noqa: T201
        said = _checked(url, told)
    print(json.dumps({"rounds": [asdict(one) for one in found], "decisions": said}) if as_json else f"\n{said}")  # noqa: T201


def _filled(settings: dict[str, str], folder: Path, *, approvers: int, waiting: int) -> dict[str, str]:
    """Park one claim for real, copy it, and return a token for each approver, by name."""
    os.environ.update(settings)
    with SandboxProcess(folder / "sandbox.db") as sandbox:
        os.environ.update({f"COUNTERFOIL_{name}_URL": sandbox.url for name in ("STRIPE", "MAIL", "CLAIMS")})
        with open_journal(settings["COUNTERFOIL_URL"], artefacts=settings["COUNTERFOIL_ARTEFACTS"]) as journal:
            _park(journal, sandbox.url)
            for first in range(1, waiting, 1000):
                copy_thread(journal.store, ORIGINAL, first=first, last=min(first + 999, waiting - 1))
            with journal.store.reading() as tx:
                tx.all("analyze")
            return {
                f"approver-{number:03}": journal.tokens.add(
                    principal=f"approver-{number:03}", roles=("approver",), by="benchmark"
                )[1]
                for number in range(approvers)
            }


def _park(journal: Journal, outside_url: str) -> None:
    filing = load_claim_file(EXAMPLE)
    ClaimsSystem(outside_url).file(filing.claim, filing.policy, reference=ORIGINAL)
    graph = claims_graph(journal, outside_of(load_settings()))
    given = {"claim_id": filing.claim.id, "documents": []}
    assert "__interrupt__" in graph.invoke(given, thread(ORIGINAL, principal="clerk"))


@contextmanager
def _served(settings: dict[str, str], count: int, folder: Path) -> Iterator[tuple[list[str], list[int]]]:
    """Run *count* servers, and provide their addresses and processes."""
    processes, addresses = [], []
    try:
        for number in range(count):
            port = _free_port()
            command = [sys.executable, "-P", "-m", "service.cli", "serve", "--no-worker", "--port", str(port)]
            with (folder / f"server-{number}.log").open("wb") as log:
                processes.append(subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **settings}))  # noqa: S603
            addresses.append(f"http://127.0.0.1:{port}")
        for address in addresses:
            _wait_for(address, folder)
        yield addresses, [process.pid for process in processes]
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(PATIENCE_S)


async def _round(
    addresses: Sequence[str], pids: Sequence[int], tokens: dict[str, str], pause: float, seconds: float
) -> tuple[Round, Heard]:
    """Have everybody at work for a while; what they met while it got going is decided too, and not measured."""
    heard, warm, load = Heard(), Heard(), machine.load()
    at = {"heard": warm, "until": time.monotonic() + WARM_S + seconds}
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=PATIENCE_S) as client:
        people = [
            asyncio.create_task(_approver(client, addresses[number % len(addresses)], (name, token), pause, at))
            for number, (name, token) in enumerate(tokens.items())
        ]
        await asyncio.sleep(WARM_S)
        at["heard"], watch = heard, machine.Watch(pids)
        await asyncio.sleep(seconds)
        busy = watch.until_now()
        await asyncio.gather(*people)
    everything = Heard(decided=warm.decided + heard.decided)
    return _summed(heard, busy, pause, load), everything


async def _approver(
    client: httpx.AsyncClient, address: str, who: tuple[str, str], pause: float, at: dict[str, Any]
) -> None:
    name, token = who
    headers, api = {"Authorization": f"Bearer {token}"}, f"{address}/api/v1/approvals"

    async def asked(kind: str, method: str, url: str, **more: Any) -> httpx.Response:
        began = time.monotonic()
        answer = await client.request(method, url, headers=headers, **more)
        at["heard"].ms[kind].append((time.monotonic() - began) * 1000)
        return answer

    await asyncio.sleep(random.uniform(0, pause))  # noqa: S311  # nothing secret
    while time.monotonic() < at["until"]:
        page = (await asked("poll", "GET", f"{api}?limit={PAGE}&mine=true")).raise_for_status().json()["items"]
        one = random.choice(page)  # noqa: S311
        shown = (await asked("open", "GET", f"{api}/{one['id']}")).raise_for_status().json()
        decision = {"type": "approve", "payload_hash": shown["payload_hash"]}
        answer = await asked("decide", "POST", f"{api}/{one['id']}/decision", json=decision)
        at["heard"].answers[answer.status_code] += 1
        if answer.status_code == httpx.codes.OK:
            at["heard"].decided[name] += 1
        elif answer.status_code != httpx.codes.CONFLICT:
            raise AssertionError(f"a decision was answered {answer.status_code}: {answer.text}")
        await asyncio.sleep(random.uniform(pause / 2, pause * 3 / 2))  # noqa: S311


def _summed(heard: Heard, busy: machine.Busy, pause: float, load: float) -> Round:
    every = [ms for kind in heard.ms.values() for ms in kind]
    return Round(
        pause_s=pause,
        seconds=busy.seconds,
        requests_per_s=len(every) / busy.seconds,
        decided_per_s=heard.decided.total() / busy.seconds,
        p50={kind: median(ms) for kind, ms in heard.ms.items()},
        p95={kind: _p95(ms) for kind, ms in heard.ms.items()},
        p95_of_all=_p95(every),
        late=heard.answers[httpx.codes.CONFLICT],
        servers_cores=busy.ours,
        all_cores=busy.all,
        load=load,
    )


def _checked(url: str, told: Counter[str]) -> dict[str, int]:
    """Compare what the approvers were told with what the journal has."""
    with open_journal(url) as journal, journal.store.reading() as tx:
        by = {str(row["decided_by"]): int(row["n"]) for row in tx.all(BY)}
        assert by == dict(told), "a decision was lost, or recorded of which nobody was told"
        assert tx.all(TWICE) == [], "an approval was decided twice"
    return {"told": told.total(), "recorded": sum(by.values()), "lost": 0, "doubled": 0}


def _p95(ms: Sequence[float]) -> float:
    return quantiles(ms, n=20)[-1]


def _line(one: Round) -> str:
    kinds = "".join(f"{one.p50[kind]:10.1f}{one.p95[kind]:8.1f}" for kind in ("poll", "open", "decide"))
    return (
        f"{one.pause_s:7g}{one.requests_per_s:12.1f}{one.decided_per_s:11.1f}{kinds}{one.p95_of_all:10.1f}{one.late:7}"
        f"{one.servers_cores:16.2f}{one.all_cores:6.2f}{one.load:13.2f}"
    )


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _wait_for(address: str, folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            if httpx.get(f"{address}/healthz").is_success:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    said = "\n".join(log.read_text() for log in folder.glob("server-*.log"))
    raise AssertionError(f"no server at {address}: {said}")


if __name__ == "__main__":
    typer.run(main)
