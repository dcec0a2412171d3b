"""What users get wrong: one clear line, exit code 2, and not a row, a file or a claim is other than before."""

from __future__ import annotations

import getpass
import json
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from checkpointing import Journal
from tests.service.conftest import Cli, Filed, approval_of
from tools.claim_file import load_claim_file
from tools.claims_system import ClaimsSystem
from tools.sandbox import SandboxControl, SandboxProcess

Change = Callable[[dict[str, Any]], object]
Make = Callable[..., Filed]

TABLES = {
    "sqlite": "select name from sqlite_master where type = 'table' order by name",
    "postgres": "select table_name as name from information_schema.tables where table_schema = 'public' order by 1",
}


def everything(journal: Journal, control: SandboxControl, folder: Path) -> dict[str, Any]:
    """Return every row of every table, every artefact, and every call the world outside executed."""
    found: dict[str, Any] = {}
    with journal.store.reading() as tx:
        for table in tx.all(TABLES[journal.store.engine.name]):
            rows = tx.all(f"select * from {table['name']}")  # noqa: S608  # a name from the catalogue
            found[table["name"]] = sorted(repr({k: plain(v) for k, v in r.items()}) for r in rows)
    found["artefacts"] = sorted(str(p) for p in (folder / "artefacts").rglob("*"))
    found["outside"] = [call for call in control.calls() if call["executed"]]
    return found


def plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value


@contextmanager
def nothing_changes(journal: Journal, control: SandboxControl, folder: Path) -> Any:
    before = everything(journal, control, folder)
    yield
    assert everything(journal, control, folder) == before


@pytest.fixture
def unchanged(journal: Journal, control: SandboxControl, tmp_path: Path) -> Callable[[], Any]:
    return lambda: nothing_changes(journal, control, tmp_path)


UNKNOWN = [
    ("show", "claim-0000"),
    ("resume", "claim-0000"),
    ("effects", "claim-0000"),
    ("effects", "list", "claim-0000"),
    ("redrive", "claim-0000", "--as", "operator-3"),
    ("dead", "claim-0000"),
    ("discard", "claim-0000", "--as", "operator-3", "--reason", "x"),
    ("approve", "apr_00000000000000000000", "--as", "adjuster-17"),
    ("reject", "apr_00000000000000000000", "--as", "adjuster-17"),
    ("edit", "apr_00000000000000000000", "--as", "adjuster-17", "--payload", "{}"),
    ("effects", "resolve", "claim-0000:pay", "--as", "operator-3", "--nothing-happened"),
]


def test_an_unknown_id(cli: Cli, filed: Make, unchanged: Callable[[], Any]) -> None:
    cli(*filed().submit)

    for arguments in UNKNOWN:
        with unchanged():
            said = cli(*arguments, code=2)
            as_json = cli(*arguments, "--json", code=2)
        assert (said.stdout, as_json.stderr) == ("", "")
        assert said.line.startswith("counterfoil: there is no ")
        assert next(part for part in arguments if "0000" in part) in said.line
        assert as_json.document["error"]["type"].startswith("Unknown")
        assert said.line == f"counterfoil: {as_json.document['error']['message']}"


def test_a_mistyped_approval_id(cli: Cli, filed: Make, unchanged: Callable[[], Any]) -> None:
    claim = filed()
    cli(*claim.submit)
    approval = approval_of(cli, claim)

    with unchanged():
        for mistyped in (approval[:-1], approval.upper(), approval + "0", claim.thread_id, ""):
            said = cli("approve", mistyped, "--as", "adjuster-17", code=2)
            assert said.line == (f"counterfoil: there is no approval {mistyped!r}; see counterfoil approvals")


def test_nobody_is_named(cli: Cli, filed: Make, unchanged: Callable[[], Any]) -> None:
    claim = filed()
    cli(*claim.submit)
    approval = approval_of(cli, claim)

    with unchanged():
        for command in (
            ("approve", approval),
            ("reject", approval),
            ("edit", approval, "--payload", "{}"),
            ("redrive", claim.thread_id),
            ("discard", claim.thread_id, "--reason", "x"),
            ("effects", "resolve", "claim-0000:pay", "--nothing-happened"),
        ):
            for who in ((), ("--as", ""), ("--as", " \t")):
                said = cli(*command, *who, code=2)
                assert "needs --as NAME" in said.line
                assert said.stdout == ""


