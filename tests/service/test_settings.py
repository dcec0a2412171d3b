"""Settings that cannot be used are one line with the variable's name and without its value; secrets are never printed."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from checkpointing import open_journal
from checkpointing.budget import Caps
from service.setting_names import OF_THE_TESTS
from service.settings import Settings, load_settings, names
from tests.service.conftest import in_process

ROOT = Path(__file__).resolve().parents[2]
SECRET = "open-sesame"  # noqa: S105  # nobody's
NOBODY_THERE = f"postgresql://claims:{SECRET}@127.0.0.1:1/claims"
WRONG_URLS = [
    f"postgresql://claims:{SECRET}%zz@localhost/claims",
    f"postgresql://claims:{SECRET}@[localhost/claims",
    f"postgresql://claims:{SECRET}@loc℀lhost/claims",
    NOBODY_THERE,
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
    code = 4 if url == NOBODY_THERE else 2
    said = in_process({"COUNTERFOIL_URL": url})(*command, code=code)
    given = in_process({})("--url", url, *command, code=code)

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
        ("COUNTERFOIL_APPROVAL_REMIND_HOURS", "inf"),
        ("COUNTERFOIL_APPROVAL_TIERS", '[{"name": "adjusters", "hours": 2, "remind_hours": 1e300}]'),
        ("COUNTERFOIL_TIMEOUT_SECONDS", "nan"),
        ("COUNTERFOIL_CAP_SUPERSTEPS", "0"),
        ("COUNTERFOIL_CAP_MONEY", "-1"),
        ("COUNTERFOIL_CAP_TOKENS", "1.5"),
        ("COUNTERFOIL_CAP_DAYS", "0"),
    ],
)
def test_a_wrong_variable_is_named(name: str, value: str) -> None:
    said = in_process({name: value})("list", code=2)

    assert said.line.startswith(f"counterfoil: {name}: Input should be ")
    assert not list(Path.cwd().iterdir()), "no journal was made"


def test_a_key_inside_a_setting_is_named_with_its_place() -> None:
    said = in_process({"COUNTERFOIL_APPROVAL_TIERS": '[{"name": "a", "hours": 2, "quorom": 2}]'})("list", code=2)

    assert said.line == "counterfoil: COUNTERFOIL_APPROVAL_TIERS: Extra inputs are not permitted (at 0.quorom)"


@pytest.mark.parametrize(
    ("given", "named"),
    [({}, "HOURS"), ({"COUNTERFOIL_APPROVAL_TIERS": '[{"name": "adjusters", "hours": 48}]'}, "TIERS")],
)
def test_settings_that_do_not_go_together_are_one_line_that_names_them(given: dict[str, str], named: str) -> None:
    said = in_process({"COUNTERFOIL_CAP_DAYS": "1", **given})("list", code=2)

    assert said.line.startswith(
        f"counterfoil: COUNTERFOIL_CAP_DAYS ends a claim before COUNTERFOIL_APPROVAL_{named} are over"
    )


def test_caps_have_defaults_and_an_empty_one_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().caps == Caps(supersteps=100, tokens=200_000, age=timedelta(days=90))
    for name in ("SUPERSTEPS", "MONEY", "TOKENS", "DAYS"):
        monkeypatch.setenv(f"COUNTERFOIL_CAP_{name}", "")

    assert not load_settings().caps


def test_a_place_for_documents_that_cannot_be_is_one_line() -> None:
    open_journal("sqlite:///counterfoil.db").close()

    said = in_process({"COUNTERFOIL_ARTEFACTS": "moon://documents"})("list", code=2)

    assert "cannot keep artefacts at moon://…: Protocol not known: moon" in said.line


def test_a_dotenv_file_is_read_and_url_wins(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("COUNTERFOIL_URL=sqlite:///from-dotenv.db\n")
    cli = in_process({})

    assert "no journal at from-dotenv.db" in cli("list", code=2).line
    for arguments in (
        ("--url", "sqlite:///given.db", "list"),
        ("list", "--url", "sqlite:///given.db"),
        ("list", "--url=sqlite:///given.db"),
    ):
        assert "no journal at given.db" in cli(*arguments, code=2).line


def test_looking_makes_no_journal(tmp_path: Path) -> None:
    for command in (
        ("list",),
        ("approvals",),
        ("effects",),
        ("show", "claim-0042"),
        ("audit", "verify"),
        ("resume", "c"),
    ):
        assert "no journal at counterfoil.db: counterfoil submit makes one" in in_process({})(*command, code=2).line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "meant"), [("claims.db", "sqlite:///claims.db"), ("/var/lib/claims.db", "sqlite:////var/lib/claims.db")]
)
def test_a_file_in_place_of_a_url_is_answered_with_the_url(given: str, meant: str) -> None:
    said = in_process({})("--url", given, "list", code=2)

    assert said.line == f"counterfoil: COUNTERFOIL_URL: {given!r} is not a URL; did you mean {meant}?"


@pytest.mark.parametrize("name", ["STRIPE_URL", "MAIL_URL", "CLAIMS_URL"])
@pytest.mark.parametrize(
    "url",
    [
        f"http://me:{SECRET}@127.0.0.1:8042",
        f"http://me:a/{SECRET}@127.0.0.1:8042",
        f"http://127.0.0.1:8042?key={SECRET}",
        f"http://127.0.0.1:8042#{SECRET}",
        f"http://127.0.0.1:{SECRET}",
        f"ftp://127.0.0.1/{SECRET}",
        SECRET,
    ],
)
def test_a_url_outside_that_holds_a_secret_is_refused_without_it(name: str, url: str) -> None:
    said = in_process({f"COUNTERFOIL_{name}": url})("list", code=2)

    assert said.line.startswith(f"counterfoil: COUNTERFOIL_{name}: ")
    assert SECRET not in said.line


def test_a_misspelt_name_is_refused_with_the_nearest(tmp_path: Path) -> None:
    said = in_process({"COUNTERFOIL_STRIPE_KAY": SECRET})("list", code=2)
    assert said.line == (
        "counterfoil: there is no setting COUNTERFOIL_STRIPE_KAY (in the environment); did you mean COUNTERFOIL_STRIPE_KEY?"
    )

    (tmp_path / ".env").write_text(f"COUNTERFOIL_LEASE_SECOND={SECRET}\nOTHER=1\n")
    said = in_process({})("list", code=2)
    assert said.line == (
        "counterfoil: there is no setting COUNTERFOIL_LEASE_SECOND (in .env); did you mean COUNTERFOIL_LEASE_SECONDS?"
    )


def test_the_example_is_the_defaults(tmp_path: Path) -> None:
    example = (ROOT / ".env.example").read_text()
    (tmp_path / ".env").write_text(example.replace("# COUNTERFOIL", "COUNTERFOIL"))

    assert load_settings() == Settings(_env_file=None)  # type: ignore[call-arg]  # pydantic-settings' own


def test_the_names_of_the_tests_are_no_slips(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in OF_THE_TESTS:
        monkeypatch.setenv(name, "1")

    assert load_settings().place == "counterfoil.db"


def test_every_setting_stands_in_its_page_and_in_the_example_with_its_default() -> None:
    page, example = (ROOT / "docs" / "settings.md").read_text(), (ROOT / ".env.example").read_text()
    for field, value in Settings():
        default = value.get_secret_value() if isinstance(value, SecretStr) else value
        shown = "" if default is None else f"{default:g}" if isinstance(default, float) else str(default)
        shown = shown.lower() if isinstance(default, bool) else shown
        name = names()[field]
        assert f"| `{name}` | {f'`{shown}`' if shown else 'none'} |" in page
        assert f"\n# {name}={shown}\n" in example


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


DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


def test_the_users_of_an_agent_server_are_names_and_digests(monkeypatch: pytest.MonkeyPatch) -> None:
    other = DIGEST[::-1].upper()
    monkeypatch.setenv("COUNTERFOIL_AGENT_SERVER_TOKENS", f"ada:{DIGEST}, team:bob:{other},")

    assert load_settings().agent_server_users == {"ada": DIGEST, "team:bob": other.lower()}


@pytest.mark.parametrize(
    "given", [SECRET, f"ada:{SECRET}", f":{DIGEST}", f"ada:{DIGEST},ada:{DIGEST[::-1]}", f"ada:{DIGEST},bob:{DIGEST}"]
)
def test_users_that_are_none_are_refused_without_their_tokens(given: str) -> None:
    said = in_process({"COUNTERFOIL_AGENT_SERVER_TOKENS": given})("list", code=2)

    assert said.line.startswith("counterfoil: COUNTERFOIL_AGENT_SERVER_TOKENS: ")
    assert SECRET not in said.stderr
    assert DIGEST not in said.stderr


PROVIDER = {
    "COUNTERFOIL_OIDC_ISSUER": "https://id.carrier.example",
    "COUNTERFOIL_OIDC_JWKS_URL": "https://id.carrier.example/keys",
    "COUNTERFOIL_OIDC_AUDIENCE": "counterfoil",
}
PROXY = {"COUNTERFOIL_PROXY_HEADER": "X-Signed-In-As", "COUNTERFOIL_PROXY_SECRET": SECRET * 3}


@pytest.mark.parametrize("missing", [*PROVIDER, *PROXY])
def test_half_of_a_means_to_come_in_is_an_error_that_names_the_other_half(missing: str) -> None:
    given = {name: value for name, value in (PROVIDER if missing in PROVIDER else PROXY).items() if name != missing}
    said = in_process(given)("list", code=2)

    assert said.line.startswith(f"counterfoil: {missing} is missing: ")
    assert SECRET not in said.stdout + said.stderr


@pytest.mark.parametrize("whole", [PROVIDER, PROXY, PROVIDER | PROXY, PROVIDER | {"COUNTERFOIL_PROXY_HEADER": "X-Jwt"}])
def test_a_whole_means_is_taken(whole: dict[str, str]) -> None:
    assert "no journal at" in in_process(whole)("list", code=2).line


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("OIDC_JWKS_URL", "http://id.carrier.example/keys", "an https URL"),
        ("OIDC_JWKS_URL", f"https://me:{SECRET}@id.carrier.example/keys", "an https URL"),
        ("OIDC_JWKS_URL", "file:///etc/keys", "an https URL"),
        ("OIDC_JWKS_URL", "https://[::1/keys", "an https URL"),
        ("OIDC_JWKS_URL", "https:///keys", "an https URL"),
        ("OIDC_JWKS_URL", "http://127.0.0.1.carrier.example/keys", "an https URL"),
        ("PROXY_SECRET", SECRET, "at least 32 bytes"),
        ("PROXY_HEADER", "Authorization", "the name of a header that means nothing else"),
        ("PROXY_HEADER", "Cookie", "the name of a header that means nothing else"),
        ("PROXY_HEADER", "X Signed", "the name of a header that means nothing else"),
        ("PROXY_HEADER", "X-Signed:", "the name of a header that means nothing else"),
        ("PROXY_AUDIENCE", " ", "empty"),
        ("NAME_CLAIM", " ", "empty"),
        ("SESSION_HOURS", "0", "Input should be"),
        ("SESSION_HOURS", "inf", "Input should be"),
    ],
)
def test_a_means_that_would_let_the_wrong_ones_in_is_refused(name: str, value: str, wanted: str) -> None:
    said = in_process({**PROVIDER, **PROXY, f"COUNTERFOIL_{name}": value})("list", code=2)

    assert said.line.startswith(f"counterfoil: COUNTERFOIL_{name}: {wanted}")
    assert SECRET not in said.stdout + said.stderr


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080/keys", "http://localhost/keys", "http://[::1]:8080/keys"])
def test_keys_may_come_unprotected_from_this_machine(url: str) -> None:
    assert "no journal at" in in_process({**PROVIDER, "COUNTERFOIL_OIDC_JWKS_URL": url})("list", code=2).line


def test_secrets_of_the_doors_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in PROXY.items():
        monkeypatch.setenv(name, value)

    assert SECRET not in repr(load_settings()) + str(load_settings())
