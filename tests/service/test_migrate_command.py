"""`counterfoil migrate`: the tables are brought up to date by who may, and everybody else is told what is missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from checkpointing import open_journal
from checkpointing.migrate import migrations
from tests.migrations.test_schema import FIRST, up_to
from tests.service.conftest import Cli, Filed, environment, in_process
from tests.support.roles import Role
from tools.sandbox import SandboxProcess

NEWEST = f"schema {migrations()[-1].version}, checkpoints "


@pytest.fixture
def url(empty_url: str) -> str:
    """The URL of a database that holds nothing."""
    return empty_url


@pytest.fixture
def role(new_postgres: Callable[[], str], new_role: Callable[[str], Role]) -> Role:
    """An application's role, in a database whose tables are somebody else's to make."""
    return new_role(new_postgres())


@pytest.fixture
def owner(role: Role, sandbox: SandboxProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command line as who may create tables."""
    monkeypatch.chdir(tmp_path)
    return in_process(environment(role.owners_url, sandbox.url, tmp_path))


@pytest.fixture
def app(role: Role, sandbox: SandboxProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command line as the application."""
    monkeypatch.chdir(tmp_path)
    return in_process(environment(role.url, sandbox.url, tmp_path))


def test_the_tables_are_made_once_and_then_there_is_nothing_to_do(cli: Cli) -> None:
    made, again = cli("migrate"), cli("migrate")

    assert f" was brought from no tables to {NEWEST}" in made.stdout
    assert f" is up to date: {NEWEST}" in again.stdout
    assert cli("migrate", "--check").stdout == again.stdout
    assert cli("list", "--json").document == []


def test_looking_makes_nothing(cli: Cli, engine: str, url: str) -> None:
    said = cli("migrate", "--check", code=1)

    assert f" has no tables and needs {NEWEST}" in said.stdout
    assert said.stdout.rstrip().endswith(": run counterfoil migrate")
    assert cli("migrate", "--check", code=1).stdout == said.stdout
    if engine == "sqlite":
        assert not Path(url.removeprefix("sqlite:///")).exists()


def test_what_is_told_to_programs(cli: Cli, engine: str) -> None:
    missing = cli("migrate", "--check", "--json", code=1).document
    made = cli("migrate", "--json").document
    there = cli("migrate", "--check", "--json").document

    assert (missing["up_to_date"], made["up_to_date"], there["up_to_date"]) == (False, True, True)
    assert missing["found"] == {"journal": None, "saver": None, "queue": None, "foreign": False}
    assert made["found"] == missing["found"]
    assert made["reached"] == missing["needed"] == there["found"] == there["needed"]
    assert there["found"]["journal"] == migrations()[-1].version
    assert (there["found"]["queue"] is None) == (engine == "sqlite")


def test_tables_of_an_earlier_code_are_brought_further(cli: Cli, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        up_to(FIRST, patched)
        open_journal(url).close()

    assert f" has schema {FIRST}, checkpoints " in cli("migrate", "--check", code=1).stdout
    assert f" was brought from schema {FIRST}, checkpoints " in cli("migrate").stdout
    cli("migrate", "--check")


def test_an_application_that_may_not_create_tables(
    owner: Cli, app: Cli, role: Role, filed: Callable[..., Filed]
) -> None:
    """It is told what to do, with exit code 2; once its owner has let it in, it submits and decides."""
    claim = filed()
    refused = app(*claim.submit, code=2)
    assert (
        f"role '{role.name}' may not change that; run counterfoil migrate as a role that may create tables"
        in refused.line
    )
    assert app("migrate", code=2).line == refused.line

    assert f"{role.name} may work with it" in owner("migrate", "--grant", role.name).stdout

    assert f"{claim.thread_id} is parked (approval)" in app(*claim.submit).stdout
    [asked] = app("approvals", "--json").document
    assert "is done: paid" in app("approve", asked["id"], "--as", "adjuster-17").stdout
    assert "is up to date" in app("migrate", "--check").stdout


def test_a_migration_that_the_application_may_not_make_is_told_and_changes_nothing(
    owner: Cli, app: Cli, role: Role, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        up_to(FIRST, patched)
        owner("migrate", "--grant", role.name)
    before = app("migrate", "--check", "--json", code=1).document["found"]

    assert app("list", code=2).line.endswith("nothing was changed")
    assert app("migrate", "--check", "--json", code=1).document["found"] == before

    owner("migrate", "--grant", role.name)
    assert app("list", "--json").document == []


def test_a_schema_of_its_own_is_made_and_used(owner: Cli, app: Cli, role: Role) -> None:
    schema = {"COUNTERFOIL_SCHEMA": "claims"}
    owner("migrate", "--grant", role.name, **schema)

    assert app("list", "--json", **schema).document == []
    assert role.as_owner("select count(*) from pg_class where relnamespace = 'public'::regnamespace") == [(0,)]
    assert f" has no tables and needs {NEWEST}" in app("migrate", "--check", code=1).stdout


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("COUNTERFOIL_SCHEMA", "Claims", "COUNTERFOIL_SCHEMA: a name of lower-case letters"),
        ("COUNTERFOIL_SCHEMA", "a;b", "COUNTERFOIL_SCHEMA: a name of lower-case letters"),
        ("COUNTERFOIL_CONNECTIONS", "1", "COUNTERFOIL_CONNECTIONS: Input should be greater than or equal to 2"),
        ("COUNTERFOIL_CONNECTIONS", "many", "COUNTERFOIL_CONNECTIONS: Input should be a valid integer"),
        ("COUNTERFOIL_SCHEMAS", "claims", "did you mean COUNTERFOIL_SCHEMA?"),
    ],
)
def test_a_wrong_setting_is_named(cli: Cli, name: str, value: str, said: str) -> None:
    assert said in cli("list", code=2, **{name: value}).line


def test_a_role_that_cannot_be_let_in_is_named(cli: Cli, engine: str) -> None:
    said = cli("migrate", "--grant", "nobody-at-all", code=2).line

    assert ("has no roles" if engine == "sqlite" else "no role 'nobody-at-all'; nothing was granted") in said