def test_who_submits_is_the_one_named_or_logged_in(
    cli: Cli, filed: Make, journal: Journal, unchanged: Callable[[], Any]
) -> None:
    anonymous, named = filed(), filed()
    with unchanged():
        assert "needs --as NAME" in cli("submit", str(named.path), "--thread", named.thread_id, "--as", "", code=2).line
    cli("submit", str(anonymous.path), "--thread", anonymous.thread_id)
    cli("submit", str(named.path), "--thread", named.thread_id, "--as", "clerk-1")

    assert journal.runs.get(anonymous.thread_id).submitted_by == getpass.getuser()
    assert journal.runs.get(named.thread_id).submitted_by == "clerk-1"


def test_the_same_claim_twice(cli: Cli, filed: Make, unchanged: Callable[[], Any]) -> None:
    claim = filed()
    cli(*claim.submit)

    with unchanged():
        said = cli(*claim.submit, code=2)

    assert "already submitted" in said.line
    assert "(state parked)" in said.line
    assert f"counterfoil resume {claim.thread_id}" in said.line


@pytest.mark.parametrize("what", ["estimate", "documents"])
def test_the_same_claim_with_other_content(cli: Cli, filed: Make, unchanged: Callable[[], Any], what: str) -> None:
    claim = filed()
    cli(*claim.submit)
    content = json.loads(claim.path.read_text())
    if what == "estimate":
        content["claim"]["estimate"][0]["amount"] += 1
    else:
        content["claim"]["documents"].pop()
    claim.path.write_text(json.dumps(content))

    with unchanged():
        said = cli(*claim.submit, code=2)

    assert f"claim {claim.claim_id} was already submitted for thread '{claim.thread_id}' (state parked)" in said.line
    assert "this file's content differs from what was filed then" in said.line


def test_a_claim_that_the_sandbox_has_loaded_for_its_own_thread(cli: Cli, filed: Make, sandbox: SandboxProcess) -> None:
    claim = filed()
    file = load_claim_file(claim.path)
    ClaimsSystem(sandbox.url).file(file.claim, file.policy, reference=claim.thread_id)

    said = cli("submit", str(claim.path), "--thread", "t", "--as", "intake", code=2)

    assert f"is filed for thread '{claim.thread_id}' (sandbox --load does that)" in said.line
    assert said.line.endswith(f"Submit it with --thread {claim.thread_id}")
    assert "is parked" in cli(*claim.submit).stdout


def test_another_claim_under_a_used_thread_id(cli: Cli, filed: Make, unchanged: Callable[[], Any]) -> None:
    first, second = filed(), filed()
    cli(*first.submit)

    with unchanged():
        said = cli("submit", str(second.path), "--thread", first.thread_id, "--as", "i", "--json", code=2)

    assert said.document["error"]["type"] == "InputChanged"
    assert "was admitted with other input (state parked)" in said.document["error"]["message"]


def test_a_claim_that_another_thread_has(cli: Cli, filed: Make, unchanged: Callable[[], Any]) -> None:
    claim = filed()
    cli(*claim.submit)

    with unchanged():
        said = cli("submit", str(claim.path), "--thread", "another", "--as", "intake", code=2)

    assert f"was submitted for thread '{claim.thread_id}'" in said.line


def test_a_thread_id_that_is_none(cli: Cli, filed: Make, unchanged: Callable[[], Any]) -> None:
    with unchanged():
        for thread_id in ("", "a\nb", "x" * 256):
            said = cli("submit", str(filed().path), "--thread", thread_id, code=2)
            assert "a thread id is text of 1 to 255 characters" in said.line


def wrong_type(content: dict[str, Any]) -> None:
    content["claim"]["estimate"][0]["amount"] = "860.00"


def missing_field(content: dict[str, Any]) -> None:
    del content["claim"]["claimant"]["email"]


def negative_amount(content: dict[str, Any]) -> None:
    content["claim"]["estimate"][1]["amount"] = -1


