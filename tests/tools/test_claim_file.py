"""Claim files: a whole one is loaded, any other is refused in one line that says what to mend."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from checkpointing.errors import Refused
from tools.claim_file import load_claim_file
from tools.claim_models import Claim, ClaimFileInvalid, Policy

Content = dict[str, Any]


@pytest.fixture
def content(claim: Claim, policy: Policy) -> Content:
    return {"claim": claim.model_dump(mode="json"), "policy": policy.model_dump(mode="json")}


@pytest.fixture
def refused(tmp_path: Path) -> Callable[[bytes | str], str]:
    """Write a claim file, see it refused, and return the message after the file's name."""

    def message(text: bytes | str) -> str:
        path = tmp_path / "claim.json"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        with pytest.raises(ClaimFileInvalid) as error:
            load_claim_file(path)
        said = str(error.value)
        assert said.startswith(f"{path}: ")
        assert said.isprintable(), "one line"
        assert len(said) < 500
        return said.removeprefix(f"{path}: ")

    return message


def test_a_whole_file_is_loaded_with_its_documents(tmp_path: Path, content: Content) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "front.svg").write_text("<svg/>")
    document = {"name": "Front", "media_type": "image/svg+xml", "path": "photos/front.svg"}
    content["claim"]["documents"] = [document]
    (tmp_path / "claim.json").write_text(json.dumps(content))

    loaded = load_claim_file(tmp_path / "claim.json")

    assert loaded.claim.model_dump(mode="json") == content["claim"]
    assert loaded.policy.model_dump(mode="json") == content["policy"]
    [(found, path)] = loaded.documents
    assert (found.name, path.read_text()) == ("Front", "<svg/>")


def changed(place: str, value: object) -> Callable[[Content], None]:
    """Return a change of one place, as in `claim.estimate.0.amount`."""

    def change(content: Content) -> None:
        *parents, last = [int(part) if part.isdigit() else part for part in place.split(".")]
        target: Any = content
        for part in parents:
            target = target[part]
        target[last] = value

    return change


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("claim.estimate.0.amount", -1, "claim.estimate[0].amount: Input should be greater"),
        ("claim.estimate.0.amount", 12.5, "claim.estimate[0].amount: Input should be a valid int"),
        ("claim.estimate.0.amount", "12", "claim.estimate[0].amount: Input should be a valid int"),
        ("claim.estimate.0.amount", True, "claim.estimate[0].amount: Input should be a valid int"),
        ("claim.estimate.0.amount", 10**13, "claim.estimate[0].amount: Input should be less than"),
        ("claim.estimate", [], "claim.estimate: Tuple should have at least 1 item"),
        ("claim.currency", "XYZ", "claim.currency: Input should be 'CHF', 'EUR', 'GBP' or 'USD'"),
        ("claim.currency", "CHF", "the claim is in CHF and its policy in EUR; both must agree"),
        ("claim.policy_number", "P-0", "claim.policy_number is not the number of the policy"),
        ("claim.description", "x" * 10_001, "claim.description: String should have at most 10000"),
        ("claim.description", "a\0b", "claim.description: String should match pattern"),
        ("claim.date_of_loss", "yesterday", "claim.date_of_loss: Input should be a valid date"),
        ("claim.colour", "red", "claim.colour: Extra inputs are not permitted"),
        ("claim.claimant.payee", "mara", "claim.claimant.payee: String should match pattern"),
        ("claim.claimant.name", "Ma\nra", "claim.claimant.name: String should match pattern"),
        ("claim.id", "../0042", "claim.id: String should match pattern"),
        ("claim.status", "paid", "claim.status: Input should be 'open' or 'withdrawn'"),
        ("policy.deductible", -1, "policy.deductible: Input should be greater than"),
        ("policy.period_end", "2025-01-01", "policy: period_end is before period_start"),
        ("policy.status", "gone", "policy.status: Input should be 'active' or 'lapsed'"),
        ("more\nlines", 1, "'more\\nlines': Extra inputs are not permitted"),
    ],
)
def test_a_wrong_field_is_named(
    content: Content,
    refused: Callable[[str], str],
    place: str,
    value: object,
    message: str,
) -> None:
    changed(place, value)(content)

    assert refused(json.dumps(content)).startswith(message)


