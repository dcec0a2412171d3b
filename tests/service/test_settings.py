"""Settings that cannot be used are one line with the variable's name and without its value; secrets are never printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.settings import Settings, load_settings
from tests.service.conftest import in_process

SECRET = "open-sesame"  # noqa: S105  # nobody's
WRONG_URLS = [
    f"postgresql://claims:{SECRET}%zz@localhost/claims",
    f"postgresql://claims:{SECRET}@[localhost/claims",
    f"postgresql://claims:{SECRET}@loc℀lhost/claims",
    f"postgresql://claims:{SECRET}@127.0.0.1:1/claims",
    f"mysql://claims:{SECRET}@localhost/claims",
    f"sqlite://claims:{SECRET}@localhost/claims.db",
    SECRET,
]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("url", WRONG_URLS)
@pytest.mark.parametrize("command", [("list",), ("list", "--json"), ("show", "claim-0042")])
def test_a_url_that_cannot_be_used_is_not_repeated(url: str, command: tuple[str, ...]) -> None:
    said = in_process({"COUNTERFOIL_URL": url})(*command, code=2)
    given = in_process({})("--url", url, *command, code=2)

    assert said == given
    assert len((said.stdout if "--json" in command else said.line).strip()) > 30
    assert SECRET not in said.stdout + said.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("COUNTERFOIL_LEASE_SECONDS", "soon"),
        ("COUNTERFOIL_LEASE_SECONDS", "0.01"),
        ("COUNTERFOIL_LEASE_SECONDS", "inf"),
        ("COUNTERFOIL_APPROVAL_HOURS", "-1"),
        ("COUNTERFOIL_TIMEOUT_SECONDS", "nan"),
    ],
)
def test_a_wrong_variable_is_named(name: str, value: str) -> None:
    said = in_process({name: value})("list", code=2)

    assert said.line.startswith(f"counterfoil: {name}: Input should be ")
    assert not list(Path.cwd().iterdir()), "no journal was made"


def test_a_place_for_documents_that_cannot_be_is_one_line() -> None:
    said = in_process({"COUNTERFOIL_ARTEFACTS": "moon://documents"})("list", code=2)

    assert "cannot keep artefacts at moon://…: Protocol not known: moon" in said.line


def test_a_dotenv_file_is_read_and_url_wins(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("COUNTERFOIL_URL=sqlite:///from-dotenv.db\n")
    cli = in_process({})

    assert "from-dotenv.db" in cli("list").stdout
    assert "given.db" in cli("--url", "sqlite:///given.db", "list").stdout


def test_a_dotenv_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"\xff\xfe")

    assert in_process({})("list", code=2).line == "counterfoil: the file .env is not UTF-8 text"


@pytest.mark.parametrize(
    ("url", "place"),
    [
        (f"postgresql://claims:{SECRET}@db.internal:5433/claims", "db.internal:5433/claims"),
        ("postgresql:///claims", "localhost/claims"),
        ("sqlite:////var/lib/claims.db", "/var/lib/claims.db"),
        ("sqlite:///claims.db", "claims.db"),
    ],
)
def test_the_journal_is_named_without_who_we_are(url: str, place: str) -> None:
    settings = load_settings(url)

    assert settings.place == place
    assert SECRET not in repr(settings)


def test_the_defaults_are_a_file_here_and_a_sandbox_on_this_machine() -> None:
    settings = Settings()

    assert settings.place == "counterfoil.db"
    assert settings.stripe_url == settings.mail_url == settings.claims_url == "http://127.0.0.1:8042"
