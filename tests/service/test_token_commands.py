"""`counterfoil token add`, `list` and `revoke`: what they show, what they never show, and how they end."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from checkpointing import Journal, open_journal
from checkpointing.hashed import digest_of
from checkpointing.principals import Person
from service.who import Doors
from tests.service.conftest import Cli, in_process
from tests.support.clock import MovingClock

SECRET = re.compile(r"cft_[A-Za-z0-9_-]{43}")
AS = ("--as", "root")
ADA = ("token", "add", "ada", "--role", "approver", *AS)


def test_the_token_stands_alone_on_stdout_and_what_to_do_with_it_on_stderr(cli: Cli, journal: Journal) -> None:
    said = cli(*ADA, "--group", "motor", "--group", "home", "--limit", "500000", "--expires-in", "90d")
    came = Doors(journal).visitor({"Authorization": f"Bearer {said.stdout.strip()}"})

    assert SECRET.fullmatch(said.stdout.strip())
    assert said.stdout.endswith("\n")
    assert came is not None
    assert (came.person, came.roles) == (Person("ada", frozenset({"motor", "home"}), 500_000), {"approver"})
    assert "the token of ada (approver; groups home, motor; up to 500000), good until 20" in said.stderr
    assert f"counterfoil token revoke {journal.tokens.list()[0].id} --as NAME" in said.stderr
    assert SECRET.search(said.stderr) is None


def test_several_roles_are_several_options(cli: Cli) -> None:
    added = cli(*ADA, "--role", "operator", "--note", "the night shift", "--json").document

    assert SECRET.fullmatch(added["secret"])
    assert (added["roles"], added["groups"], added["limit"], added["note"]) == (
        ["approver", "operator"],
        [],
        None,
        "the night shift",
    )
    assert (added["created_by"], added["expires_at"], added["revoked_at"]) == ("root", None, None)


@pytest.mark.parametrize(
    ("given", "lasting"), [("90", timedelta(days=90)), ("12h", timedelta(hours=12)), ("1d", timedelta(days=1))]
)
def test_a_time_is_in_days_unless_it_says_otherwise(cli: Cli, journal: Journal, given: str, lasting: timedelta) -> None:
    cli(*ADA, "--expires-in", given)
    [token] = journal.tokens.list()

    assert token.expires_at == token.created_at + lasting


def test_the_first_token_makes_the_journal_and_looking_does_not(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/new.db"
    assert "no journal at" in in_process({"COUNTERFOIL_URL": url})("token", "list", code=2).line
    in_process({"COUNTERFOIL_URL": url})(*ADA)

    assert "ada" in in_process({"COUNTERFOIL_URL": url})("token", "list").stdout


def test_the_list_says_whose_tokens_there_are_and_shows_no_secret(cli: Cli, journal: Journal) -> None:
    assert cli("token", "list").stdout.startswith("There is no token in ")
    secrets = [cli("token", "add", name, "--role", "approver", *AS).stdout.strip() for name in ("ada", "grace")]
    gone, kept = journal.tokens.list()
    cli("token", "revoke", gone.id, *AS)

    said, document = cli("token", "list").stdout, cli("token", "list", "--json")
    for fact in ("ada", "grace", gone.id, kept.id, "any amount", "revoked by", "it is revoked"):
        assert fact in " ".join(said.split())
    assert max(len(line) for line in said.splitlines()) <= 100
    assert [one["id"] for one in document.document] == [gone.id, kept.id]
    for secret in secrets:
        assert secret not in said + document.stdout
        assert digest_of(secret) not in said + document.stdout


def test_an_expired_token_says_so(url: str, cli: Cli, clock: MovingClock) -> None:
    with open_journal(url, clock=clock) as journal:  # whose clock stands in the past
        journal.tokens.add(principal="ada", roles=["auditor"], expires_in=timedelta(hours=1), by="root")

    assert "expired" in cli("token", "list").stdout


def test_a_token_that_is_revoked_lets_nobody_in_and_the_audit_has_who_did_it(cli: Cli, journal: Journal) -> None:
    secret = cli(*ADA).stdout.strip()
    [token] = journal.tokens.list()
    first = cli("token", "revoke", token.id, "--as", "grace").stdout
    again = cli("token", "revoke", token.id, *AS).stdout

    assert first.startswith(f"{token.id} of ada was revoked by grace at ")
    assert again == f"Nothing was changed: {first}"
    assert journal.tokens.find(secret) is None
    assert cli("token", "revoke", token.id, *AS, "--json").document["revoked_by"] == "grace"
    entries = cli("audit", "show", "--access", "--json").document
    assert [(one["event"], one["actor"]) for one in entries] == [("token.add", "root"), ("token.revoke", "grace")]
    assert token.id in cli("audit", "show", "--access").stdout
    assert secret not in cli("audit", "show", "--access").stdout
    assert "whole" in cli("audit", "verify").stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("token", "add", "ada", "--role", "approver"), "token add needs --as NAME"),
        (("token", "add", "ada", *AS), "token add needs --role: one of submitter, approver, operator, auditor"),
        (("token", "add", "ada", "--role", "admin", *AS), "there is no role 'admin'; roles are submitter"),
        (("token", "add", "ada", "--role", "Approver", *AS), "there is no role 'Approver'"),
        ((*ADA, "--limit", "-1"), "a limit is an amount in minor units"),
        ((*ADA, "--limit", str(2**70)), "a limit is an amount in minor units"),
        ((*ADA, "--expires-in", "soon"), "--expires-in takes a duration, as in"),
        ((*ADA, "--expires-in", "0d"), "a token may last from now on"),
        ((*ADA, "--expires-in", "999999w"), "a token may last from now on"),
        ((*ADA, "--group", " "), "a group is text"),
        ((*ADA, "--note", "two\nlines"), "a note is one line"),
        (("token", "add", "ada\n\x1b[2J", "--role", "approver", *AS), "a principal is text without control"),
        (("token", "revoke", "tok_0000000000000000", *AS), "there is no token 'tok_0000000000000000'"),
        (("token", "revoke", "tok_0000000000000000"), "token revoke needs --as NAME"),
        (("audit", "show"), "audit show takes the ID of one thread, or --access"),
        (("audit", "show", "claim-1", "--access"), "audit show takes the ID of one thread, or --access"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_changes_nothing(
    cli: Cli, journal: Journal, arguments: tuple[str, ...], said: str
) -> None:
    assert said in cli(*arguments, code=2).line
    assert said in cli(*arguments, "--json", code=2).document["error"]["message"]
    assert journal.tokens.list() == []


@pytest.mark.parametrize("name", ["", "group:motor"])
def test_nobody_can_be_called_that(cli: Cli, journal: Journal, name: str) -> None:
    cli("token", "add", name, "--role", "approver", *AS, code=3)

    assert journal.tokens.list() == []


def test_text_that_would_steer_a_terminal_is_shown_as_text(cli: Cli, journal: Journal) -> None:
    journal.tokens.add(principal="[red]ada[/red]", roles=["approver"], groups=["[bold]"], note="<b>'--</b>", by="root")

    said = cli("token", "list").stdout
    assert "[red]ada[/red]" in "".join(said.split())
    assert "[bold]" in said


def test_help_teaches(cli: Cli) -> None:
    said = " ".join(cli("token", "add", "--help").stdout.split())
    for word in ("--role", "--group", "--limit", "--expires-in", "--note", "--as", "Authorization: Bearer", "Example:"):
        assert word in said
    assert "Who comes in" in cli("--help").stdout
    for name in ("add", "list", "revoke"):
        assert name in cli("token", "--help").stdout


@pytest.fixture
def once(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the real command line in a process of its own."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "service.cli", "--url", f"sqlite:///{tmp_path}/journal.db", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    return run


def test_a_real_process_writes_the_token_alone_so_that_it_can_be_piped(
    once: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    done = once(*ADA)
    assert (done.returncode, SECRET.fullmatch(done.stdout.rstrip("\n")) is not None) == (0, True)

    for file in tmp_path.iterdir():
        assert done.stdout.strip().encode() not in file.read_bytes()
    assert done.stdout.strip() not in once("token", "list", "--debug").stdout