def test_a_missing_field_is_named_and_further_ones_counted(content: Content, refused: Callable[[str], str]) -> None:
    del content["claim"]["claimant"]
    del content["policy"]["limit"]

    assert refused(json.dumps(content)) == "claim.claimant: Field required (and 1 more)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON: Expecting value at line 1 column 1"),
        ("{", "is not JSON: "),
        ("claim: yes", "is not JSON: "),
        ("[]", "Input should be an object"),
        ('"text"', "Input should be an object"),
        ("null", "Input should be an object"),
        (b"\xff\xfe{}", "is not UTF-8 text (byte 0)"),
        (b'{"claim": "\xe9"}', "is not UTF-8 text (byte 11)"),
        ('{"claim": NaN}', "has NaN, which is no number in JSON"),
        ('{"claim": -Infinity}', "has -Infinity, which is no number in JSON"),
        ('{"claim": 1, "claim": 2}', "has the key 'claim' twice in one object"),
        ('{"claim": {"id": 1, "id": 2}}', "has the key 'id' twice in one object"),
        ("[" * 100_000, "is nested too deeply"),
        ('{"claim": ' + "[" * 50 + "]" * 50 + "}", "is nested too deeply"),
        ('{"claim": ' + "9" * 5000 + "}", "has a number too long to read"),
        ('{"claim": "\\ud800"}', "Invalid JSON: "),
    ],
)
def test_what_is_no_claim_file_is_refused(
    refused: Callable[[bytes | str], str], text: bytes | str, message: str
) -> None:
    assert refused(text).startswith(message)


def test_a_huge_file_is_refused_by_its_size(tmp_path: Path, content: Content) -> None:
    path = tmp_path / "claim.json"
    with path.open("wb") as file:
        file.truncate(50 * 1024 * 1024)

    with pytest.raises(ClaimFileInvalid, match="has 52428800 bytes; a claim file has at most"):
        load_claim_file(path)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ClaimFileInvalid, match=r"is a folder; name the claim\.json in it"):
        load_claim_file(tmp_path)
    with pytest.raises(ClaimFileInvalid, match="cannot be read: No such file"):
        load_claim_file(tmp_path / "none.json")
    with pytest.raises(ClaimFileInvalid, match="is not a regular file"):
        load_claim_file(Path("/dev/null"))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("none.txt", "claim.documents[0].path names 'none.txt', and there is no such file"),
        ("photos", "claim.documents[0].path names 'photos', and there is no such file"),
        ("../outside.txt", "claim.documents[0].path leads out of the claim's folder"),
        ("/etc/hostname", "claim.documents[0].path leads out of the claim's folder"),
        ("link.txt", "claim.documents[0].path leads out of the claim's folder"),
        ("circle.txt", "claim.documents[0].path"),
        ("\N{GRINNING FACE}" * 100, "claim.documents[0].path cannot be read"),
    ],
)
def test_a_document_is_a_file_in_the_folder(
    tmp_path: Path,
    content: Content,
    refused: Callable[[str], str],
    path: str,
    message: str,
) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path.parent / "outside.txt").write_text("not of this claim")
    (tmp_path / "link.txt").symlink_to(tmp_path.parent / "outside.txt")
    (tmp_path / "circle.txt").symlink_to(tmp_path / "circle.txt")
    document = {"name": "Document", "media_type": "text/plain", "path": path}
    content["claim"]["documents"] = [document]

    assert refused(json.dumps(content)).startswith(message)


def test_no_message_repeats_what_the_file_says(content: Content, refused: Callable[[str], str]) -> None:
    content["claim"]["claimant"] = {"name": "Secret Person", "email": "secret", "payee": "secret"}

    assert "ecret" not in refused(json.dumps(content))


def test_the_error_is_a_refusal_and_a_value_error() -> None:
    assert issubclass(ClaimFileInvalid, Refused)
    assert issubclass(ClaimFileInvalid, ValueError)


def test_a_record_cannot_be_changed(claim: Claim) -> None:
    with pytest.raises(ValidationError, match="frozen"):
        claim.status = "withdrawn"  # type: ignore[misc]  # it is frozen, that is the point
