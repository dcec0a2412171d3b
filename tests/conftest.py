"""
What every test may use: a journal's URL on each engine, a clock that tests move, a Postgres server of our own, and the sandbox.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from checkpointing import Journal, open_journal
from service.throwaway_postgres import throwaway_database, throwaway_postgres
from tests.support.clock import MovingClock
from tests.support.consumer import Consumer, consumer
from tests.support.mailbox import Mailbox, mailbox
from tests.support.roles import Role, make_role
from tools.sandbox import SandboxControl, SandboxProcess

ENGINES = ("sqlite", "postgres")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a Postgres server: the one given, or one started here, away from pytest's folders, which other test runs clear."""
    given = os.environ.get("COUNTERFOIL_TEST_POSTGRES")
    if given:
        yield given
        return
    with TemporaryDirectory(prefix="counterfoil-") as folder, throwaway_postgres(Path(folder)) as url:
        yield url


@pytest.fixture(scope="session")
def migrated_postgres(postgres_server: str) -> Iterator[str]:
    """The URL of a database that holds an empty journal, to be copied; nobody connects to it."""
    with throwaway_database(postgres_server) as url, TemporaryDirectory(prefix="counterfoil-") as artefacts:
        open_journal(url, artefacts=artefacts).close()
        yield url


@pytest.fixture
def new_postgres(postgres_server: str) -> Iterator[Callable[[], str]]:
    """Makes an empty database, without a journal, and returns its URL; it is dropped when the test ends, so that a whole run fits on a small disk."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(throwaway_database(postgres_server))


@pytest.fixture
def new_role(new_postgres: Callable[[], str]) -> Iterator[Callable[[str], Role]]:
    """Makes a role that may connect to a database of `new_postgres`, and nothing else; it ends before the database does."""
    made: list[Role] = []

    def create(owners_url: str) -> Role:
        made.append(make_role(owners_url))
        return made[-1]

    yield create
    for role in made:
        role.drop()


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Each engine in turn."""
    return str(request.param)


@pytest.fixture
def new_url(engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[], str]]:
    """Makes the URL of a new, empty journal on the engine."""
    with ExitStack() as stack:

        def create() -> str:
            if engine == "sqlite":
                return f"sqlite:///{tmp_path}/{uuid.uuid4().hex}.db"
            server, journal = (request.getfixturevalue(name) for name in ("postgres_server", "migrated_postgres"))
            return stack.enter_context(throwaway_database(server, like=journal))

        yield create


@pytest.fixture
def new_empty_url(engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[], str]:
    """Makes the URL of a database that holds nothing, not even a journal's tables, on the engine."""
    if engine == "sqlite":
        return lambda: f"sqlite:///{tmp_path}/{uuid.uuid4().hex}.db"
    create: Callable[[], str] = request.getfixturevalue("new_postgres")
    return create


@pytest.fixture
def empty_url(new_empty_url: Callable[[], str]) -> str:
    """The URL of a database that holds nothing, on the engine."""
    return new_empty_url()


@pytest.fixture
def url(new_url: Callable[[], str]) -> str:
    """The URL of a new, empty journal."""
    return new_url()


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    """The receivers, in a process of their own; one for all tests, so each uses claims, channels and subjects that nobody else does."""
    with SandboxProcess(tmp_path_factory.mktemp("sandbox") / "sandbox.db") as process:
        yield process


@pytest.fixture
def control(sandbox: SandboxProcess) -> Iterator[SandboxControl]:
    """What the sandbox is told to do wrong, and what it counted; faults end with the test."""
    yield sandbox.control
    sandbox.control.clear_faults()
    sandbox.control.release()


@pytest.fixture
def clock() -> MovingClock:
    """A clock that stands until the test moves it."""
    return MovingClock()


@pytest.fixture
def opened(url: str, tmp_path: Path) -> Iterator[Callable[..., Journal]]:
    """Opens the journal; every one of them is closed at the end."""
    journals: list[Journal] = []

    def open_it(**options: Any) -> Journal:
        journals.append(open_journal(url, artefacts=str(tmp_path / "artefacts"), **options))
        return journals[-1]

    yield open_it
    for journal in journals:
        journal.close()


@pytest.fixture
def journal(opened: Callable[..., Journal]) -> Journal:
    """An open journal on the engine."""
    return opened()


@pytest.fixture
def hook() -> Iterator[Consumer]:
    """A consumer of webhooks."""
    with consumer() as told:
        yield told


@pytest.fixture
def box() -> Iterator[Mailbox]:
    """A mail server."""
    with mailbox() as told:
        yield told