def unknown_currency(content: dict[str, Any]) -> None:
    content["claim"]["currency"] = "XXX"


def endless_description(content: dict[str, Any]) -> None:
    content["claim"]["description"] = "x" * 50_000_000


def missing_document(content: dict[str, Any]) -> None:
    content["claim"]["documents"][0]["path"] = "gone.txt"


def fraction(content: dict[str, Any]) -> None:
    content["policy"]["limit"] = 1000.5


MALFORMED: dict[Change, str] = {
    wrong_type: "claim.estimate[0].amount: Input should be a valid integer",
    missing_field: "claim.claimant.email: Field required",
    negative_amount: "claim.estimate[1].amount: Input should be greater than or equal to 0",
    unknown_currency: "claim.currency: Input should be 'CHF', 'EUR', 'GBP' or 'USD'",
    endless_description: "a claim file has at most 1048576",
    missing_document: "claim.documents[0].path names 'gone.txt', and there is no such file",
    fraction: "policy.limit: Input should be a valid integer",
}


@pytest.mark.parametrize("change", MALFORMED, ids=lambda change: change.__name__)
def test_a_malformed_claim_file(cli: Cli, filed: Make, unchanged: Callable[[], Any], change: Change) -> None:
    claim = filed(change)

    with unchanged():
        said = cli(*claim.submit, code=2)

    assert said.line.startswith(f"counterfoil: {claim.path}: ")
    assert MALFORMED[change] in said.line
    assert len(said.line) < 400


def test_what_is_no_claim_file_at_all(cli: Cli, unchanged: Callable[[], Any], tmp_path: Path) -> None:
    (tmp_path / "cut.json").write_text('{"claim": {')
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe")
    (tmp_path / "empty.json").touch()

    with unchanged():
        for name, why in {
            "gone.json": "cannot be read: No such file or directory",
            "cut.json": "is not JSON",
            "binary.json": "is not UTF-8 text",
            "empty.json": "is not JSON",
            ".": "is a folder",
        }.items():
            said = cli("submit", str(tmp_path / name), "--thread", "t", "--as", "intake", code=2)
            assert why in said.line


NO_EDITS = {
    "{": "--payload takes JSON",
    "[1]": "--payload takes a JSON object",
    "{}": "must have the payload's own keys: amount, claim_id, currency, payee",
    '{"claim_id": 1, "amount": NaN, "currency": "EUR", "payee": "a"}': "is not JSON",
}


def test_an_edit_that_is_none(cli: Cli, filed: Make, unchanged: Callable[[], Any]) -> None:
    claim = filed()
    cli(*claim.submit)
    approval = approval_of(cli, claim)

    for payload, why in NO_EDITS.items():
        with unchanged():
            said = cli("edit", approval, "--as", "adjuster-17", "--payload", payload, code=2)
        assert why in said.line


def test_a_finding_that_says_nothing_or_too_much(cli: Cli, unchanged: Callable[[], Any]) -> None:
    with unchanged():
        for finding in ((), ("--nothing-happened", "--happened", "{}")):
            said = cli("effects", "resolve", "k", "--as", "operator-3", *finding, code=2)
            assert "either --happened JSON" in said.line
        for given, why in {
            "yes": "--happened takes JSON",
            "NaN": "is not JSON",
            "1e400": "is not JSON",
            "[1e400]": "is not JSON",
        }.items():
            said = cli("effects", "resolve", "k", "--as", "o", "--happened", given, code=2)
            assert why in said.line


def test_a_run_that_is_no_dead_letter_is_not_redriven(cli: Cli, filed: Make, unchanged: Callable[[], Any]) -> None:
    claim = filed()
    cli(*claim.submit)

    with unchanged():
        said = cli("redrive", claim.thread_id, "--as", "operator-3", code=2)

    assert "only a dead letter is redriven" in said.line


def test_the_error_is_one_json_document(cli: Cli, tmp_path: Path) -> None:
    said = cli("submit", str(tmp_path / "gone.json"), "--thread", "t", "--json", code=2)

    assert json.loads(said.stdout).keys() == {"error"}
    assert said.document["error"].keys() == {"type", "message"}
    assert said.stderr == ""
